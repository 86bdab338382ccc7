"""From the `data` section of a configuration to samples: the embedded benchmark, or one JSON and one feature folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.console import Console

from temporalzoom.config import DataConfig
from temporalzoom.datasets.annotations import Annotations, Recording, read_annotations
from temporalzoom.datasets.check import Features, Problem, load_and_check, raise_on_problems
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.zoombench import make_zoombench
from temporalzoom.errors import InputError
from temporalzoom.timegrid import TimeGrid


@dataclass(frozen=True)
class LoadedData:
    """The training and the test subset (a subset nobody asked for, or that the file does not have, is None).

    skipped: names of recordings left out because `allow_missing` was set.
    """

    train: Split | None
    test: Split | None
    skipped: tuple[str, ...] = ()


def load_data(
    data: DataConfig,
    seed: int = 0,
    *,
    train: bool = True,
    test: bool = True,
    allow_missing: bool = False,
    console: Console | None = None,
) -> LoadedData:
    """Read what is asked for. Everything wrong with it raises one `DataProblems` that lists it all."""
    if data.source == "zoombench":
        return LoadedData(
            make_zoombench(data.zoombench, seed, "train") if train else None,
            make_zoombench(data.zoombench, seed, "test") if test else None,
        )
    annotations, classes = chosen_annotations(data, train=train, test=test)
    features, problems = check_folder(data, annotations, classes, console)
    skipped = raise_on_problems(problems, allow_missing)
    splits = [_split(data, annotations, subset, features, classes) for subset in (data.train_subset, data.test_subset)]
    return LoadedData(splits[0] if train else None, splits[1] if test else None, tuple(sorted(skipped)))


def check_folder(
    data: DataConfig, annotations: Annotations, classes: tuple[str, ...], console: Console | None = None
) -> tuple[dict[str, Features], list[Problem]]:
    """Features by recording, and every problem of every recording."""
    if data.features is None:
        raise InputError("data.features: the folder with one feature file per recording is needed")
    if not data.features.is_dir():
        raise InputError(f"data.features: {data.features} is not a folder")
    return load_and_check(annotations, data.features, grid_for(data), classes=classes, console=console)


def chosen_annotations(
    data: DataConfig, *, train: bool = True, test: bool = True
) -> tuple[Annotations, tuple[str, ...]]:
    """The recordings of the wanted subsets, and the classes in the file's order: all that it declares, or, where it has
    no such list, those that the training subset has."""
    if data.annotations is None:
        raise InputError("data.annotations: the annotation file (JSON) is needed")
    everything = read_annotations(data.annotations)
    training = _subset(everything, data.train_subset, data)
    present = {(recording.subset or "").casefold() for recording in everything.recordings.values()}
    seen = {str(label) for recording in training.recordings.values() for label in recording.segments.labels}
    classes = tuple(label for label in everything.classes if everything.declared or label in seen)
    if not seen:
        raise InputError(f"{data.annotations}: subset {data.train_subset!r} holds no annotated instance to learn from")
    recordings: dict[str, Recording] = {}
    if train:
        recordings |= training.recordings
    if test and (not train or data.test_subset.casefold() in present):
        recordings |= _subset(everything, data.test_subset, data).recordings
    return replace(everything, recordings=recordings), classes


def _subset(annotations: Annotations, name: str, data: DataConfig) -> Annotations:
    try:
        return annotations.subset(name)
    except InputError as error:
        raise InputError(f"{data.annotations}: {error}") from None


def grid_for(data: DataConfig) -> Callable[[Recording], TimeGrid]:
    """The time grid of a recording: stride and window from the configuration, fps from there or from the file."""
    if data.stride is None:
        raise InputError("data.stride: how many frames lie between two feature vectors? A number is needed")
    stride, window = data.stride, data.stride if data.window is None else data.window

    def grid(recording: Recording) -> TimeGrid:
        fps = recording.fps if data.fps is None else data.fps
        if fps is None or fps <= 0:
            raise InputError(f"{data.annotations}: {recording.name} has no fps; add it there, or set data.fps")
        return TimeGrid(stride, window, fps)

    return grid


def _split(
    data: DataConfig, annotations: Annotations, subset: str, features: dict[str, Features], classes: tuple[str, ...]
) -> Split | None:
    grid = grid_for(data)
    samples = []
    for recording in annotations.recordings.values():
        if (recording.subset or "").casefold() == subset.casefold() and recording.name in features:
            array = features[recording.name]
            duration = recording.duration or grid(recording).duration(len(array))
            samples.append(Sample(recording.name, array, grid(recording), duration, recording.segments))
    return Split(tuple(samples), classes) if samples else None
