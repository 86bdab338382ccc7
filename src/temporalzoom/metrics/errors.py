"""What is right and what goes wrong at a score threshold: the kind of every detection and instance, and confusions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.metrics.matching import match_greedily, pool_segments
from temporalzoom.metrics.operating_point import best_thresholds
from temporalzoom.metrics.pairs import Booleans, Floats, Integers, Pool, overlapping_pairs
from temporalzoom.segments import Segments

CORRECT, CONFUSED, MISPLACED = 0.5, 0.3, 0.1  # least tIoU of a right detection, of a wrong label, of a misplaced one
DETECTION_KINDS = ("correct", "wrong label", "misplaced", "duplicate", "background")
INSTANCE_KINDS = ("found", "wrong label", "misplaced", "missed")


@dataclass(frozen=True)
class Counts:
    """Of a class, or of all: annotated instances, detections, and how many of these are correct."""

    instances: int
    detections: int
    correct: int

    @property
    def precision(self) -> float:
        return self.correct / self.detections if self.detections else float("nan")

    @property
    def recall(self) -> float:
        return self.correct / self.instances if self.instances else float("nan")

    @property
    def f1(self) -> float:
        either = self.instances + self.detections
        return 2 * self.correct / either if either else float("nan")


@dataclass(frozen=True)
class BoundarySeconds:
    """Errors of starts or of ends in seconds: median and 90th percentile of their size, and the mean with its sign.

    bias: negative, too early; deviation: standard deviation of the signed errors. NaN where nothing was found.
    """

    median: float
    percentile_90: float
    bias: float
    deviation: float
    count: int


@dataclass(frozen=True, eq=False)
class Analysis:
    """Detections whose score reaches the threshold of their class, and what became of them and of the instances.

    classes: C names, sorted, of the truth and of these detections; recordings: those of the truth, then the `unknown`
    ones that only predictions name. thresholds: by label; fitted: labels whose threshold was chosen on these very data.
    truth: M instances; detections: N, highest score first; their labels and videos are indices into the names.
    instance_of: (N,) the instance that a correct detection found, else -1.
    detection_kinds: (N,) into `DETECTION_KINDS`; instance_kinds: (M,) into `INSTANCE_KINDS`.
    confusion: (C + 1, C + 1) instances by true class (rows) and found class (columns); the last column is `nothing
    found`, the last row holds the detections left over, `nothing there`.
    """

    classes: tuple[str, ...]
    recordings: tuple[str, ...]
    unknown: int
    thresholds: dict[str, float]
    fitted: tuple[str, ...]
    truth: Pool
    detections: Pool
    instance_of: Integers
    detection_kinds: Integers
    instance_kinds: Integers
    confusion: Integers

    def counts(self, label: str | None = None) -> Counts:
        """Of one class, or of all together."""
        instances, detections = self._chosen(label)
        correct = self.detection_kinds[detections] == DETECTION_KINDS.index("correct")
        return Counts(int(instances.sum()), int(detections.sum()), int(correct.sum()))

    def kinds(self, label: str | None = None) -> tuple[dict[str, int], dict[str, int]]:
        """How many detections, and how many instances, are of each kind."""
        instances, detections = self._chosen(label)
        of_detections = np.bincount(self.detection_kinds[detections], minlength=len(DETECTION_KINDS)).tolist()
        of_instances = np.bincount(self.instance_kinds[instances], minlength=len(INSTANCE_KINDS)).tolist()
        return (
            dict(zip(DETECTION_KINDS, of_detections, strict=True)),
            dict(zip(INSTANCE_KINDS, of_instances, strict=True)),
        )

    def boundaries(self, label: str | None = None) -> tuple[BoundarySeconds, BoundarySeconds]:
        """Errors of the starts and of the ends of the correct detections."""
        rows = np.flatnonzero(self._chosen(label)[1] & (self.instance_of >= 0))
        found = self.instance_of[rows]
        return (
            _boundary_seconds(self.detections.starts[rows] - self.truth.starts[found]),
            _boundary_seconds(self.detections.ends[rows] - self.truth.ends[found]),
        )

    def confusions(self) -> list[tuple[str, str, int]]:
        """(true class, class found instead, how often), most frequent first."""
        between = self.confusion[:-1, :-1].copy()
        np.fill_diagonal(between, 0)
        rows, columns = np.nonzero(between)
        order = np.argsort(-between[rows, columns], kind="stable")
        pairs = zip(rows[order], columns[order], strict=True)
        return [(self.classes[i], self.classes[j], int(between[i, j])) for i, j in pairs]

    def _chosen(self, label: str | None) -> tuple[Booleans, Booleans]:
        """(M,) instances and (N,) detections of a class."""
        if label is None:
            return np.ones(len(self.truth), bool), np.ones(len(self.detections), bool)
        if label not in self.classes:
            raise InputError(f"label {label!r} is neither annotated nor found")
        index = self.classes.index(label)
        return self.truth.labels == index, self.detections.labels == index


def analyse(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    thresholds: float | Mapping[str, float] | None = None,
) -> Analysis:
    """The kind of every detection and of every instance at the chosen score thresholds.

    thresholds: one for all classes, or one per label; a label without one gets that of `best_thresholds`.

    Detections are matched as for mAP (`anet`) at tIoU 0.5. `correct`: matched. `duplicate`: it fits an instance of its
    class that another detection has. `wrong label`: it overlaps an instance of another class more than any of its own,
    tIoU >= 0.3. `misplaced`: its largest tIoU with an instance of its class is 0.1 to 0.5. `background`: the rest.
    An instance that is not found is `wrong label` or `misplaced` by the same rules, seen from its side, else `missed`.

    In the confusion matrix an instance is first matched within its class at tIoU >= 0.3; what is left over on both
    sides is then matched whatever its label.
    """
    if not any(len(segments) for segments in truth.values()):
        raise InputError(f"the ground truth has no instance ({len(truth)} recordings): nothing to compare with")
    chosen, fitted = _chosen_thresholds(truth, predictions, thresholds)
    kept = {name: _kept(segments, chosen) for name, segments in predictions.items()}
    labels = sorted({label for part in (truth, kept) for s in part.values() for label in s.labels.tolist()})
    recordings = tuple(dict.fromkeys([*truth, *predictions]))
    instances = pool_segments(truth, list(truth), recordings, labels)
    detections = pool_segments(kept, list(kept), recordings, labels)
    detections = detections[np.argsort(-detections.scores, kind="stable")]

    pairs = overlapping_pairs(detections, instances, MISPLACED, same_class=False)
    order = np.lexsort((pairs[1], -pairs[2], pairs[0]))  # as detections choose: by score, then the largest tIoU
    rows, columns, overlaps = pairs[0][order], pairs[1][order], pairs[2][order]
    same = detections.labels[rows] == instances.labels[columns]
    found = np.full(len(detections), -1, np.intp)
    right = same & (overlaps >= CORRECT)
    match_greedily(rows[right], columns[right], found)
    is_found = np.zeros(len(instances), bool)
    is_found[found[found >= 0]] = True

    own, other = (_largest(rows[s], overlaps[s], len(detections)) for s in (same, ~same))
    detection_kinds = _kinds(found >= 0, own, other, DETECTION_KINDS)
    detection_kinds[(found < 0) & (own >= CORRECT)] = DETECTION_KINDS.index("duplicate")
    own, other = (_largest(columns[s], overlaps[s], len(instances)) for s in (same, ~same))
    instance_kinds = _kinds(is_found, own, other, INSTANCE_KINDS)
    near = overlaps >= CONFUSED
    confusion = _confusion(rows[near], columns[near], detections.labels, instances.labels, len(labels))
    names = tuple(labels)
    unknown = sum(name not in truth for name in predictions)
    used = {name: chosen[name] for name in names if name in chosen}
    return Analysis(
        names,
        recordings,
        unknown,
        used,
        tuple(name for name in names if name in fitted),
        instances,
        detections,
        found,
        detection_kinds,
        instance_kinds,
        confusion,
    )


def _chosen_thresholds(
    truth: Mapping[str, Segments], predictions: Mapping[str, Segments], given: float | Mapping[str, float] | None
) -> tuple[dict[str, float], set[str]]:
    """The threshold of every label there is, and the labels for which none was given."""
    labels = {str(name) for part in (truth, predictions) for s in part.values() for name in s.labels.tolist()}
    if given is None:
        known: dict[str, float] = {}
    elif isinstance(given, Mapping):
        known = {str(label): float(value) for label, value in given.items()}
    else:
        known = dict.fromkeys(labels, float(given))
    for label, value in known.items():
        if not np.isfinite(value):
            raise InputError(f"score threshold of {label!r} is {value}: a number is needed")
    missing = labels - set(known)
    best = best_thresholds(truth, predictions, CORRECT) if missing else {}
    return known | {label: best[label].score for label in missing}, missing


def _kept(segments: Segments, thresholds: Mapping[str, float]) -> Segments:
    if not len(segments):
        return segments
    return segments[segments.scores >= np.array([thresholds[label] for label in segments.labels.tolist()])]


def _largest(index: Integers, overlaps: Floats, count: int) -> Floats:
    """(count,) the largest tIoU of each, 0 where there is none."""
    largest: Floats = np.zeros(count)
    np.maximum.at(largest, index, overlaps)
    return largest


def _kinds(right: Booleans, own: Floats, other: Floats, names: tuple[str, ...]) -> Integers:
    """Index of each among `names`, of which the first is right and the last overlaps nothing."""
    mislabelled = (other >= CONFUSED) & (other > own) & (own < CORRECT)
    misplaced = own >= MISPLACED
    last = len(names) - 1
    kinds = np.select([right, mislabelled, misplaced], [0, names.index("wrong label"), names.index("misplaced")], last)
    return kinds.astype(np.intp)


def _confusion(rows: Integers, columns: Integers, found: Integers, true: Integers, count: int) -> Integers:
    """Pairs in the order of preference, labels of detections (N,) and of instances (M,) -> (count + 1, count + 1)."""
    partner = np.full(len(found), -1, np.intp)
    same = found[rows] == true[columns]
    match_greedily(rows[same], columns[same], partner)
    left = (partner[rows] < 0) & ~np.isin(columns, partner[partner >= 0])
    others = np.full(len(found), -1, np.intp)
    match_greedily(rows[left], columns[left], others)
    partner = np.where(partner < 0, others, partner)
    matrix = np.zeros((count + 1, count + 1), np.intp)
    matched = partner >= 0
    np.add.at(matrix, (np.where(matched, true[partner], count), found), 1)
    lost = np.ones(len(true), bool)
    lost[partner[matched]] = False
    matrix[:count, count] = np.bincount(true[lost], minlength=count)
    return matrix


def _boundary_seconds(signed: Floats) -> BoundarySeconds:
    if not len(signed):
        unknown = float("nan")
        return BoundarySeconds(unknown, unknown, unknown, unknown, 0)
    sizes = np.abs(signed)
    return BoundarySeconds(
        float(np.median(sizes)),
        float(np.percentile(sizes, 90)),
        float(signed.mean()),
        float(signed.std(ddof=1)) if len(signed) > 1 else float("nan"),
        len(signed),
    )
