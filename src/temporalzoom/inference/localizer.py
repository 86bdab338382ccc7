"""Localizer: load once, call on features."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from temporalzoom.config import InferenceConfig
from temporalzoom.datasets.samples import Sample
from temporalzoom.errors import InputError
from temporalzoom.inference.decoding import decode
from temporalzoom.inference.windows import run_network
from temporalzoom.models import Outputs
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training.checkpoint import find_checkpoint, load_weights, read_info
from temporalzoom.training.network import model_from_config


class Localizer:
    """A trained model that turns features into segments.

    localizer = Localizer.load("runs/mine")
    segments = localizer(features)          # (T, F) array -> Segments, in seconds
    """

    def __init__(self, model: nn.Module, classes: tuple[str, ...], grid: TimeGrid, options: InferenceConfig) -> None:
        self.model = model.eval()
        self.classes, self.grid, self.options = classes, grid, options
        self.input_width: int | None = None

    @classmethod
    def load(cls, path: str | Path, budget: float | None = None) -> Localizer:
        """From a run folder (its latest checkpoint) or from a checkpoint folder.

        budget: for a model with adaptive depth, the share of positions that may go deep; None: as it was trained.
        """
        checkpoint = find_checkpoint(Path(path))
        info = read_info(checkpoint)
        config = info.config
        if budget is not None:
            if not config.model.name.startswith("tzn"):
                raise InputError(f"budget: {config.model.name} has no adaptive depth; only tzn has")
            config = config.model_copy(update={"tzn": config.tzn.model_copy(update={"budget": budget})})
        model = model_from_config(config, info.input_width, len(info.classes), info.grid.stride)
        load_weights(checkpoint, model)
        localizer = cls(model, info.classes, info.grid, info.config.inference)
        localizer.input_width = info.input_width
        return localizer

    def __call__(
        self,
        features: ArrayLike,
        *,
        grid: TimeGrid | None = None,
        duration: float | None = None,
        threshold: float | None = None,
        top: int | None = None,
    ) -> Segments:
        """features: (T, F) -> segments with at least `threshold` (default: the configuration's), at most `top` of them,
        highest score first. `grid` and `duration` (seconds) default to what the model was trained with, and to what the
        features cover."""
        array = self._checked(features)
        grid = grid or self.grid
        duration = grid.duration(len(array)) if duration is None else duration
        segments = decode(self.outputs(array), self.classes, grid, duration, self.options)
        segments = segments.filter(min_score=self.options.threshold if threshold is None else threshold)
        return segments if top is None else segments.top(top)

    def outputs(self, features: ArrayLike) -> Outputs:
        """Raw outputs in grid units. features: (T, F) -> tensors of (T, ...)."""
        return run_network(self.model, self._checked(features), self.options.max_length)

    def localize_samples(self, samples: Iterable[Sample]) -> dict[str, Segments]:
        """Everything found in each sample, down to the lowest score: what evaluation needs."""
        return {s.name: self(s.features, grid=s.grid, duration=s.duration, threshold=0.0) for s in samples}

    def _checked(self, features: ArrayLike) -> NDArray[np.float32]:
        array = np.asarray(features, np.float32)
        if array.ndim != 2 or not len(array):
            raise InputError(f"features must be an array of at least one position, (T, F); got shape {array.shape}")
        if self.input_width is not None and array.shape[1] != self.input_width:
            raise InputError(f"features have {array.shape[1]} channels, the model was trained with {self.input_width}")
        if not np.isfinite(array).all():
            raise InputError(f"features hold {int((~np.isfinite(array)).sum())} values that are NaN or infinite")
        return array
