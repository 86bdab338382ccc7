"""mAP by the length of the annotated instances: are short actions found as well as long ones?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.errors import InputError
from temporalzoom.metrics.detection import precision_table
from temporalzoom.metrics.matching import match_detections
from temporalzoom.metrics.pairs import Floats
from temporalzoom.segments import Segments

LENGTH_EDGES = (0.0, 1.0, 3.0, 6.0, 10.0, math.inf)


@dataclass(frozen=True, eq=False)
class LengthResult:
    """AP per length bin: bin `i` holds the instances with `edges[i] <= length < edges[i + 1]` seconds.

    ap: (bins, thresholds, classes), NaN for a class without an instance in the bin; instances: (bins,) counts.
    """

    edges: tuple[float, ...]
    thresholds: tuple[float, ...]
    classes: tuple[str, ...]
    ap: Floats
    instances: NDArray[np.intp]

    @property
    def mAP(self) -> Floats:
        """(bins, thresholds): mean over the classes present in the bin, NaN for an empty bin."""
        present = ~np.isnan(self.ap)
        counts = present.sum(axis=2)
        mean = np.where(present, self.ap, 0.0).sum(axis=2) / np.maximum(counts, 1)
        return np.where(counts > 0, mean, np.nan)


def length_bins(lengths: ArrayLike, edges: Sequence[float]) -> NDArray[np.intp]:
    """Which bin each length (N,) belongs to; -1 and the number of bins: below and above all of them."""
    if len(edges) < 2 or not all(low < high for low, high in pairwise(edges)):
        raise InputError(f"length edges must increase, got {tuple(edges)}")
    # Rounded: 18.4 s - 15.4 s is 2.9999999999999982 in floating point, and belongs to the bin that begins at 3 s.
    return np.searchsorted(edges, np.round(np.asarray(lengths, np.float64), 6), side="right") - 1


def evaluate_by_length(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    thresholds: Sequence[float],
    edges: Sequence[float] = LENGTH_EDGES,
    protocol: str = "anet",
    ambiguous: Mapping[str, Segments] | None = None,
    unknown_videos: str = "false_positives",
) -> LengthResult:
    """AP of the instances of each length bin (seconds); the other arguments are those of `evaluate_detections`.

    Detections are matched once, to all instances. In a bin, its own instances are the positives; a detection that
    found an instance of another bin is neither a true nor a false positive there; a detection that found nothing is a
    false positive in every bin. A bin with few instances therefore faces the false positives of all lengths: bins
    compare two systems, not one bin with another. With the one bin (0, inf) this is `evaluate_detections`.
    """
    edges = tuple(float(edge) for edge in edges)
    matching = match_detections(truth, predictions, thresholds, protocol, ambiguous, unknown_videos)
    bin_of_instance = length_bins(matching.truth.ends - matching.truth.starts, edges)
    hit = matching.found >= 0
    bin_of_detection = np.where(hit, bin_of_instance[matching.found], -1)

    ap, instances = [], []
    for index in range(len(edges) - 1):
        inside = bin_of_instance == index
        positives = np.bincount(matching.truth.labels[inside], minlength=len(matching.classes))
        counted = ~matching.ignored & (~hit | (bin_of_detection == index))
        ap.append(precision_table(matching, hit, counted, positives, interpolated=protocol == "anet"))
        instances.append(int(inside.sum()))
    return LengthResult(edges, matching.thresholds, matching.classes, np.stack(ap), np.array(instances, np.intp))
