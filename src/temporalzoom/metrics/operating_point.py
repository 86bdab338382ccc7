"""From which score on a detection counts: precision, recall and F1 over the score threshold, and the best threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.metrics.matching import Matching, match_detections
from temporalzoom.metrics.pairs import Booleans, Floats
from temporalzoom.segments import Segments

# An F1 is as good as the best one if it is lower by no more than this many of the instances, and never by more than
# this share: of few instances two would be everything. Found with thresholds chosen on some recordings, used on others.
FLAT_INSTANCES, FLAT_SHARE = 2.0, 0.1


@dataclass(frozen=True)
class Threshold:
    """Detections with at least `score` count; with these precision, recall and F1 (0 to 1; NaN where undefined)."""

    score: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, eq=False)
class ThresholdCurve:
    """What is reached if detections with at least `scores[k]` count: four arrays (K,), distinct scores, highest first.

    positives: number of annotated instances; recall is NaN where there is none.
    """

    scores: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    positives: int

    def at(self, score: float) -> Threshold:
        """The values of any threshold, also one between two scores. Precision is NaN where nothing is left."""
        kept = int(np.searchsorted(-self.scores, -score, side="right"))
        if not kept:
            return Threshold(score, float("nan"), 0.0 if self.positives else float("nan"), 0.0)
        row = kept - 1
        return Threshold(score, float(self.precision[row]), float(self.recall[row]), float(self.f1[row]))


def threshold_curves(
    truth: Mapping[str, Segments], predictions: Mapping[str, Segments], tiou: float = 0.5
) -> tuple[ThresholdCurve, dict[str, ThresholdCurve]]:
    """The curve of all classes under one common threshold, and that of each class of `truth`.

    Detections are matched as for mAP (`anet`), highest score first: what lies below a threshold changes no match above
    it, so that one matching serves all thresholds. Detections with a label that `truth` does not have: left out.
    """
    matching = match_detections(truth, predictions, [tiou])
    labels = enumerate(matching.classes)
    return _curve(matching, None), {label: _curve(matching, index) for index, label in labels}


def threshold_curve(
    truth: Mapping[str, Segments], predictions: Mapping[str, Segments], tiou: float = 0.5, label: str | None = None
) -> ThresholdCurve:
    """The curve of one class, or of all classes under one common threshold. See `threshold_curves`."""
    common, by_class = threshold_curves(truth, predictions, tiou)
    if label is None:
        return common
    if label not in by_class:
        raise InputError(f"label {label!r} is not in the ground truth")
    return by_class[label]


def best_thresholds(
    truth: Mapping[str, Segments], predictions: Mapping[str, Segments], tiou: float = 0.5
) -> dict[str, Threshold]:
    """The score threshold of the best F1 of each class, of all labels in `truth` and `predictions`, sorted.

    With few instances the very best threshold is a matter of chance. So it is the middle of the flat top: of all
    neighbouring thresholds whose F1 is about as good as the best (see `FLAT_INSTANCES`). A class of which nothing was
    found gets the threshold that is best for all classes together.
    """
    common, by_class = threshold_curves(truth, predictions, tiou)
    fallback = best_score(common)
    chosen = {}
    for label in sorted({str(name) for part in (truth, predictions) for s in part.values() for name in s.labels}):
        if label not in by_class:  # nothing to find: whatever is found is wrong
            found = any(((s.labels == label) & (s.scores >= fallback)).any() for s in predictions.values())
            chosen[label] = Threshold(fallback, 0.0 if found else float("nan"), float("nan"), 0.0)
            continue
        curve = by_class[label]
        chosen[label] = curve.at(best_score(curve) if curve.f1.any() else fallback)
    return chosen


def best_score(curve: ThresholdCurve) -> float:
    """The middle of the flat top of F1. No detection at all: 0.5."""
    if not len(curve.scores):
        return 0.5
    best = int(np.argmax(curve.f1))
    good = curve.f1 >= curve.f1[best] * (1 - min(FLAT_INSTANCES / curve.positives, FLAT_SHARE))
    first, last = _run(good, best)
    highest = float(curve.scores[first])
    # Every threshold down to the next score keeps the same detections. Below the last there is nothing to tell where
    # the top ends; scores are probabilities, so that it is 0, or the score itself if they are not.
    below = float(curve.scores[last + 1]) if last + 1 < len(curve.scores) else min(0.0, float(curve.scores[last]))
    middle = (below + highest) / 2
    return middle if below < middle <= highest else highest


def _run(good: Booleans, inside: int) -> tuple[int, int]:
    """First and last index of the run of True around `inside`."""
    bad = np.flatnonzero(~good)
    first = bad[bad < inside].max(initial=-1) + 1
    last = bad[bad > inside].min(initial=len(good)) - 1
    return int(first), int(last)


def _curve(matching: Matching, label: int | None) -> ThresholdCurve:
    """Of the detections of one class, or of all."""
    chosen = np.ones(len(matching.detections), bool) if label is None else matching.detections.labels == label
    positives = len(matching.truth) if label is None else int((matching.truth.labels == label).sum())
    scores = matching.detections.scores[chosen]
    # Equal scores are kept or dropped together: the last of them counts.
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.empty(0, np.intp)
    hits = np.cumsum(matching.found[0, chosen] >= 0)[last]
    kept = last + 1
    return ThresholdCurve(scores[last], hits / kept, hits / positives, 2 * hits / (kept + positives), positives)
