"""Localizer: load a trained model once, call it on videos, files and arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from temporalzoom.config import InferenceConfig, PerClass, check_class_names
from temporalzoom.errors import InputError
from temporalzoom.inference.decoding import Decoded, decode_parts
from temporalzoom.inference.found import Found
from temporalzoom.inference.fusion import VideoScores, check_scores, fuse, labels_of, read_video_scores
from temporalzoom.inference.members import TIOU, fuse_members
from temporalzoom.inference.onnx_network import OnnxNetwork
from temporalzoom.inference.recordings import NetworkInput, Opened, RecordingReader
from temporalzoom.inference.selection import Selection, select
from temporalzoom.inference.windows import Windows
from temporalzoom.models import Outputs
from temporalzoom.models.runtime import move_network
from temporalzoom.runs.checkpoint import find_checkpoint, load_network, read_info
from temporalzoom.runs.description import ModelDescription
from temporalzoom.runs.members import read_members
from temporalzoom.segments import AGNOSTIC, Segments
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.signals.feature_rows import FeatureRows
from temporalzoom.signals.preparation import count_not_finite, has_numbers
from temporalzoom.timegrid import TimeGrid


class Localizer:
    """A trained model that finds segments in recordings.

    All that training did to its recordings is done here too: a video becomes features by the same backbone, a raw
    signal is cut into windows, gaps are filled, keypoints become distances, features are resized, and segments get the
    labels of a classifier (`inference.video_scores`).

    >>> import numpy as np
    >>> from temporalzoom import Localizer
    >>> localizer = Localizer.load("runs/tennis")
    >>> segments = localizer("match9.mp4")                                  # a video
    >>> segments = localizer("features/match9.npy", threshold=0.1)          # a file: .npy .npz .pt .h5 .csv .parquet
    >>> segments = localizer(np.load("features/match9.npy"), top=5)         # an array
    >>> for start, end, label, score in segments.sort("start"):
    ...     print(f"{start:7.2f} {end:7.2f} {label} {score:.2f}")

    Args:
        model: the network, features (B, T, F) and a mask (B, T) -> Outputs.
        description: all that is known about it.
        backbone: the one that was trained together with the network; None: it was trained on features.

    Attributes:
        options: settings of inference (`inference.*`), those of training until others are assigned. A class that they
            name and the model does not have raises InputError. What is changed is changed for all members.
        members: of a run of several networks (`tzoom fit`), a Localizer each: what they find is fused, and `model` is
            the first one's. Empty for one network.
    """

    def __init__(self, model: nn.Module, description: ModelDescription, backbone: Backbone | None = None) -> None:
        self.model, self.description, self.backbone = model.eval(), description, backbone
        self._scores: tuple[Path, VideoScores] | None = None  # of the file that was read last
        self.members: tuple[Localizer, ...] = ()
        self.fusion_tiou = TIOU
        self._options = description.inference
        self.options = description.inference  # checks it
        self.device = "auto"  # as `to` was given it
        self._built: dict[str, Backbone] = {}

    @classmethod
    def load(cls, path: str | Path, budget: float | None = None, device: str = "auto") -> Localizer:
        """A model from disk.

        Args:
            path: a run folder (its best or latest checkpoint, or all of its members), a checkpoint folder, or a file of
                `tzoom export`.
            budget: for a model with adaptive depth, the share of positions that may go deep; None: as it was trained.
                An exported file keeps the one it was exported with.
            device: where the network runs: auto (a GPU if there is one), cpu, cuda or mps.
        """
        if Path(path).suffix == ".onnx":
            if budget is not None:
                raise InputError(f"budget: {path} has its own; export it again with --budget {budget:g}")
            network = OnnxNetwork(Path(path))
            return cls(network, network.description).to(device)
        several = read_members(Path(path))
        if several is not None:
            loaded = [cls.load(member, budget, device) for member in several.paths(Path(path))]
            return cls.of_members(loaded, several.tiou, several.thresholds)
        checkpoint = find_checkpoint(Path(path))
        description = read_info(checkpoint)
        model, trained_backbone = load_network(checkpoint, description, budget)
        return cls(model, description, trained_backbone).to(device)

    @classmethod
    def of_members(
        cls, members: Sequence[Localizer], tiou: float = TIOU, thresholds: Mapping[str, float] | None = None
    ) -> Localizer:
        """Several networks for the same classes as one.

        Args:
            members: a Localizer each.
            tiou: from which overlap on two of their segments are the same instance.
            thresholds: lowest fused score that is shown, by class; None: those of the first member.
        """
        first = members[0]
        for other in members[1:]:
            if other.classes != first.classes:
                raise InputError(f"members find different classes: {first.classes} and {other.classes}")
        fused = cls(first.model, first.description, first.backbone)
        if thresholds:
            fused.options = first.options.model_copy(update={"threshold": dict(thresholds)})
        fused.members, fused.fusion_tiou, fused.device = tuple(members), tiou, first.device
        return fused

    def to(self, device: str) -> Localizer:
        """Its networks move to a device: `auto` (the fastest that is there), `cpu`, `cuda` or `mps`."""
        for member in self.members:
            member.to(device)
        self.device = device
        move_network(self.model, device)
        if self.backbone is not None:
            self.backbone.to(device)
        return self

    @property
    def options(self) -> InferenceConfig:
        return self._options

    @options.setter
    def options(self, options: InferenceConfig) -> None:
        if options.video_scores is None:  # else its file has the classes, see `check_scores`
            check_class_names(options.per_class, self.classes)
        if self.members:
            before = dict(self._options)
            changed = {key: value for key, value in options if value != before[key]}
            for member in self.members:
                member.options = member.options.model_copy(update=changed)
        self._options = options

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels, in the order of the network's outputs."""
        return self.description.classes

    @property
    def grid(self) -> TimeGrid:
        """The clock of the training data."""
        return self.description.grid

    def __call__(
        self,
        recording: str | Path | ArrayLike,
        *,
        threshold: PerClass | None = None,
        merge_gap: PerClass | None = None,
        min_length: PerClass | None = None,
        no_overlap: bool | None = None,
        top: int | None = None,
        grid: TimeGrid | None = None,
        stride: float | None = None,
        window: float | None = None,
        fps: float | None = None,
        duration: float | None = None,
        name: str | None = None,
        backbone: str | None = None,
        progress: Callable[[int], None] | None = None,
        note: Callable[[str], None] | None = None,
    ) -> Segments:
        """The segments of one recording that a user wants to see, highest score first.

        Args:
            recording: the path of a video, of a feature file or of a raw signal; or an array, (N, C) rows of a raw
                signal for a model that was trained on raw signals, else (T, C) features.
            threshold: lowest score; None: `inference.threshold` of the model. Like the next two a number for all
                classes, or a mapping from class to number, which leaves the classes that it does not name as they are.
            merge_gap: segments of one class with a gap of at most this many seconds become one.
            min_length: in seconds; shorter segments are dropped.
            no_overlap: of segments that overlap only the best stay; see `temporalzoom.inference.selection`.
            top: at most this many segments.
            grid, stride, window, fps: the clock of the recording where it is not that of training, as a whole or one by
                one. A video, and a file with a description beside it, need none.
            duration: of the recording, in seconds; None: what is known of it, or what its rows cover.
            name: of the recording, by which `inference.video_scores` knows it; None: the file's name without suffix,
                and without the prefix of the training data's files.
            backbone: name of what turns a video into features; None: what did so for training.
            progress: called with the number of frames, now and then while a video is decoded.
            note: called with each sentence about how a file was read: unit of time, gaps, another rate.

        Returns:
            Segments in seconds.

        A recording that does not fit the model raises `InputError` with one line that says why.
        """
        wanted = self.selection(threshold=threshold, merge_gap=merge_gap, min_length=min_length, no_overlap=no_overlap)
        reader = self.reader(grid=grid, stride=stride, window=window, fps=fps, backbone=backbone)
        found = self.find(recording, reader, duration, name, progress)
        if note is not None:
            for sentence in found.notes_on(wanted):
                note(sentence)
        return select(found.segments, wanted, top)

    def selection(
        self,
        *,
        threshold: PerClass | None = None,
        merge_gap: PerClass | None = None,
        min_length: PerClass | None = None,
        no_overlap: bool | None = None,
    ) -> Selection:
        """What a user wants to see, by the model's settings and what a call says; wrong classes raise InputError."""
        given = Selection.of(self.options).changed(
            threshold=threshold, merge_gap=merge_gap, min_length=min_length, no_overlap=no_overlap
        )
        if any(isinstance(value, Mapping) for value in vars(given).values()):
            self.check_scores([])  # which reads them
            scores = None if self.options.video_scores is None else self._scores
            check_class_names(vars(given), self.classes if scores is None else labels_of(scores[1]))
        return given

    def find(
        self,
        recording: str | Path | ArrayLike,
        reader: RecordingReader,
        duration: float | None = None,
        name: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Found:
        """Everything in one recording, before anything is selected; arguments as in a call, reader: see `reader`."""
        self._refuse_oracle(recording)
        if name is None and isinstance(recording, str | Path):
            name = Path(recording).stem.removeprefix(self.description.prefix)
        with _naming(recording):
            if self.options.video_scores is not None:
                self._scores_of(name)  # what is missing is missing before the work
            return self._found(reader.open(recording, progress), reader, duration, name)

    def _found(self, opened: Opened, reader: RecordingReader, duration: float | None, name: str | None) -> Found:
        """All segments of a recording that was read, down to `inference.min_score`; those of members fused."""
        if not self.members:
            prepared = reader.prepare(opened, duration)
            found, cut = self.decoded(self._windows(prepared.features), prepared.grid, prepared.duration, name)
            return Found(found, prepared.duration, prepared.notes, cut)
        parts = [member._found(opened, member._like(reader), duration, name) for member in self.members]
        together, cut = self.fused([part.segments for part in parts]), max(part.cut for part in parts)
        return Found(together, parts[0].duration, opened.notes, cut)

    def fused(self, parts: Sequence[Segments]) -> Segments:
        """What the members found in one recording, as one."""
        return fuse_members(parts, self.fusion_tiou, self.options.min_score)

    def _like(self, reader: RecordingReader) -> RecordingReader:
        """For this model, what `reader` is for another one."""
        return RecordingReader(self.description, self._backbone, **reader.asked, backbone=reader.name)

    def reader(
        self,
        *,
        grid: TimeGrid | None = None,
        stride: float | None = None,
        window: float | None = None,
        fps: float | None = None,
        backbone: str | None = None,
    ) -> RecordingReader:
        """What reads recordings for this model; arguments as in a call. Wrong ones raise InputError here."""
        if grid is not None:
            if any(given is not None for given in (stride, window, fps)):
                raise InputError("grid: is stride, window and fps at once; leave those out")
            stride, window, fps = grid.stride, grid.window, grid.fps
        return RecordingReader(self.description, self._backbone, stride, window, fps, backbone)

    def prepare(self, recording: str | Path | ArrayLike, *, grid: TimeGrid | None = None) -> NetworkInput:
        """What the network takes of a recording, features (T, F) and their grid, for code that needs raw outputs."""
        reader = self.reader(grid=grid)
        with _naming(recording):
            prepared = reader.read(recording)
            return replace(prepared, features=np.asarray(prepared.features, np.float32))

    def outputs(self, features: ArrayLike) -> Outputs:
        """Raw outputs in grid units, on the CPU.

        Args:
            features: (T, F), ready for the network: see `prepare`.

        Returns:
            Outputs with tensors of (T, ...).
        """
        return Outputs.concatenate(list(self._windows(features)))

    def _windows(self, features: ArrayLike | FeatureRows) -> Windows:
        """Raw outputs part by part, as often as they are asked for."""
        self._refuse_oracle(features)
        if self.members:
            raise InputError(f"{len(self.members)} members have no common raw outputs; ask one of `members`")
        array, options = self.checked(features), self.options
        return Windows(self.model, array, options.max_length, options.precision)

    def segments(self, outputs: Outputs, grid: TimeGrid, duration: float, name: str | None = None) -> Segments:
        """All that raw outputs hold, down to `inference.min_score`, highest score first; arguments as in a call."""
        return self.decoded([outputs], grid, duration, name).segments

    def decoded(self, parts: Iterable[Outputs], grid: TimeGrid, duration: float, name: str | None = None) -> Decoded:
        """As `segments`, of raw outputs that come in parts; with the highest score that a limit left out."""
        found = decode_parts(parts, self.classes, grid, duration, self.options)
        if self.options.video_scores is None:
            return found
        return Decoded(fuse(found.segments, self._scores_of(name)), found.cut)

    def check_scores(self, names: Sequence[str]) -> None:
        """Complain now, not after the work, where `inference.video_scores` cannot label these recordings."""
        path = self.options.video_scores
        if path is None:
            return
        if self.classes != (AGNOSTIC,):
            raise InputError("inference.video_scores: gives labels to a model without; train with data.class_agnostic")
        if self._scores is None or self._scores[0] != path:
            try:
                self._scores = path, read_video_scores(path)
            except InputError as error:
                raise InputError(f"inference.video_scores: {error}") from None
        check_class_names(self.options.per_class, labels_of(self._scores[1]))
        check_scores(names, self._scores[1], path)

    def _scores_of(self, name: str | None) -> Mapping[str, float]:
        """Of each class, for a recording that has them; others raise InputError."""
        if name is None:
            raise InputError("inference.video_scores: knows recordings by their names; name=... is needed")
        self.check_scores([name])
        assert self._scores is not None
        return self._scores[1][name]

    def checked(self, features: ArrayLike | FeatureRows) -> NDArray[np.floating] | FeatureRows:
        """Features (T, F) that the network can take, not copied where they are numbers; others raise InputError."""
        array: Any = features if has_numbers(features) else np.asarray(features, np.float32)
        if array.ndim != 2 or not len(array):
            raise InputError(f"features must be an array of at least one position, (T, F); got shape {array.shape}")
        width = self.description.input_width
        if array.shape[1] != width:
            raise InputError(f"features have {array.shape[1]} channels, the model was trained with {width}")
        wrong = count_not_finite(array)
        if wrong:
            raise InputError(f"features hold {wrong} values that are NaN or infinite")
        return array

    def _backbone(self, settings: ExtractionSettings) -> Backbone:
        """Built once: loading weights takes seconds."""
        if self.backbone is not None:
            return self.backbone
        key = json.dumps([settings.backbone, settings.options], sort_keys=True)
        if key not in self._built:
            self._built[key] = backbone(settings.backbone, self.device, **settings.options)
        return self._built[key]

    def _refuse_oracle(self, recording: object) -> None:
        if self.description.oracle_reach is not None:
            with _naming(recording):
                raise InputError(
                    "no true boundaries are known here, and the model was trained to be told them, an ablation "
                    "(model.paper.protection=oracle or model.paper.allocation=oracle); train without it"
                )


@contextmanager
def _naming(recording: object) -> Iterator[None]:
    """What is wrong with a file names it."""
    try:
        yield
    except InputError as error:
        if not isinstance(recording, str | Path):
            raise
        # The description beside a feature file names itself.
        named = (str(recording), str(Path(recording).with_suffix(".json")))
        raise error if str(error).startswith(named) else InputError(f"{recording}: {error}") from None
