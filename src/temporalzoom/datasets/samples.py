"""Samples: one recording's features with its annotations, ready to train on or to score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid


@dataclass(frozen=True, eq=False)
class Sample:
    """features: (T, F) float32; segments in seconds; duration in seconds."""

    name: str
    features: NDArray[np.float32]
    grid: TimeGrid
    duration: float
    segments: Segments

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True, eq=False)
class Split:
    """The samples of one subset, and the classes in the order of the model's outputs."""

    samples: tuple[Sample, ...]
    classes: tuple[str, ...]

    def truth(self) -> dict[str, Segments]:
        return {sample.name: sample.segments for sample in self.samples}

    @property
    def input_width(self) -> int:
        return self.samples[0].features.shape[1]
