"""`tzoom clips`: the segments of a video as files of their own, one each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.interrupts import interruptible
from temporalzoom.progress import Progress
from temporalzoom.segments import Segments
from temporalzoom.segments.columns import check_classes
from temporalzoom.terminal import Screen
from temporalzoom.workflows.clip_writing import Source, copy_clip, open_source, write_clip
from temporalzoom.workflows.segment_files import FoundSegments, found_segments

LONGEST_LABEL, LONGEST_NAME = 60, 120  # bytes of a file's name, of which there may be 255


@dataclass
class Clips:
    """written: the files, by start; failed: why others are not there, by file; notes: what a user should know."""

    written: list[Path] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def cut_found(
    video: Path,
    source: Path | None,
    out: Path,
    *,
    model: Path | None = None,
    labels: Sequence[str] = (),
    top: int | None = None,
    padding: float = 0.0,
    audio: bool = True,
    copy: bool = False,
    console: Console | None = None,
    **options: Any,
) -> Clips:
    """Clips of the segments that a file holds for a video, or that a model finds in it.

    Args:
        video: to cut.
        source: a file with segments, see `read_segment_files`; or `model`, one of the two.
        out: folder of the clips.
        labels: of these classes only; none: of all.
        top: the highest scores only, of those classes.
        padding, audio, copy: see `cut_clips`.
        options: see `found_segments`.
    """
    if (source is None) == (model is None):
        raise InputError("give either a file with the segments of the video, or --model to find them")
    console = console or Screen(stderr=True)
    cut = open_source(video)  # what is no video is refused before anything else
    found = found_segments([video if source is None else source], model, console=console, **options)
    result = Clips(notes=list(found.notes))
    name = _recording(found, video, source, result.notes)
    segments = found.segments[name]
    try:
        check_classes(labels, sorted({*found.classes, *map(str, segments.labels)}))
    except ValueError as error:
        raise InputError(f"--label: {error}") from None
    if top is not None and not found.scored:
        raise InputError(f"--top: the segments of {source} have no scores; .json files of results have")
    late = segments[segments.starts >= cut.duration]
    if len(late):
        message = f"{len(late)} segments start after the end of {video} at {cut.duration:.2f} s, the first at"
        raise InputError(f"{source or video}: {message} {late.starts.min():.2f} s; are they of this video?")
    segments = segments.filter(labels=list(labels)) if labels else segments
    segments = segments if top is None else segments.top(top)
    cut_clips(cut, segments.sort("start"), out, result, padding=padding, audio=audio, copy=copy, console=console)
    return result


def cut_clips(
    video: Source,
    segments: Segments,
    out: Path,
    result: Clips,
    *,
    padding: float = 0.0,
    audio: bool = True,
    copy: bool = False,
    console: Console,
) -> None:
    """One file for each segment, in their order. One that fails is noted, the others go on; none is left half.

    padding: seconds more before and after, as far as the video goes. audio: with sound, where there is any. copy: see
    `copy_clip`.
    """
    segments = segments.clip(video.duration)
    lengths = segments.durations + 2 * padding
    expected = max(float(lengths.sum()) * video.fps, 1.0)
    with interruptible(at_once=True), Progress(console, "cutting", expected, "frames") as progress:
        for (start, end, _, _), name in zip(segments, clip_names(video.path.stem, segments), strict=True):
            first, last = max(start - padding, 0.0), min(end + padding, video.duration)
            try:
                if copy:
                    copy_clip(video, first, last, out / name, audio=audio)
                    progress.advance((last - first) * video.fps)
                else:
                    write_clip(video, first, last, out / name, audio=audio, progress=progress.advance)
            except InputError as error:
                result.failed[name] = str(error)
            else:
                result.written.append(out / name)


def clip_names(video: str, segments: Segments) -> list[str]:
    """`match7_12.300-14.100_serve.mp4` for each segment; a name never leaves its folder, and none occurs twice.

    Of a label letters, digits and hyphens stay, in any script; what lies between them is an underscore.
    """
    names: list[str] = []
    taken: set[str] = set()
    stem = _shortened(video.replace("/", "_").replace("\\", "_"), LONGEST_NAME)
    for start, end, label, _ in segments:
        safe = _shortened(re.sub(r"[^\w-]+", "_", label).strip("_") or "segment", LONGEST_LABEL)
        base = name = f"{stem}_{start:.3f}-{end:.3f}_{safe}"
        number = 1
        while name.casefold() in taken:  # some file systems do not tell upper from lower case
            number += 1
            name = f"{base}_{number}"
        taken.add(name.casefold())
        names.append(f"{name}.mp4")
    return names


def _shortened(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _recording(found: FoundSegments, video: Path, source: Path | None, notes: list[str]) -> str:
    """Which of the recordings is the video: the one of its name, or the only one."""
    names = list(found.segments)
    for name in (video.stem, video.name):
        if name in found.segments:
            return name
    if len(names) == 1:
        notes.append(f"{source}: its only recording, {names[0]!r}, is taken for {video.name}")
        return names[0]
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise InputError(f"{source}: no recording {video.stem!r}; it has {shown}")
