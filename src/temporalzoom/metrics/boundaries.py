"""How far predicted starts and ends are from the annotated ones, in frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.metrics.matching import match_detections
from temporalzoom.metrics.pairs import Floats
from temporalzoom.segments import Segments


@dataclass(frozen=True, eq=False)
class BoundaryErrors:
    """Absolute boundary errors of the M instances that were found, in frames and in the order of the truth.

    start, end: (M,) |predicted - annotated|; unmatched: number of instances that no prediction found.
    The summaries run over all 2M errors, starts and ends together, and are NaN if no instance was found.
    """

    start: Floats
    end: Floats
    unmatched: int

    @property
    def mean(self) -> float:
        return float(self._all.mean()) if len(self._all) else float("nan")

    @property
    def median(self) -> float:
        return self._percentile(50)

    @property
    def percentile_95(self) -> float:
        """The error that 95 % of the boundaries stay below (linear interpolation)."""
        return self._percentile(95)

    @property
    def _all(self) -> Floats:
        return np.concatenate([self.start, self.end])

    def _percentile(self, percent: float) -> float:
        return float(np.percentile(self._all, percent)) if len(self._all) else float("nan")


def boundary_errors(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    fps: float | Mapping[str, float],
    min_tiou: float = 0.5,
) -> BoundaryErrors:
    """Start and end errors in frames of the instances that `predictions` find at `min_tiou`.

    Matched one-to-one within class and video as for mAP (`anet`): predictions in descending score each take the free
    instance with the largest tIoU >= min_tiou. So the prediction measured for an instance is the one that a detector
    would report first, not the one that happens to fit best. Instances not found have no error and are counted in
    `unmatched`: compare two systems only together with it.

    fps: one rate for all videos, or a rate for each video of `truth`.
    """
    matching = match_detections(truth, predictions, [min_tiou])
    rates = np.array([_rate(fps, video) if video in truth else np.nan for video in matching.videos])
    detections = np.flatnonzero(matching.found[0] >= 0)
    detections = detections[np.argsort(matching.found[0, detections])]
    instances = matching.found[0, detections]
    rate = rates[matching.truth.videos[instances]]
    start = np.abs(matching.detections.starts[detections] - matching.truth.starts[instances]) * rate
    end = np.abs(matching.detections.ends[detections] - matching.truth.ends[instances]) * rate
    return BoundaryErrors(start, end, len(matching.truth) - len(instances))


def _rate(fps: float | Mapping[str, float], video: str) -> float:
    if isinstance(fps, Mapping):
        if video not in fps:
            raise InputError(f"no fps for video {video!r}")
        rate = float(fps[video])
    else:
        rate = float(fps)
    if not (np.isfinite(rate) and rate > 0):
        raise InputError(f"fps of video {video!r} must be a positive number, got {rate}")
    return rate
