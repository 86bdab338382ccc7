"""From the `data` section of a configuration to samples.

Every source but the embedded benchmark is opened the same way: annotations that name each recording's subset, and a
store that reads a recording's features or raw signal. What differs between data sets is how they are opened. Videos
(`data.videos`) are not read here, only looked at: training decodes what it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from temporalzoom.config import DataConfig, ZoomBenchContextData, ZoomBenchData
from temporalzoom.datasets.check import (
    MISSING,
    Features,
    Problem,
    check_origins,
    check_rates,
    check_recording,
    load_and_check,
    raise_on_problems,
    rate_problems,
)
from temporalzoom.datasets.inertial_sets import open_sbhar, open_tug
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.soft_labels import with_soft_labels
from temporalzoom.datasets.splits import known_subject, with_subsets
from temporalzoom.datasets.video_sets import VIDEO_SETS, annotation_file, clipped, read_video_set, without_labels
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from temporalzoom.datasets.zoombench_context import ContextBench, make_zoombench_context
from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording, read_annotations
from temporalzoom.progress import track
from temporalzoom.segments import AGNOSTIC
from temporalzoom.signals.extraction import ExtractionSettings, find_videos
from temporalzoom.signals.feature_store import FeatureStore, open_features, open_sidecars
from temporalzoom.signals.pieces import Video, open_video
from temporalzoom.signals.preparation import (
    Framing,
    fill_missing,
    keypoint_count,
    pose_geometry,
    resize_features,
    with_derivatives,
)
from temporalzoom.signals.sidecars import Sidecar, common_settings, contradictions
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
    if isinstance(data, ZoomBenchData):
        drawn, scored = seed if data.seed is None else data.seed, "validation" if data.validation else "test"
        return LoadedData(
            _generated(data, drawn, "train") if train else None, _generated(data, drawn, scored) if test else None
        )
    store = None
    if takes_videos(data):
        annotations = open_annotations(data)
    else:
        annotations, store = open_source(data)
    if console is not None:
        for note in annotations.notes:
            console.print(note, markup=False, highlight=False, soft_wrap=True)
    annotations, classes = chosen_annotations(data, annotations, train=train, test=test)
    subsets = (data.train_subset, data.test_subset)
    if store is None:
        videos, problems = check_videos(data, annotations, classes, console)
        skipped = raise_on_problems(problems, allow_missing)
        splits = [_video_split(data, annotations, subset, videos, classes) for subset in subsets]
    else:
        features, problems = check_source(data, annotations, store, classes, console)
        skipped = raise_on_problems(problems, allow_missing)
        splits = [_split(data, annotations, subset, features, classes) for subset in subsets]
    if train and splits[0] is not None and data.soft_labels is not None:
        splits[0] = with_soft_labels(splits[0], data.soft_labels)
    return LoadedData(splits[0] if train else None, splits[1] if test else None, tuple(sorted(skipped)))


def _generated(data: ZoomBenchData, seed: int, subset: str) -> Split:
    if isinstance(data, ZoomBenchContextData):
        return make_zoombench_context(ContextBench.of(data), seed, subset)
    return make_zoombench(ZoomBench.of(data), seed, subset)


def takes_videos(data: DataConfig) -> bool:
    """Whether samples are videos; features, where they are given, are what counts."""
    return data.videos is not None and data.features is None and data.source in READERS


def _read_folder(data: DataConfig) -> Annotations:
    return read_annotations(annotation_file(data))


# Sources of one annotation file; their features are one folder or archive, `data.features`.
READERS: dict[str, Callable[[DataConfig], Annotations]] = {
    "folder": _read_folder,
    **dict.fromkeys(VIDEO_SETS, read_video_set),
}
# Sources of which annotations and signals belong together.
OPENERS: dict[str, Callable[[DataConfig], tuple[Annotations, FeatureStore]]] = {"sbhar": open_sbhar, "tug": open_tug}
RAW = {"sbhar", "tug"}  # signals: windows are always cut from them here


def open_source(data: DataConfig) -> tuple[Annotations, FeatureStore]:
    """Annotations of all recordings with the subsets asked for, and where their features are."""
    if data.source in READERS:
        annotations, store = READERS[data.source](data), _feature_store(data)
    else:
        annotations, store = OPENERS[data.source](data)
    if data.missing == "interpolate":
        store = _converted(store, fill_missing)
    if data.derivatives:
        store = _converted(store, lambda signal: with_derivatives(signal, data.missing == "interpolate"))
    if data.keypoints:
        store = _converted(store, lambda signal: pose_geometry(signal, data.keypoints, data.missing == "interpolate"))
    return _as_asked(annotations, data), store


def flag_channels(data: DataConfig, width: int) -> int:
    """How many of the channels of a signal of `width` say where values were missing. They are the last ones."""
    if data.missing == "error":
        return 0
    if data.keypoints:
        return keypoint_count(width, data.keypoints, True)
    return width // (3 if data.derivatives else 2)


def open_annotations(data: DataConfig) -> Annotations:
    """What `open_source` returns, for a source whose features lie elsewhere, without looking for them."""
    return _as_asked(READERS[data.source](data), data)


def _as_asked(annotations: Annotations, data: DataConfig) -> Annotations:
    if data.background:
        annotations = _without_labels(annotations, set(data.background))
    if data.clip:
        annotations = clipped(annotations)
    return with_subsets(annotations, data)


def _feature_store(data: DataConfig) -> FeatureStore:
    if data.features is None:
        raise InputError("data.features: the folder with one feature file per recording is needed")
    try:
        return open_features(data.features, data.prefix)
    except InputError as error:
        raise InputError(f"data.features: {error}") from None


def check_source(
    data: DataConfig,
    annotations: Annotations,
    store: FeatureStore,
    classes: tuple[str, ...],
    console: Console | None = None,
) -> tuple[dict[str, Features], list[Problem]]:
    """Features, or raw signals, by recording, and every problem of every recording."""
    features, problems = load_and_check(annotations, store, row_grid_for(data), classes=classes, console=console)
    sidecar_of = sidecars_of(data)
    if sidecar_of is not None:
        problems += check_origins(features, sidecar_of)
    if data.source == "folder" and data.resize is None:  # the field's sets have their own conventions
        named = {problem.video for problem in problems}
        problems += [p for p in check_rates(annotations, row_grid_for(data)) if p.video not in named]
    return features, problems


def sidecars_of(data: DataConfig) -> Callable[[str], Sidecar | None] | None:
    """How the features of a recording were made, where `tzoom extract` left word of it beside them."""
    if data.source not in READERS or data.features is None or data.raw:
        return None
    return open_sidecars(data.features, data.prefix)


def check_videos(
    data: DataConfig, annotations: Annotations, classes: tuple[str, ...], console: Console | None = None
) -> tuple[dict[str, Video], list[Problem]]:
    """The video of each recording, and every problem of every recording. Only headers are read."""
    for key, unwanted in (("raw", data.raw), ("resize", data.resize), ("missing", data.missing == "interpolate")):
        if unwanted:
            raise InputError(f"data.{key}: is for features and signals; with data.videos there are none")
    framing, folder = _video_framing(data), data.videos
    assert folder is not None
    try:
        files = {file.stem: file for file in find_videos([folder])}
    except InputError as error:
        raise InputError(f"data.videos: {error}") from None
    videos: dict[str, Video] = {}
    problems: list[Problem] = []
    for name, recording in track(annotations.recordings.items(), "opening", console):
        file = files.get(data.prefix + name)
        if file is None:
            problems.append(Problem(name, MISSING, f"no video {data.prefix}{name}.* in {folder}"))
            continue
        try:
            video = videos[name] = open_video(file, data.fps)
        except InputError as error:
            problems.append(Problem(name, "unreadable", str(error)))
            continue
        if video.frames < framing.window:
            detail = f"{file} has {video.frames} frames at {video.fps:.4g} per second, one window {framing.window}"
            problems.append(Problem(name, "too short", detail))
        elif recording.duration and abs(recording.duration - video.duration) > max(1.0, 0.03 * video.duration):
            detail = f"{file} is {video.duration:.2f} s long, the annotations say {recording.duration:.2f} s"
            problems.append(Problem(name, "length", detail))
        timed = replace(recording, duration=recording.duration or video.duration)
        grid = TimeGrid(framing.stride, framing.window, video.fps)
        problems += check_recording(timed, None, grid, classes=classes)
    problems += rate_problems({name: framing.stride / video.fps for name, video in videos.items()})
    return videos, problems


def _video_framing(data: DataConfig) -> Framing:
    stride, window = _stride_and_window(data)
    return Framing(stride=_whole("stride", stride, "frames"), window=_whole("window", window, "frames"))


def _whole(key: str, value: float, what: str) -> int:
    if value != int(value) or value < 1:
        raise InputError(f"data.{key}: must be a whole number of {what}, got {value:g}")
    return int(value)


def chosen_annotations(
    data: DataConfig, everything: Annotations, *, train: bool = True, test: bool = True
) -> tuple[Annotations, tuple[str, ...]]:
    """The recordings of the wanted subsets, and the classes in the file's order: all that it declares, or, where it has
    no such list, those that the training subset has."""
    training = _subset(everything, data.train_subset, data)
    present = {(recording.subset or "").casefold() for recording in everything.recordings.values()}
    seen = {str(label) for recording in training.recordings.values() for label in recording.segments.labels}
    classes = tuple(label for label in everything.classes if everything.declared or label in seen)
    if not seen:
        raise InputError(f"{_place(data)}: subset {data.train_subset!r} holds no annotated instance to learn from")
    recordings: dict[str, Recording] = {}
    if train:
        recordings |= training.recordings
    if test and (not train or data.test_subset.casefold() in present):
        recordings |= _subset(everything, data.test_subset, data).recordings
    return replace(everything, recordings=recordings), classes


def framing_of(data: DataConfig) -> Framing | None:
    """How windows are cut from raw rows; None where files hold features."""
    if not (data.raw or data.source in RAW):
        return None
    if data.resize is not None:
        raise InputError(f"data.resize: is for features; {data.source} with windows cut from a raw signal has none")
    stride, window = _stride_and_window(data)
    rows = "rows to cut a raw signal"
    return Framing(stride=_whole("stride", stride, rows), window=_whole("window", window, rows))


def grid_for(data: DataConfig) -> Callable[[Recording], TimeGrid]:
    """The time grid of a recording: from the file beside its features, which the configuration must not contradict;
    else stride and window from the configuration, fps from there or from the annotation file."""
    sidecar_of = sidecars_of(data)
    if sidecar_of is None:
        _stride_and_window(data)  # what is missing there is missing for every recording

    def grid(recording: Recording) -> TimeGrid:
        sidecar = None if sidecar_of is None else sidecar_of(recording.name)
        if sidecar is not None:
            for key, described, wanted in contradictions(sidecar, stride=data.stride, window=data.window, fps=data.fps):
                raise InputError(f"{sidecar.file}: {key} is {described:.6g}, data.{key} is {wanted:.6g}; leave it out")
            return sidecar.grid
        stride, window = _stride_and_window(data)
        fps = recording.fps if data.fps is None else data.fps
        if fps is None or fps <= 0:
            raise InputError(f"{_place(data)}: {recording.name} has no fps; add it there, or set data.fps")
        return TimeGrid(stride, window, fps)

    return grid


def row_grid_for(data: DataConfig) -> Callable[[Recording], TimeGrid]:
    """When each row of a recording's file was taken: the time grid, or the frames that windows are cut from."""
    grid = grid_for(data)
    return grid if framing_of(data) is None else lambda recording: TimeGrid(1, 1, grid(recording).fps)


