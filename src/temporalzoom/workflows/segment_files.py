"""Segments to go on with: from any file that holds some (results, annotations, other tools), or from a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording, import_annotations, read_annotations, read_predictions
from temporalzoom.formats.registry import is_readable, reading_format
from temporalzoom.inference.selection import Selection, select
from temporalzoom.json_tree import parse_json
from temporalzoom.segments import Segments
from temporalzoom.workflows.localize import localize_files


@dataclass(frozen=True)
class FoundSegments:
    """By recording: its segments, and its duration, None where no file says it. failed: why others are missing.
    scored: whether scores tell segments apart; annotations and files of most other tools hold none."""

    segments: dict[str, Segments]
    durations: dict[str, float | None]
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)
    scored: bool = True


def read_segment_files(paths: Sequence[Path], *, fps: float | None = None) -> Annotations:
    """The recordings of prediction files, annotation files and files of other tools, each recording once.

    fps: for formats that count frames, such as Label Studio's. A folder stands for the files in it. Where a file says
    nothing about scores they are 1, where it says nothing about durations they are None.
    """
    found: dict[str, Recording] = {}
    sources: dict[str, Path] = {}
    classes: dict[str, None] = {}
    notes: list[str] = []
    files = list(_files(paths))
    if fps is not None and all(_own_json(path) is not None for path in files):
        raise InputError("--fps: for tools that count frames; these files count seconds")
    for path in files:
        read = _read(path, fps)
        for name, recording in read.recordings.items():
            if name in found:
                raise InputError(f"{path}: recording {name!r} is in {sources[name]} already")
            if recording.extra.get("unlabelled"):
                notes.append(f"{name}: left out, {path} has no annotations of it")
                continue
            found[name], sources[name] = recording, path
        classes.update(dict.fromkeys(read.classes))
        notes += read.notes
    if not found:
        raise InputError(f"{', '.join(map(str, paths))}: no recording in it")
    return Annotations(found, tuple(classes), notes=tuple(dict.fromkeys(notes)))


def found_segments(
    paths: Sequence[Path],
    model: Path | None = None,
    *,
    fps: float | None = None,
    settings: Sequence[str] = (),
    device: str | None = None,
    console: Console | None = None,
    **selection: Any,
) -> FoundSegments:
    """The segments of files that hold some; with a model, those that it finds in recordings.

    fps: see `read_segment_files`. settings, device: of the model. selection: see `Selection.changed`; without a model
    what is not given changes nothing, and a threshold is refused where the files have no scores.
    """
    if model is not None:
        if fps is not None:
            raise InputError("--fps: for files that count frames; a --model takes recordings")
        found = localize_files(paths, model, overrides=settings, device=device or "auto", console=console, **selection)
        return FoundSegments(found.segments, dict(found.durations), found.classes, failed=found.failed)
    for option, given in (("--set", settings), ("--device", device)):
        if given:
            raise InputError(f"{option}: goes with --model; these files hold segments already")
    read = read_segment_files(paths, fps=fps)
    segments = read.truth()
    scored = any((each.scores != 1).any() for each in segments.values())
    if not scored and selection.get("threshold") is not None:
        raise InputError(f"--threshold: the segments of {paths[0]} have no scores; .json files of results have")
    wanted = Selection().changed(**selection)
    chosen = {name: select(each, wanted) for name, each in segments.items()}
    durations = {name: recording.duration for name, recording in read.recordings.items()}
    return FoundSegments(chosen, durations, read.classes, read.notes, scored=scored)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """JSON files of a folder one by one, since their content decides; other folders as they are."""
    for path in paths:
        inside = sorted(file for file in path.iterdir() if is_readable(file)) if path.is_dir() else []
        if inside and all(file.suffix.lower() == ".json" for file in inside):
            yield from inside
        else:
            yield path


def _read(path: Path, fps: float | None) -> Annotations:
    document = _own_json(path)
    if document is not None and "results" in document:
        predictions = read_predictions(path)
        labels = sorted({str(label) for segments in predictions.values() for label in segments.labels})
        recordings = {name: Recording(name, segments=segments) for name, segments in predictions.items()}
        return Annotations(recordings, tuple(labels))
    if document is not None:
        return read_annotations(path, allow_unlabelled=True)
    # Label Studio tasks may hold a model's results, those of `tzoom localize` among them.
    results_too = path.is_file() and "predictions" in reading_format(path).options
    return import_annotations([path], fps=fps, predictions=results_too)


def _own_json(path: Path) -> dict[str, Any] | None:
    """The content of a JSON file in the field's form; None: another tool's file, or none that can be read."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        document = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    recognizes = reading_format(path).recognizes
    if not isinstance(document, dict) or (recognizes is not None and recognizes(path)):
        return None
    return document
