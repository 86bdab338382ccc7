"""`tzoom localize`: videos, or files of features or raw signals, in; segments out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from temporalzoom.config import change_inference
from temporalzoom.errors import InputError
from temporalzoom.formats import write_segments, writing_format
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.recordings import is_video
from temporalzoom.inference.selection import Selection, drop_low, merge_near, select
from temporalzoom.progress import track
from temporalzoom.segments import Segments
from temporalzoom.signals.decoding import probe, read_frames
from temporalzoom.signals.extraction import VIDEO_SUFFIXES
from temporalzoom.signals.extraction_processes import VideoProgress
from temporalzoom.signals.feature_files import SUFFIXES
from temporalzoom.signals.signal_files import ROW_SUFFIXES, SIGNAL_SUFFIXES
from temporalzoom.terminal import Screen


@dataclass
class Localized:
    """segments: by recording, the file's name without its suffix; durations: of these, in seconds; videos: the files of
    those that are videos; failed: why others could not be localized, or results not written, by path; written: the
    files made; classes: of the model."""

    segments: dict[str, Segments] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)
    videos: dict[str, Path] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    written: list[Path] = field(default_factory=list)
    classes: tuple[str, ...] = ()


def localize_files(
    paths: Sequence[Path],
    model: Path,
    *,
    overrides: Sequence[str] = (),
    budget: float | None = None,
    threshold: float | None = None,
    merge_gap: float | None = None,
    min_length: float | None = None,
    no_overlap: bool | None = None,
    top: int | None = None,
    stride: float | None = None,
    window: float | None = None,
    fps: float | None = None,
    backbone: str | None = None,
    out: Path | None = None,
    preview: Path | None = None,
    console: Console | None = None,
    device: str = "auto",
) -> Localized:
    """Segments of each file: a call of the Localizer. A file that fails is noted, the others go on.

    Args:
        paths: files; a folder stands for all feature files in it, and all videos in and below it; or for the tables of
            signals in it, where it has neither.
        model, budget: see `Localizer.load`.
        overrides: other settings of inference, `inference.key=value`.
        threshold, merge_gap, min_length, no_overlap, top, stride, window, fps, backbone: as in a call of the Localizer.
        out, preview: files to write, see `write_segments` and `write_preview`.
        console: for notes and progress.
    """
    console = console or Screen(stderr=True)
    files, result = _files(paths), Localized()
    others, videos = _by_kind(files, result.failed)
    _check_targets(out, preview, videos)
    localizer = Localizer.load(model, budget, device)
    localizer.options = change_inference(localizer.options, overrides, localizer.description.training)
    clock: dict[str, Any] = {"stride": stride, "window": window, "fps": fps, "backbone": backbone}
    # What is wrong with these is wrong for every file.
    localizer.check_scores([])
    reader = localizer.reader(**clock)
    rate = None
    if videos:
        _, rate = reader.backbone, reader.settings.fps
    wanted = localizer.selection(threshold=threshold, merge_gap=merge_gap, min_length=min_length, no_overlap=no_overlap)
    result.classes = localizer.classes

    def attempt(file: Path, progress: Callable[[int], None] | None = None) -> None:
        try:
            found = localizer.find(file, reader, progress=progress)
        except InputError as error:
            result.failed[str(file)] = str(error)
        except Exception as error:  # one file must not end the others
            result.failed[str(file)] = f"{file}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        else:
            if found.notes:
                console.print(f"{file.stem}: {' '.join(found.notes)}", markup=False, highlight=False, soft_wrap=True)
            kept = result.segments[file.stem] = select(found.segments, wanted, top)
            result.durations[file.stem] = found.duration
            if len(found.segments) and not len(kept):
                note = f"{file.stem}: {_why_nothing(found.segments, wanted)}"
                console.print(note, markup=False, highlight=False, soft_wrap=True)

    for file in track(others, "localizing", console):
        attempt(file)
    if videos:
        with VideoProgress(videos, rate, console, "localizing") as shown:
            for file in videos:
                attempt(file, shown.frames)
                shown.finished(file, result.failed.get(str(file)))
    # In the order in which the files were given.
    result.segments = {file.stem: result.segments[file.stem] for file in files if file.stem in result.segments}
    result.videos = {file.stem: file for file in videos if file.stem in result.segments}
    if not result.segments and len(files) == 1:
        raise InputError(result.failed[str(files[0])])
    _write(result, out, preview, fps, localizer.classes, console)
    return result


def _why_nothing(found: Segments, wanted: Selection) -> str:
    """Of what was found nothing is shown."""
    sure = drop_low(found, wanted.threshold)
    if len(sure):
        longest = merge_near(sure, wanted.merge_gap).durations.max()
        return f"no segment is as long as asked for; the longest lasts {longest:.3f} s (--min-length lowers the bar)"
    bar = "the threshold of its class" if isinstance(wanted.threshold, Mapping) else f"the score {wanted.threshold:g}"
    return f"no segment reaches {bar}; the highest is {found.scores.max():.3f} (--threshold lowers the bar)"


def _write(
    result: Localized,
    out: Path | None,
    preview: Path | None,
    fps: float | None,
    classes: Sequence[str],
    console: Console,
) -> None:
    """A file that cannot be written is noted: what was found in hours of decoding is not lost for it."""
    if out is not None and result.segments:
        try:
            rate = _export_rate(result, fps, console) if writing_format(out).frames else None
            result.written += write_segments(out, result.segments, fps=rate, media=result.videos)
        except InputError as error:
            result.failed[str(out)] = str(error)
    if preview is not None and result.videos:
        [(name, video)] = result.videos.items()
        try:
            preview_video(video, result.segments[name], preview, console, classes)
            result.written.append(preview)
        except InputError as error:
            result.failed[str(preview)] = str(error)


def preview_video(video: Path, segments: Segments, out: Path, console: Console, classes: Sequence[str] = ()) -> None:
    """A copy of a video, at most 480 pixels high, with its segments on a time line below; see `write_preview`."""
    from temporalzoom.viewer.preview import preview_size, write_preview

    info = probe(video)
    frames = ((frame.seconds, frame.image) for frame in read_frames(video, preview_size(info.height, info.width)))
    write_preview(frames, segments, out, duration=info.duration, classes=classes, fps=info.fps, console=console)


def _check_targets(out: Path | None, preview: Path | None, videos: Sequence[Path]) -> None:
    """Now, not after an hour of decoding."""
    if out is not None:
        writing_format(out)
    if preview is None:
        return
    from temporalzoom.viewer.preview import check_preview

    if len(videos) != 1:
        raise InputError(f"--preview: shows one video, here are {len(videos)}")
    check_preview(preview)
    if preview.resolve() == videos[0].resolve():
        raise InputError(f"--preview: {preview} is the video itself; choose another name")


def _export_rate(result: Localized, fps: float | None, console: Console) -> float | None:
    """Frames per second for formats that count frames at one rate for all recordings: that of the first video."""
    rates = [probe(video).fps for video in result.videos.values()]
    if len(set(rates)) > 1:
        note = (
            f'videos of different rates; frames are counted at {rates[0]:g} per second: <Video frameRate="{rates[0]:g}"'
        )
        console.print(f"{note} ...> shows them at their times", markup=False, highlight=False, soft_wrap=True)
    return rates[0] if rates else fps


def _files(paths: Sequence[Path]) -> list[Path]:
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
            inside += sorted(file for file in path.rglob("*") if _is_visible_video(file, path))
            # Beside features and videos a table is a result or an annotation; alone it is a signal.
            inside = inside or sorted(file for file in path.iterdir() if file.suffix.lower() in ROW_SUFFIXES)
            if not inside:
                known = " ".join(SIGNAL_SUFFIXES)
                raise InputError(f"{path}: no signal or feature file ({known}) and no video in this folder")
        elif path.is_file():
            inside = [path]
        else:
            raise InputError(f"{path}: no such file or folder")
        for file in inside:
            files.setdefault(file.resolve(), file)
    names: dict[str, Path] = {}
    for file in files.values():
        if file.stem in names:
            raise InputError(f"{file} and {names[file.stem]}: two files for the same recording")
        names[file.stem] = file
    return list(files.values())


def _is_visible_video(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix.lower() in VIDEO_SUFFIXES and file.is_file() and not hidden


def _by_kind(files: Sequence[Path], failed: dict[str, str]) -> tuple[list[Path], list[Path]]:
    """Files of features or signals, and videos; what is neither is noted in `failed`."""
    kinds: dict[bool, list[Path]] = {False: [], True: []}
    for file in files:
        try:
            kinds[is_video(file)].append(file)
        except InputError as error:
            failed[str(file)] = str(error)
    return kinds[False], kinds[True]
