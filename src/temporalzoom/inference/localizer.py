"""Localizer: load a trained model once, call it on videos, files and arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from temporalzoom.errors import InputError
from temporalzoom.inference.decoding import decode
from temporalzoom.inference.fusion import VideoScores, check_scores, fuse, read_video_scores
from temporalzoom.inference.onnx_network import OnnxNetwork
from temporalzoom.inference.recordings import NetworkInput, RecordingReader
from temporalzoom.inference.windows import run_network
from temporalzoom.models import Outputs
from temporalzoom.models.runtime import move_network
from temporalzoom.runs.checkpoint import find_checkpoint, load_network, read_info
from temporalzoom.runs.description import ModelDescription
from temporalzoom.segments import AGNOSTIC, Segments
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.extraction import ExtractionSettings
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
        options: settings of inference (`inference.*`), those of training until others are assigned.
    """

    def __init__(self, model: nn.Module, description: ModelDescription, backbone: Backbone | None = None) -> None:
        self.model, self.description, self.backbone = model.eval(), description, backbone
        self.options = description.inference
        self.device = "auto"  # as `to` was given it
        self._built: dict[str, Backbone] = {}
        self._scores: tuple[Path, VideoScores] | None = None  # of the file that was read last

    @classmethod
    def load(cls, path: str | Path, budget: float | None = None, device: str = "auto") -> Localizer:
        """A model from disk.

        Args:
            path: a run folder (its latest checkpoint), a checkpoint folder, or a file of `tzoom export`.
            budget: for a model with adaptive depth, the share of positions that may go deep; None: as it was trained.
                An exported file keeps the one it was exported with.
            device: where the network runs: auto (a GPU if there is one), cpu, cuda or mps.
        """
        if Path(path).suffix == ".onnx":
            if budget is not None:
                raise InputError(f"budget: {path} has its own; export it again with --budget {budget:g}")
            network = OnnxNetwork(Path(path))
            return cls(network, network.description).to(device)
        checkpoint = find_checkpoint(Path(path))
        description = read_info(checkpoint)
        model, trained_backbone = load_network(checkpoint, description, budget)
        return cls(model, description, trained_backbone).to(device)

    def to(self, device: str) -> Localizer:
        """Its networks move to a device: `auto` (the fastest that is there), `cpu`, `cuda` or `mps`."""
        self.device = device
        move_network(self.model, device)
        if self.backbone is not None:
            self.backbone.to(device)
        return self

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
        threshold: float | None = None,
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
        """The segments of one recording, highest score first.

        Args:
            recording: the path of a video, of a feature file or of a raw signal; or an array, (N, C) rows of a raw
                signal for a model that was trained on raw signals, else (T, C) features.
            threshold: lowest score; None: `inference.threshold` of the model.
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
        self._refuse_oracle(recording)
        reader = self.reader(grid=grid, stride=stride, window=window, fps=fps, backbone=backbone)
        if name is None and isinstance(recording, str | Path):
            name = Path(recording).stem.removeprefix(self.description.prefix)
        with _naming(recording):
            if self.options.video_scores is not None:
                self._scores_of(name)  # what is missing is missing before the work
            prepared = reader.read(recording, duration, progress)
            if note is not None:
                for sentence in prepared.notes:
                    note(sentence)
            found = self.segments(self.outputs(prepared.features), prepared.grid, prepared.duration, name)
        found = found.filter(min_score=self.options.threshold if threshold is None else threshold)
        return found if top is None else found.top(top)

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
            return reader.read(recording)

    def outputs(self, features: ArrayLike) -> Outputs:
        """Raw outputs in grid units, on the CPU.

        Args:
            features: (T, F), ready for the network: see `prepare`.

        Returns:
            Outputs with tensors of (T, ...).
        """
        self._refuse_oracle(features)
        return run_network(
            self.model, self.checked(features), self.options.max_length, precision=self.options.precision
        )

    def segments(self, outputs: Outputs, grid: TimeGrid, duration: float, name: str | None = None) -> Segments:
        """All that raw outputs hold, down to `inference.min_score`, highest score first; arguments as in a call."""
        found = decode(outputs, self.classes, grid, duration, self.options)
        return found if self.options.video_scores is None else fuse(found, self._scores_of(name))

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
        check_scores(names, self._scores[1], path)

    def _scores_of(self, name: str | None) -> Mapping[str, float]:
        """Of each class, for a recording that has them; others raise InputError."""
        if name is None:
            raise InputError("inference.video_scores: knows recordings by their names; name=... is needed")
        self.check_scores([name])
        assert self._scores is not None
        return self._scores[1][name]

    def checked(self, features: ArrayLike) -> NDArray[np.float32]:
        """Features (T, F) that the network can take; others raise InputError."""
        array = np.asarray(features, np.float32)
        if array.ndim != 2 or not len(array):
            raise InputError(f"features must be an array of at least one position, (T, F); got shape {array.shape}")
        width = self.description.input_width
        if array.shape[1] != width:
            raise InputError(f"features have {array.shape[1]} channels, the model was trained with {width}")
        if not np.isfinite(array).all():
            raise InputError(f"features hold {int((~np.isfinite(array)).sum())} values that are NaN or infinite")
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
                    "no true boundaries are known here, and the model was trained with model.paper.protection=oracle, "
                    "an ablation that protects them from pruning; train with model.paper.protection=predicted"
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
