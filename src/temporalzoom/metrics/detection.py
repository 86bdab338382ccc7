"""Mean average precision of detections, under the ActivityNet and the THUMOS14 protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.metrics.matching import Matching, match_detections
from temporalzoom.metrics.pairs import Booleans, Floats, tiou
from temporalzoom.segments import Segments

__all__ = ["DetectionResult", "average_precision", "evaluate_detections", "precision_recall", "precision_table", "tiou"]


@dataclass(frozen=True, eq=False)
class DetectionResult:
    """Average precision (0 to 1) of each class at each tIoU threshold: `ap` is (thresholds, classes)."""

    thresholds: tuple[float, ...]
    classes: tuple[str, ...]
    ap: Floats

    @property
    def mAP(self) -> dict[float, float]:
        """Threshold -> mean over the classes."""
        return dict(zip(self.thresholds, self.ap.mean(axis=1).tolist(), strict=True))

    @property
    def average(self) -> float:
        """Mean over thresholds and classes."""
        return float(self.ap.mean())


def evaluate_detections(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    thresholds: Sequence[float],
    protocol: str = "anet",
    ambiguous: Mapping[str, Segments] | None = None,
    unknown_videos: str = "false_positives",
) -> DetectionResult:
    """mAP of `predictions` against `truth`, both by video name, averaged over the classes present in `truth`.

    protocol `anet`, the ActivityNet toolkit: detections in descending score (stable: equal scores keep the order of
    the mapping and of the segments) each take the free instance of their class and video with the largest
    tIoU >= threshold; all-points interpolated AP. `ambiguous` has no role here.

    protocol `th14`, the THUMOS14 toolkit: each instance, in annotation order, takes the free detection with the
    largest tIoU > threshold; a detection left over that touches an `ambiguous` segment of its video is dropped;
    non-interpolated AP. Equal scores go by video name, then in input order.

    unknown_videos: detections in a video that `truth` does not name are `false_positives`, as in both toolkits, or
    `ignore`d, for predictions that cover more videos than the subset evaluated. A video that `truth` names without
    any instance is background: its detections are false positives either way. Detections with a label that `truth`
    does not have are never scored.
    """
    matching = match_detections(truth, predictions, thresholds, protocol, ambiguous, unknown_videos)
    positives = np.bincount(matching.truth.labels, minlength=len(matching.classes))
    ap = precision_table(matching, matching.found >= 0, ~matching.ignored, positives, interpolated=protocol == "anet")
    return DetectionResult(matching.thresholds, matching.classes, ap)


def precision_recall(
    truth: Mapping[str, Segments], predictions: Mapping[str, Segments], threshold: float, label: str | None = None
) -> tuple[Floats, Floats, Floats]:
    """Recall, precision and score after each detection, highest score first: three arrays (N,); `anet` protocol.

    Without a `label`, the detections of all classes form one list; they are still matched within their class.
    """
    matching = match_detections(truth, predictions, [threshold])
    chosen, positives = np.ones(len(matching.detections), bool), len(matching.truth)
    if label is not None:
        if label not in matching.classes:
            raise InputError(f"label {label!r} is not in the ground truth")
        index = matching.classes.index(label)
        chosen = matching.detections.labels == index
        positives = int((matching.truth.labels == index).sum())
    hits = np.cumsum(matching.found[0, chosen] >= 0)
    return hits / positives, hits / np.arange(1, len(hits) + 1), matching.detections.scores[chosen]


def precision_table(
    matching: Matching, hit: Booleans, counted: Booleans, positives: NDArray[np.integer], interpolated: bool
) -> Floats:
    """AP of each class: `hit`, `counted` (K, N) per threshold and detection, `positives` (C,) -> (K, C).

    NaN for a class without positives.
    """
    by_class = np.argsort(matching.detections.labels, kind="stable")
    edges = np.searchsorted(matching.detections.labels[by_class], np.arange(len(positives) + 1))
    columns = []
    for count, first, last in zip(positives, edges[:-1], edges[1:], strict=True):
        rows = by_class[first:last]
        columns.append(average_precision(hit[:, rows], counted[:, rows], int(count), interpolated))
    return np.stack(columns, axis=1)


def average_precision(hit: Booleans, counted: Booleans, positives: int, interpolated: bool) -> Floats:
    """AP of lists of detections, highest score first: `hit`, `counted` (K, N) -> (K,).

    A detection is a true positive where counted and hit, a false positive where counted and not hit.
    Recall grows by 1/positives at true positives only, so that AP is the mean of the precision there (zero for the
    instances never found); `interpolated` raises each precision to the best one at any higher recall.
    """
    if not positives:
        return np.full(len(hit), np.nan)
    true = hit & counted
    precision = np.cumsum(true, axis=1) / np.maximum(np.cumsum(counted, axis=1), 1)
    if interpolated:
        precision = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    return np.where(true, precision, 0.0).sum(axis=1) / positives
