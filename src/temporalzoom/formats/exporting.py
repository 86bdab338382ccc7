"""Results as files that people and other programs open; the name of the file chooses the format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from temporalzoom.errors import InputError
from temporalzoom.formats.interface import ExportOptions
from temporalzoom.formats.registry import writing_format, written_suffix
from temporalzoom.segments import Segments


def write_segments(
    path: str | Path,
    results: Mapping[str, Segments],
    *,
    fps: float | None = None,
    media: Mapping[str, str | Path] | None = None,
    durations: Mapping[str, float] | None = None,
) -> list[Path]:
    """Write `{recording: segments}` in the format that the suffix of `path` names; returns the files written.

    Where a file holds one recording (.vtt, .srt, .eaf, .audacity.txt, .deepethogram.csv, .simba.csv), several make a
    folder named as `path` without suffix, one file each. fps: frames per second; DeepEthogram and SimBA need it, and
    Label Studio gets frames of a video with it, else seconds of a signal. media: where the video or signal of a
    recording is, for tools that open it. durations: seconds of whole recordings, for files that hold them.
    """
    path = Path(path)
    if fps is not None and not 0 < fps < float("inf"):
        raise InputError(f"fps must be a positive number, got {fps!r}")
    format = writing_format(path)
    assert format.write is not None  # `writing_format` chooses among those that have one
    labels = sorted({label for segments in results.values() for label in segments.labels.tolist()})
    options = ExportOptions(fps, media or {}, durations or {}, tuple(labels))
    if format.one_file:
        format.write(path, results, options)
        return [path]
    targets = _targets(path, results)
    for target, recording in targets.items():
        format.write(target, {recording: results[recording]}, options)
    return list(targets)


def _targets(path: Path, results: Mapping[str, Segments]) -> dict[Path, str]:
    """`{file: recording}`: `path` itself for one recording, else files in a folder named as `path` without suffix."""
    if len(results) == 1:
        return {path: next(iter(results))}
    suffix = written_suffix(path)
    folder = path.with_name(path.name.removesuffix(suffix) or path.stem)
    targets = {folder / f"{_file_name(recording)}{suffix.lower()}": recording for recording in results}
    if len(targets) < len(results):
        raise InputError(f"{folder}: two videos would be written to the same file; names must differ")
    return targets


def _file_name(recording: str) -> str:
    """The name of a recording may contain separators; its file stays inside the folder all the same."""
    return recording.replace("/", "_").replace("\\", "_").replace("\0", "_")
