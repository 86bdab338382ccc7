"""Many videos to features, one after the other or in parallel processes; what was stopped can be continued."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.interrupts import interruptible
from temporalzoom.progress import Progress, track
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.decoding import probe
from temporalzoom.signals.extraction import ExtractionSettings, extract_one, find_videos, is_finished, resolved_settings
from temporalzoom.terminal import Screen


@dataclass(frozen=True)
class ExtractionSummary:
    """Names of the videos extracted now and of those that were there already; why others failed, by path."""

    extracted: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: dict[str, str]


def extract_features(
    paths: Sequence[str | Path],
    out: str | Path,
    backbone: str = "motion",
    stride: int | None = None,
    window: int | None = None,
    fps: float | None = None,
    workers: int = 1,
    console: Console | None = None,
    options: dict[str, Any] | None = None,
    device: str = "auto",
) -> ExtractionSummary:
    """Features of many videos (files, or folders of them) into `out`: NAME.npy and NAME.json each.

    What is finished is skipped; what other settings made is an error. A video that cannot be read is reported in the
    summary, the others go on. With several workers each is a process with one thread for torch.
    """
    if workers < 1:
        raise InputError(f"workers must be at least one, got {workers}")
    videos, out = find_videos(paths), Path(out)
    settings = resolved_settings(backbone, stride, window, fps, options or {}, device)
    pending = [path for path in videos if not is_finished(path, out, settings)]
    skipped = tuple(path.stem for path in videos if path not in pending)
    failed = run_extraction(pending, out, settings, workers, console or Screen(stderr=True), device)
    extracted = tuple(path.stem for path in pending if str(path) not in failed)
    return ExtractionSummary(extracted, skipped, failed)


def run_extraction(
    videos: Sequence[Path],
    out: Path,
    settings: ExtractionSettings,
    workers: int,
    console: Console,
    device: str = "auto",
) -> dict[str, str]:
    """Extract all; why videos failed, by path. One worker is this process itself.

    Ctrl-C ends the workers and goes on upward: what is finished is on disk, and nothing half-written is.
    """
    if not videos:
        return {}
    failed: dict[str, str] = {}
    with interruptible(at_once=True), VideoProgress(videos, settings.fps, console) as shown:

        def finished(video: Path, reason: str | None) -> None:
            if reason is not None:
                failed[str(video)] = reason
            shown.finished(video, reason)

        if min(workers, len(videos)) == 1:
            built = backbone(settings.backbone, device, **settings.options)
            for video in videos:
                finished(video, _attempt(video, out, settings, built, shown.frames))
        else:
            _run_processes(videos, out, settings, min(workers, len(videos)), finished, shown.frames, device)
    return failed


def _run_processes(
    videos: Sequence[Path],
    out: Path,
    settings: ExtractionSettings,
    workers: int,
    finished: Callable[[Path, str | None], None],
    progress: Callable[[int], None],
    device: str,
) -> None:
    # Spawned, not forked: torch's and FFmpeg's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    waiting, busy = deque(videos), dict[Connection, tuple[BaseProcess, Path]]()
    every: list[BaseProcess] = []

    def start() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, out, settings, device), daemon=True)
        process.start()
        theirs.close()  # so that the end of the process is the end of the pipe
        every.append(process)
        give(ours, process)

    def give(connection: Connection, process: BaseProcess) -> None:
        video = waiting.popleft() if waiting else None
        if video is None:
            busy.pop(connection, None)
        else:
            busy[connection] = (process, video)
        with suppress(OSError):  # it died between two videos: reading from it says so
            connection.send(video)

    try:
        for _ in range(workers):
            start()
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                process, video = busy[connection]
                try:
                    kind, value = connection.recv()
                except (EOFError, OSError):
                    process.join()
                    del busy[connection]
                    finished(video, f"{video}: its process died (exit code {process.exitcode})")
                    if waiting:
                        start()
                    continue
                if kind == "frames":
                    progress(value)
                else:
                    finished(video, value)
                    give(connection, process)
    finally:
        # After Ctrl-C they are in the middle of something; at a normal end they are leaving already.
        for process in every:
            if busy:
                process.terminate()
            process.join()


def work(connection: Connection, out: Path, settings: ExtractionSettings, device: str = "auto") -> None:
    """Takes paths from the connection until None; sends `("frames", n)` now and then, at last `("done", reason)`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an exit, so that a half-written file is taken away
    try:
        built = backbone(settings.backbone, device, **settings.options)
        if "torch" in sys.modules:  # a backbone without it starts faster
            sys.modules["torch"].set_num_threads(1)
        while (video := connection.recv()) is not None:
            reason = _attempt(video, out, settings, built, lambda count: connection.send(("frames", count)))
            connection.send(("done", reason))
    except (EOFError, BrokenPipeError):
        os._exit(1)  # the parent is gone


def _attempt(
    video: Path, out: Path, settings: ExtractionSettings, built: Backbone, progress: Callable[[int], Any]
) -> str | None:
    """Extract one video; the reason in one line if that failed."""
    try:
        extract_one(video, out, settings, built, progress)
    except InputError as error:
        return str(error)
    except (BrokenPipeError, EOFError):
        raise
    except Exception as error:  # one video must not end the others
        return f"{video}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


class VideoProgress:
    """Frames done of those of all videos, frames per second, time left; without a terminal also a line per video.

    fps: of the clock that videos are brought onto; None for their own.
    """

    def __init__(
        self, videos: Sequence[Path], fps: float | None, console: Console, description: str = "extracting"
    ) -> None:
        self.console, self.count, self.done = console, len(videos), 0
        self._began = time.monotonic()
        total = None if console.quiet else _expected_frames(videos, fps, console)
        self._progress = Progress(console, description, total, "frames")

    def __enter__(self) -> VideoProgress:
        self._progress.__enter__()
        self._began = time.monotonic()
        self.frames(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def frames(self, count: int) -> None:
        done, seconds = self._progress.completed + count, time.monotonic() - self._began
        rate = f", {done / seconds:.0f} frames/s" if done and seconds > 0 else ""
        self._progress.advance(count, f"{self.done}/{self.count} videos{rate}")

    def finished(self, video: Path, reason: str | None) -> None:
        self.done += 1
        self.frames(0)
        if reason is not None or not self.console.is_terminal:
            text = f"{video.name}: {'done' if reason is None else 'failed'} ({self.done}/{self.count})"
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _expected_frames(videos: Sequence[Path], fps: float | None, console: Console) -> float:
    """What the headers promise; a video that cannot be read counts nothing, and fails later with its reason."""
    total = 0.0
    for video in track(videos, "reading headers", console, "videos"):
        try:
            info = probe(video)
        except InputError:
            continue
        total += info.duration * (fps or info.fps)
    return total
