"""Localizer: load once, call on features."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from temporalzoom.config import Config, InferenceConfig
from temporalzoom.datasets.samples import Sample
from temporalzoom.datasets.sources import framing_of, takes_videos
from temporalzoom.errors import InputError
from temporalzoom.inference.decoding import decode
from temporalzoom.inference.onnx_network import PREPARATION, OnnxNetwork
from temporalzoom.inference.windows import run_network
from temporalzoom.models import Outputs
from temporalzoom.runs.checkpoint import CheckpointInfo, find_checkpoint, load_weights, read_info
from temporalzoom.runs.network import (
    backbone_from_config,
    model_from_config,
    near_boundaries,
    oracle_reach,
    video_model_from_config,
    video_settings,
)
from temporalzoom.segments import Segments
from temporalzoom.signals.backbones import Backbone
from temporalzoom.signals.extraction import ExtractionSettings, video_features
from temporalzoom.signals.framing import Framing
from temporalzoom.signals.keypoints import keypoint_count, pose_geometry
from temporalzoom.signals.missing import fill_missing
from temporalzoom.timegrid import TimeGrid


class Localizer:
    """A trained model that turns features into segments.

    localizer = Localizer.load("runs/mine")
    segments = localizer(features)          # (T, F) array -> Segments, in seconds

    A model trained on raw signals takes windows of them: `localizer(localizer.prepare(signal))`. One that was trained
    with its backbone has that too: `video_features(path, localizer.backbone, ...)` makes its features.
    """

    def __init__(self, model: nn.Module, classes: tuple[str, ...], grid: TimeGrid, options: InferenceConfig) -> None:
        self.model = model.eval()
        self.classes, self.grid, self.options = classes, grid, options
        self.input_width: int | None = None
        self.oracle_reach: int | None = None  # a number: pruning spares the true boundaries, so that truth is needed
        self.framing: Framing | None = None  # how windows are cut from raw signals; None: trained on features
        self.fills_gaps = False  # missing values are interpolated and flagged
        self.keypoints = ""  # of raw poses: what the values of a keypoint are, as in the configuration
        self.resize: int | None = None  # features of a recording were interpolated to so many positions
        self.origin: ExtractionSettings | None = None  # how features were made from videos; None: unknown
        self.backbone: Backbone | None = None  # trained with the model; None: it was trained on features ...
        self.video_settings: ExtractionSettings | None = None  # ... else how `backbone` makes them from videos

    @classmethod
    def load(cls, path: str | Path, budget: float | None = None) -> Localizer:
        """From a run folder (its latest checkpoint), from a checkpoint folder, or from a file of `tzoom export`.

        budget: for a model with adaptive depth, the share of positions that may go deep; None: as it was trained. An
        exported file keeps the one it was exported with.
        """
        if Path(path).suffix == ".onnx":
            if budget is not None:
                raise InputError(f"budget: {path} has its own; export it again with --budget {budget:g}")
            return cls._from_onnx(Path(path))
        checkpoint = find_checkpoint(Path(path))
        info = read_info(checkpoint)
        config = info.config
        if budget is not None:
            if not config.model.name.startswith("tzn"):
                raise InputError(f"budget: {config.model.name} has no adaptive depth; only tzn has")
            config = config.model_copy(update={"tzn": config.tzn.model_copy(update={"budget": budget})})
        if takes_videos(config.data):
            localizer = cls._from_end_to_end(checkpoint, info, config)
        else:
            model = model_from_config(config, info.input_width, len(info.classes), info.grid)
            load_weights(checkpoint, model)
            localizer = cls(model, info.classes, info.grid, info.config.inference)
            localizer.origin = info.origin
        localizer.input_width = info.input_width
        localizer.oracle_reach = oracle_reach(config, info.grid.stride)
        if config.data.source != "zoombench":
            localizer.framing = framing_of(config.data)
            localizer.fills_gaps = config.data.missing == "interpolate"
            localizer.keypoints = config.data.keypoints
            localizer.resize = config.data.resize
        return localizer

    @classmethod
    def _from_end_to_end(cls, checkpoint: Path, info: CheckpointInfo, config: Config) -> Localizer:
        """The detector as the model, and the trunk that was trained with it as a backbone like any other.

        `origin` stays empty: features that the untrained backbone of that name made are not those of this model.
        """
        built = backbone_from_config(config, pretrained=False)
        whole = video_model_from_config(config, built, len(info.classes), info.grid)
        load_weights(checkpoint, whole)
        localizer = cls(whole.eval().detector, info.classes, info.grid, info.config.inference)
        localizer.backbone, localizer.video_settings = built, video_settings(config, built, info.grid)
        return localizer

    @classmethod
    def _from_onnx(cls, path: Path) -> Localizer:
        network = OnnxNetwork(path)
        told = network.description
        localizer = cls(network, told.classes, told.grid, told.inference)
        localizer.input_width = told.input_width
        for name in PREPARATION:
            setattr(localizer, name, getattr(told, name))
        return localizer

    @property
    def channels(self) -> int | None:
        """Of what a file of the training data holds; None: unknown."""
        if self.input_width is None:
            return None
        width = self.input_width // (1 if self.framing is None else self.framing.window)
        if self.keypoints:
            return len(self.keypoints) * keypoint_count(width, self.keypoints, self.fills_gaps)
        return width // (2 if self.fills_gaps else 1)

    def prepare(self, signal: ArrayLike) -> NDArray[np.float32]:
        """What a file of the training data holds -> features (T, F), as training saw them.

        signal: (N, C) rows of a raw signal, for a model trained on them; else (T, C) features. Gaps are filled where
        training filled them; otherwise features stay as they are.
        """
        array = np.asarray(signal, np.float32)
        if array.ndim != 2 or not len(array):
            raise InputError(f"a signal must be an array of at least one row, (N, C); got shape {array.shape}")
        channels, expected = array.shape[1], self.channels
        if expected is not None and channels != expected:
            what = "features have" if self.framing is None else "the raw signal has"
            raise InputError(f"{what} {channels} channels, the model was trained with {expected}")
        if self.fills_gaps:
            array = fill_missing(array)
        if self.keypoints:
            array = pose_geometry(array, self.keypoints, self.fills_gaps)
        return array if self.framing is None else self.framing.cut(array)

    def __call__(
        self,
        features: ArrayLike,
        *,
        grid: TimeGrid | None = None,
        duration: float | None = None,
        threshold: float | None = None,
        top: int | None = None,
        truth: Segments | None = None,
    ) -> Segments:
        """features: (T, F) -> segments with at least `threshold` (default: the configuration's), at most `top` of them,
        highest score first. `grid` and `duration` (seconds) default to what the model was trained with, and to what the
        features cover. `truth`: see `outputs`."""
        array = self._checked(features)
        grid = grid or self.grid
        duration = grid.duration(len(array)) if duration is None else duration
        segments = decode(self.outputs(array, grid=grid, truth=truth), self.classes, grid, duration, self.options)
        segments = segments.filter(min_score=self.options.threshold if threshold is None else threshold)
        return segments if top is None else segments.top(top)

    def outputs(self, features: ArrayLike, *, grid: TimeGrid | None = None, truth: Segments | None = None) -> Outputs:
        """Raw outputs in grid units. features: (T, F) -> tensors of (T, ...).

        truth: the true segments. Nobody looks at them but a model trained with `tzn.protection: oracle`, which needs
        them.
        """
        array = self._checked(features)
        protected = self._protected(len(array), grid or self.grid, truth)
        return run_network(self.model, array, self.options.max_length, protected, self.options.precision)

    def localize_samples(self, samples: Iterable[Sample]) -> dict[str, Segments]:
        """Everything found in each sample, down to the lowest score: what evaluation needs."""
        return {
            s.name: self(self._features(s), grid=s.grid, duration=s.duration, threshold=0.0, truth=s.segments)
            for s in samples
        }

    def _features(self, sample: Sample) -> NDArray[np.float32]:
        """(T, F); of a video by the backbone that was trained with the model."""
        if sample.video is None or self.backbone is None:
            return sample.features
        stride, window = int(sample.grid.stride), int(sample.grid.window)
        return video_features(sample.video.path, self.backbone, stride, window, sample.grid.fps)[0]

    def _protected(self, length: int, grid: TimeGrid, truth: Segments | None) -> Tensor | None:
        """(length,) boolean for the oracle ablation, None for all other models."""
        if self.oracle_reach is None:
            return None
        if truth is None:
            raise InputError(
                "no true boundaries are known here, and the model was trained with tzn.protection=oracle, an ablation "
                "that protects them from pruning; train with tzn.protection=predicted to localize"
            )
        return near_boundaries(grid.to_grid(truth.starts), grid.to_grid(truth.ends), length, self.oracle_reach)

    def _checked(self, features: ArrayLike) -> NDArray[np.float32]:
        array = np.asarray(features, np.float32)
        if array.ndim != 2 or not len(array):
            raise InputError(f"features must be an array of at least one position, (T, F); got shape {array.shape}")
        if self.input_width is not None and array.shape[1] != self.input_width:
            raise InputError(f"features have {array.shape[1]} channels, the model was trained with {self.input_width}")
        if not np.isfinite(array).all():
            raise InputError(f"features hold {int((~np.isfinite(array)).sum())} values that are NaN or infinite")
        return array
