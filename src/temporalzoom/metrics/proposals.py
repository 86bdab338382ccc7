"""Proposals without classes: average recall against the average number of proposals (AR@AN) and its area (AUC)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.metrics.pairs import Floats, Integers, Pool, overlapping_pairs
from temporalzoom.segments import Segments

THRESHOLDS = tuple(np.linspace(0.5, 0.95, 10).tolist())
STEPS = np.arange(1, 101) / 100.0


def average_recall(
    truth: Mapping[str, Segments],
    proposals: Mapping[str, Segments],
    tiou: Sequence[float] = THRESHOLDS,
    max_average: float = 100,
) -> tuple[Floats, Floats, float]:
    """AN (100,), AR (100,) in 0 to 1, and AUC in 0 to 1, as the ActivityNet toolkit's proposal task. Labels: unused.

    An instance is recalled when any of its video's proposals, highest score first (equal scores in input order), has a
    tIoU >= threshold with it; recall is over all instances, AR its mean over the thresholds. At AN proposals per video
    on average, each video contributes the same share of its proposals, rounded down, not the same number. Videos are
    those with an instance; proposals in other videos only count in the share that all videos keep at most.
    """
    videos = [name for name, instances in truth.items() if len(instances)]
    if not videos:
        raise InputError("no instance in the ground truth: recall is not defined")
    if not max_average > 0:
        raise InputError(f"max_average must be positive, got {max_average!r}")
    average = STEPS * float(max_average)
    total = sum(len(segments) for segments in proposals.values())
    ratio = max_average * float(len(videos)) / max(total, 1)
    found = {name: proposals.get(name, Segments.empty()) for name in videos}
    kept = {name: min(int(len(segments) * ratio), len(segments)) for name, segments in found.items()}
    if not sum(kept.values()):
        return average, np.zeros_like(average), 0.0

    # In the toolkit's order of operations: rounding down makes the last bit matter (0.29 * 100 is 28).
    shares = STEPS * (max_average * float(len(videos)) / sum(kept.values()))
    thresholds = np.asarray(tiou, np.float64)
    recalled = np.zeros((len(thresholds), len(shares)))
    for name, segments in found.items():
        best_first = np.argsort(-segments.scores, kind="stable")[: kept[name]]
        counts = np.minimum((kept[name] * shares).astype(np.intp), kept[name])
        needed = _proposals_needed(truth[name], segments, best_first, thresholds)
        recalled += (needed[:, :, None] <= counts).sum(axis=0)
    recall = recalled.mean(axis=0) / sum(len(truth[name]) for name in videos)
    area = float(np.sum((recall[1:] + recall[:-1]) / 2 * np.diff(average)) / average[-1])
    return average, recall, area


def _proposals_needed(truth: Segments, proposals: Segments, order: Integers, thresholds: Floats) -> NDArray[np.intp]:
    """How many proposals, in `order`, until each instance is found: (M, K); more than there are: never."""
    needed = np.full((len(truth), len(thresholds)), len(order) + 1, np.intp)
    needed[:, thresholds <= 0] = 1
    positive = thresholds[thresholds > 0]
    if len(positive):
        ranked, instances = _as_pool(proposals[order]), _as_pool(truth)
        ranks, rows, overlaps = overlapping_pairs(ranked, instances, float(positive.min()), same_class=False)
        for column in np.flatnonzero(thresholds > 0).tolist():
            enough = overlaps >= thresholds[column]
            np.minimum.at(needed[:, column], rows[enough], ranks[enough] + 1)
    return needed


def _as_pool(segments: Segments) -> Pool:
    """Of one video and one class."""
    same = np.zeros(len(segments), np.intp)
    return Pool(segments.starts, segments.ends, segments.scores, same, same)
