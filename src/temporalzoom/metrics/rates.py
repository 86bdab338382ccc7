"""Precision, recall and F1 at a score threshold, and how far they would move with other recordings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporalzoom.metrics.bootstrap import bootstrap_interval, draw_recordings
from temporalzoom.metrics.errors import Analysis
from temporalzoom.metrics.pairs import Floats, Integers

Interval = tuple[float, float]
RESAMPLES = 2000


@dataclass(frozen=True)
class RateIntervals:
    """Bootstrap intervals (0 to 1); None where no resample has a value: a class without detections has no precision."""

    precision: Interval | None
    recall: Interval | None
    f1: Interval | None


def rate_intervals(
    analysis: Analysis, resamples: int = RESAMPLES, seed: int = 0, level: float = 0.95
) -> dict[str | None, RateIntervals]:
    """Intervals of each class and, under None, of all classes together, with recordings drawn with replacement.

    The thresholds stay as they are: where they were fitted to these recordings, the intervals do not tell of that.
    """
    draws = draw_recordings(len(analysis.recordings), resamples, seed)
    instances, detections, correct = (draws @ counts for counts in recording_counts(analysis))  # (R, C) each
    intervals: dict[str | None, RateIntervals] = {
        None: _intervals(instances.sum(axis=1), detections.sum(axis=1), correct.sum(axis=1), level)
    }
    for index, label in enumerate(analysis.classes):
        intervals[label] = _intervals(instances[:, index], detections[:, index], correct[:, index], level)
    return intervals


def recording_counts(analysis: Analysis) -> tuple[Integers, Integers, Integers]:
    """Instances, detections and correct detections of each recording and class: three arrays (V, C)."""
    shape = len(analysis.recordings), len(analysis.classes)
    counts = tuple(np.zeros(shape, np.intp) for _ in range(3))
    right = analysis.detections[analysis.instance_of >= 0]
    for array, pool in zip(counts, (analysis.truth, analysis.detections, right), strict=True):
        np.add.at(array, (pool.videos, pool.labels), 1)
    return counts[0], counts[1], counts[2]


def _intervals(instances: Integers, detections: Integers, correct: Integers, level: float) -> RateIntervals:
    """Of one class: counts of all resamples (R,)."""
    return RateIntervals(
        _interval(correct, detections, level),
        _interval(correct, instances, level),
        _interval(2 * correct, instances + detections, level),
    )


def _interval(part: Integers, whole: Integers, level: float) -> Interval | None:
    shares: Floats = part[whole > 0] / whole[whole > 0]
    return bootstrap_interval(shares, level) if len(shares) else None