def _stride_and_window(data: DataConfig) -> tuple[float, float]:
    if data.stride is None:
        raise InputError("data.stride: how many frames lie between two feature vectors? A number is needed")
    return data.stride, data.stride if data.window is None else data.window


def _split(
    data: DataConfig, annotations: Annotations, subset: str, features: dict[str, Features], classes: tuple[str, ...]
) -> Split | None:
    grid, rows, framing, sidecar_of = grid_for(data), row_grid_for(data), framing_of(data), sidecars_of(data)
    samples: list[Sample] = []
    sidecars: list[Sidecar | None] = []
    for recording in annotations.recordings.values():
        if (recording.subset or "").casefold() == subset.casefold() and recording.name in features:
            array = features[recording.name]
            sidecars.append(sidecar_of(recording.name) if sidecar_of is not None else None)
            known = recording.duration or (sidecars[-1] and sidecars[-1].duration)
            duration = known or rows(recording).duration(len(array))
            final = grid(recording)
            if data.resize is not None:
                array, final = resize_features(np.asarray(array), final, data.resize)
            what = (recording.name, array, final, duration, recording.segments, framing)
            samples.append(Sample(*what, ambiguous=recording.ambiguous, subject=known_subject(recording)))
    split = _labelled_split(data, samples, classes, common_settings(sidecars))
    names = annotations.extra.get("channels", ())  # a list beside the recordings, where files have names for columns
    return split if split is None else replace(split, channel_names=tuple(map(str, names)))


