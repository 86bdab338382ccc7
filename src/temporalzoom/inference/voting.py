"""Segment voting: what was suppressed beside a selected segment still knows something about its ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporalzoom.metrics.matching import tiou

Floats = NDArray[np.float64]


def vote(
    starts: Floats, ends: Floats, scores: Floats, labels: NDArray[np.intp], kept: NDArray[np.intp], threshold: float
) -> tuple[Floats, Floats]:
    """Starts and ends of the selected segments, (M,) each: means over the candidates of their class that overlap them.

    starts, ends, scores, labels: (N,), all candidates before suppression; kept: (M,) indices of the selected ones. A
    candidate with at least `threshold` tIoU votes with the weight score * tIoU; so does the segment itself.
    """
    overlap = tiou(starts[kept], ends[kept], starts, ends)
    weight = overlap * scores * (overlap >= threshold) * (labels[kept][:, None] == labels)
    weight[np.arange(len(kept)), kept] = np.maximum(scores[kept], np.finfo(np.float64).tiny)
    total = weight.sum(axis=1)
    return (weight @ starts) / total, (weight @ ends) / total
