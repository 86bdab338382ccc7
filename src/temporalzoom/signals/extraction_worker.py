"""Many videos one after the other or in parallel: the processes that extract, and the one that gives them work."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from temporalzoom.errors import InputError
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.decoding import probe
from temporalzoom.signals.extraction import ExtractionSettings, extract_one


def run_extraction(
    videos: Sequence[Path], out: Path, settings: ExtractionSettings, workers: int, console: Console
) -> dict[str, str]:
    """Extract all; why videos failed, by path. One worker is this process itself.

    Ctrl-C ends the workers and goes on upward: what is finished is on disk, and nothing half-written is.
    """
    if not videos:
        return {}
    failed: dict[str, str] = {}
    with ExtractionProgress(videos, settings.fps, console) as shown:

        def finished(video: Path, reason: str | None) -> None:
            if reason is not None:
                failed[str(video)] = reason
            shown.finished(video, reason)

        if min(workers, len(videos)) == 1:
            built = backbone(settings.backbone, **settings.options)
            for video in videos:
                finished(video, _attempt(video, out, settings, built, lambda count: shown.frames(count)))
        else:
            _run_processes(videos, out, settings, min(workers, len(videos)), finished, shown.frames)
    return failed


def _run_processes(
    videos: Sequence[Path],
    out: Path,
    settings: ExtractionSettings,
    workers: int,
    finished: Callable[[Path, str | None], None],
    progress: Callable[[int], None],
) -> None:
    # Spawned, not forked: torch's and FFmpeg's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    waiting, busy = deque(videos), dict[Connection, tuple[BaseProcess, Path]]()
    every: list[BaseProcess] = []

    def start() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, out, settings), daemon=True)
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


def work(connection: Connection, out: Path, settings: ExtractionSettings) -> None:
    """Takes paths from the connection until None; sends `("frames", n)` now and then, at last `("done", reason)`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an exit, so that a half-written file is taken away
    try:
        built = backbone(settings.backbone, **settings.options)
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


class ExtractionProgress:
    """Frames done of all, frames per second, time left; without a terminal a line per video."""

    def __init__(self, videos: Sequence[Path], fps: float | None, console: Console) -> None:
        self.console, self.count, self.videos, self.done = console, len(videos), videos, 0
        self._fps = fps
        self._bar = Progress(
            TextColumn("{task.fields[videos]}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        total = self._expected_frames() if console.is_terminal else None
        self._task = self._bar.add_task("extract", total=total, videos=f"0/{self.count} videos", rate="")

    def __enter__(self) -> ExtractionProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def frames(self, count: int) -> None:
        speed = self._bar.tasks[0].finished_speed or self._bar.tasks[0].speed
        self._bar.update(self._task, advance=count, rate=f"{speed:.0f} frames/s" if speed else "")

    def finished(self, video: Path, reason: str | None) -> None:
        self.done += 1
        self._bar.update(self._task, videos=f"{self.done}/{self.count} videos")
        if reason is not None or self._bar.disable:
            told = f"{video.name}: {'done' if reason is None else 'failed'} ({self.done}/{self.count})"
            self.console.print(told, markup=False, highlight=False, soft_wrap=True)

    def _expected_frames(self) -> float:
        """What the headers promise; a video that cannot be read counts nothing, and fails later with its reason."""
        total = 0.0
        for video in self.videos:
            try:
                info = probe(video)
            except InputError:
                continue
            total += info.duration * (self._fps or info.fps)
        return total