def _video_split(
    data: DataConfig, annotations: Annotations, subset: str, videos: dict[str, Video], classes: tuple[str, ...]
) -> Split | None:
    framing, nothing = _video_framing(data), np.empty((0, 0), np.float32)
    samples: list[Sample] = []
    for recording in annotations.recordings.values():
        if (recording.subset or "").casefold() == subset.casefold() and recording.name in videos:
            video = videos[recording.name]
            grid, duration = TimeGrid(framing.stride, framing.window, video.fps), recording.duration or video.duration
            what = (recording.name, nothing, grid, duration, recording.segments, framing)
            subject = known_subject(recording)
            samples.append(Sample(*what, video=video, ambiguous=recording.ambiguous, subject=subject))
    return _labelled_split(data, samples, classes, None)


def _labelled_split(
    data: DataConfig, samples: list[Sample], classes: tuple[str, ...], origin: ExtractionSettings | None
) -> Split | None:
    if data.class_agnostic:
        samples = [replace(s, segments=without_labels(s.segments), labelled=s.segments) for s in samples]
        classes = (AGNOSTIC,)
    return Split(tuple(samples), classes, origin) if samples else None


def _subset(annotations: Annotations, name: str, data: DataConfig) -> Annotations:
    try:
        return annotations.subset(name)
    except InputError as error:
        raise InputError(f"{_place(data)}: {error}") from None


def _without_labels(annotations: Annotations, labels: set[str]) -> Annotations:
    for label in labels - set(annotations.classes):
        raise InputError(f"data.background: no class {label!r}; there are {', '.join(annotations.classes)}")
    recordings = {
        name: replace(r, segments=r.segments[[label not in labels for label in r.segments.labels]])
        for name, r in annotations.recordings.items()
    }
    classes = tuple(label for label in annotations.classes if label not in labels)
    return replace(annotations, recordings=recordings, classes=classes)


def _converted(store: FeatureStore, conversion: Callable[[NDArray[np.float32]], Features]) -> FeatureStore:
    def read(name: str) -> Features | None:
        signal = store.read(name)
        return None if signal is None else conversion(np.asarray(signal))

    return replace(store, read=read)


def _place(data: DataConfig) -> str:
    return str(data.annotations if data.annotations is not None else data.root)
