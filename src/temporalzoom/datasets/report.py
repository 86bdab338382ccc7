"""`tzoom data check`: what a data set holds and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rich.console import Console, RenderableType
from rich.text import Text

from temporalzoom.config import DataConfig, ZoomBenchData
from temporalzoom.datasets.check import MISSING, Features, Problem, check_recording, problem_table
from temporalzoom.datasets.fingerprint import Fingerprint, fingerprint, in_words
from temporalzoom.datasets.samples import Sample
from temporalzoom.datasets.sharpness import Sharpness, sharpness
from temporalzoom.datasets.sources import (
    READERS,
    check_source,
    chosen_annotations,
    framing_of,
    grid_for,
    load_data,
    open_annotations,
    open_source,
    row_grid_for,
)
from temporalzoom.datasets.statistics import describe
from temporalzoom.datasets.zoombench_files import split_annotations
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, Recording
from temporalzoom.timegrid import TimeGrid


def report_data(
    data: DataConfig, seed: int = 0, console: Console | None = None
) -> tuple[list[RenderableType], list[Problem]]:
    """Tables and notes for the terminal, the last one listing the problems if there are any.

    Unlike training, this does without the features of a data set that has them in a folder of their own: it says that
    they were not checked, and reports on the annotations.
    """
    if isinstance(data, ZoomBenchData):
        return _report_zoombench(data, seed), []
    features: dict[str, Features] | None
    everything, store, absence = None, None, ""
    if data.source in READERS and data.features is None:
        everything = open_annotations(data)
        absence = "data.features is not set"
    else:
        try:
            everything, store = open_source(data)
        except InputError as error:
            if data.source not in READERS or not str(error).startswith("data.features:"):
                raise
            everything, absence = open_annotations(data), str(error)
    annotations, classes = chosen_annotations(data, everything)
    if store is not None:
        features, problems = check_source(data, annotations, store, classes, console)
        values = _sharpness(data, annotations, features)
        annotations = _with_durations(data, annotations, features)
    else:
        features, problems, values = None, _annotation_problems(data, annotations, classes), None
        if data.features is not None:  # asked for, but not there
            problems.append(Problem("all", MISSING, absence))
    notes = [*annotations.notes, *([f"features were not checked: {absence}"] if absence else [])]
    if features is not None and not problems:
        notes += in_words(_fingerprint(data, annotations, features))
    parts: list[RenderableType] = [*describe(annotations, features, values), *(Text(note) for note in notes)]
    return [*parts, problem_table(problems)] if problems else parts, problems


def _fingerprint(data: DataConfig, annotations: Annotations, features: dict[str, Features]) -> Fingerprint:
    """Of what is trained on."""
    rows, wanted = row_grid_for(data), data.train_subset.casefold()
    learned = [r for r in annotations.recordings.values() if (r.subset or "").casefold() == wanted]
    rates = {recording.name: 1 / rows(recording).step_seconds for recording in learned}
    return fingerprint(learned, features.__getitem__, rates)


def _report_zoombench(data: DataConfig, seed: int) -> list[RenderableType]:
    loaded = load_data(data, seed)
    assert loaded.train is not None and loaded.test is not None
    splits = {"train": loaded.train, "test": loaded.test}
    parts = [split_annotations(split, name) for name, split in splits.items()]
    annotations = Annotations(parts[0].recordings | parts[1].recordings, loaded.train.classes)
    values: dict[str | None, Sharpness] = {
        name: sharpness((partial(_features_of, s), s.segments, s.grid) for s in split.samples)
        for name, split in splits.items()
    }
    return [*describe(annotations, {s.name: s.features for s in loaded.train.samples + loaded.test.samples}, values)]


def _features_of(sample: Sample) -> Features:
    return sample.features


def _sharpness(
    data: DataConfig, annotations: Annotations, features: dict[str, Features]
) -> dict[str | None, Sharpness] | None:
    """By subset; None where a recording has no time grid, which is among the problems then."""
    grid, framing = grid_for(data), framing_of(data)

    def read(name: str) -> Features:
        return features[name] if framing is None else framing.cut(features[name])

    present = [r for r in annotations.recordings.values() if r.name in features]
    try:
        grids = {recording.name: grid(recording) for recording in present}
    except ValueError:
        return None
    return {
        subset: sharpness((partial(read, r.name), r.segments, grids[r.name]) for r in present if r.subset == subset)
        for subset in dict.fromkeys(recording.subset for recording in annotations.recordings.values())
    }


def _with_durations(data: DataConfig, annotations: Annotations, features: dict[str, Features]) -> Annotations:
    """Where the annotations do not say how long a recording is, its features do."""
    rows = row_grid_for(data)

    def timed(recording: Recording) -> Recording:
        if recording.duration is not None or recording.name not in features:
            return recording
        try:
            return replace(recording, duration=rows(recording).duration(len(features[recording.name])))
        except ValueError:  # no time grid, which is among the problems
            return recording

    return replace(annotations, recordings={name: timed(r) for name, r in annotations.recordings.items()})


def _annotation_problems(data: DataConfig, annotations: Annotations, classes: tuple[str, ...]) -> list[Problem]:
    """What can be seen without features."""
    grid: Callable[[Recording], TimeGrid] | None = None if data.stride is None else grid_for(data)

    def of(recording: Recording) -> list[Problem]:
        try:
            return check_recording(recording, None, grid and grid(recording), classes=classes)
        except ValueError as error:
            found = check_recording(recording, None, None, classes=classes)
            return [Problem(recording.name, "time grid", str(error)), *found]

    return [problem for recording in annotations.recordings.values() for problem in of(recording)]
