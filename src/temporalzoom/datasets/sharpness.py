"""How sharp boundaries are in the features, and how different from each other: what adaptive depth lives on.

The paper's appendix (Cross-Dataset Generalization): the change g_t = ||F[t+1] - F[t]|| at every annotated boundary, its
standard deviation, and its heterogeneity H, the entropy of a histogram of ten equal bins from the smallest to the
largest change. H depends on the features as much as on the annotations: compare subsets, not backbones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.segments import Segments
from temporalzoom.signals.feature_rows import FeatureRows
from temporalzoom.timegrid import TimeGrid

BINS = 10

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sharpness:
    """Changes at the boundaries of one subset; NaN where it has none."""

    boundaries: int
    entropy: float  # H, bits; at most log2(10)
    deviation: float  # sigma_g
    median: float  # of the changes at boundaries
    overall: float  # median of the changes everywhere

    @property
    def ratio(self) -> float:
        """How many times larger the usual change is at a boundary than anywhere; 1: boundaries leave no trace."""
        return self.median / self.overall if self.overall > 0 else float("nan")

    def __str__(self) -> str:
        if not self.boundaries:
            return "no boundary within the features"
        return (
            f"change of features at {self.boundaries} boundaries: H {self.entropy:.2f} bits, "
            f"sigma {self.deviation:.3g}, median {self.median:.3g}, {self.ratio:.2f} times that of all positions"
        )


def feature_changes(features: ArrayLike | FeatureRows) -> Floats:
    """(T, D) -> (T - 1,): the Euclidean distance between neighbours."""
    array = np.asarray(features, np.float64)
    return np.linalg.norm(np.diff(array, axis=0), axis=1) if len(array) > 1 else np.empty(0)


def boundary_changes(changes: ArrayLike, segments: Segments, grid: TimeGrid) -> Floats:
    """The change across the step in which each start and end lies; those outside of the features are left out.

    changes: (T - 1,); change t lies between the positions t and t + 1. A boundary up to half a step before the first or
    after the last position still belongs to it.
    """
    changes = np.asarray(changes, np.float64)
    positions = grid.to_grid(np.concatenate([segments.starts, segments.ends]))
    near = positions[(positions >= -0.5) & (positions <= len(changes) + 0.5)]
    return changes[np.clip(np.floor(near).astype(np.intp), 0, len(changes) - 1)] if len(changes) else np.empty(0)


def entropy(values: ArrayLike, bins: int = BINS) -> float:
    """Of a histogram of equal bins between the extremes, in bits. Equal values have none, no values NaN."""
    values = np.asarray(values, np.float64)
    if not len(values):
        return float("nan")
    if np.ptp(values) == 0:
        return 0.0
    shares = np.histogram(values, bins, (values.min(), values.max()))[0] / len(values)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum())


def sharpness(
    recordings: Iterable[tuple[Callable[[], NDArray[np.float32] | FeatureRows], Segments, TimeGrid]],
) -> Sharpness:
    """Of a subset: for each recording something that returns its features (T, D), its segments and its grid.

    Features are asked for one recording at a time, so that they need not be in memory together. What is not finite in
    them, which the data check lists, is left out.
    """
    everywhere: list[Floats] = []
    at_boundaries: list[Floats] = []
    for features, segments, grid in recordings:
        changes = feature_changes(features())
        everywhere.append(changes)
        at_boundaries.append(boundary_changes(changes, segments, grid))
    return _summary(_finite(at_boundaries), _finite(everywhere))


def _finite(parts: Sequence[Floats]) -> Floats:
    values = np.concatenate(parts) if parts else np.empty(0)
    return np.asarray(values[np.isfinite(values)])


def _summary(at_boundaries: Floats, everywhere: Floats) -> Sharpness:
    if not len(at_boundaries):
        return Sharpness(0, *[float("nan")] * 4)
    return Sharpness(
        len(at_boundaries),
        entropy(at_boundaries),
        float(at_boundaries.std()),
        float(np.median(at_boundaries)),
        float(np.median(everywhere)),
    )
