"""Score thresholds: curves against counting by hand, and where the best threshold lies."""

import math

import numpy as np
import pytest
from analysis_strategies import as_segments, overlap_of, predictions, truths
from hypothesis import given

from temporalzoom.errors import InputError
from temporalzoom.metrics.operating_point import (
    FLAT_INSTANCES,
    FLAT_SHARE,
    best_thresholds,
    threshold_curve,
    threshold_curves,
)
from temporalzoom.segments import Segments


def line(labels, scores=None):
    """One segment per label, far from each other."""
    starts = 10.0 * np.arange(len(labels))
    return Segments(starts, starts + 5, labels, scores)


def slow_counts(truth, found, score, label, tiou=0.5):
    """Instances, detections from the score on, and correct ones, as by greedy matching of the kept ones alone."""
    wanted = [[name, span, False] for name, rows in truth.items() for span, c in rows if label in (None, c)]
    labels = {name: [c for _, c in rows] for name, rows in truth.items()}
    known = {c for row in labels.values() for c in row}
    owner = [c for rows in truth.values() for _, c in rows if label in (None, c)]
    queue = [
        (p, span, name, c)
        for name, rows in found.items()
        for span, c, p in rows
        if label in (None, c) and p >= score and c in known
    ]
    queue.sort(key=lambda item: -item[0])
    hits = 0
    for _, span, name, c in queue:
        best = None
        for row, of in zip(wanted, owner, strict=True):
            if row[0] == name and of == c and not row[2] and overlap_of(span, row[1]) >= tiou:
                if best is None or overlap_of(span, row[1]) > overlap_of(span, best[1]):
                    best = row
        if best is not None:
            best[2] = True
            hits += 1
    return len(wanted), len(queue), hits


@given(truths, predictions)
def test_curves_agree_with_counting_at_every_threshold(truth, found):
    common, by_class = threshold_curves(as_segments(truth), as_segments(found))
    for label, curve in ((None, common), *by_class.items()):
        for score in (-1, 0, 0.5, 1, 2, 3, 3.5, 4, 5):
            instances, kept, hits = slow_counts(truth, found, score, label)
            value = curve.at(score)
            assert curve.positives == instances
            assert value.recall == pytest.approx(hits / instances)
            assert value.f1 == pytest.approx(2 * hits / (instances + kept))
            assert math.isnan(value.precision) if not kept else value.precision == pytest.approx(hits / kept)


@given(truths, predictions)
def test_a_best_threshold_is_about_as_good_as_any(truth, found):
    known = {label for rows in truth.values() for _, label in rows}
    chosen = best_thresholds(as_segments(truth), as_segments(found))
    assert set(chosen) == known | {label for rows in found.values() for _, label, _ in rows}
    for label, threshold in chosen.items():
        if label not in known:
            assert threshold.f1 == 0 and math.isnan(threshold.recall)
            continue
        instances, kept, hits = slow_counts(truth, found, threshold.score, label)
        assert threshold.f1 == pytest.approx(2 * hits / (instances + kept))
        best = 0.0
        for score in range(5):
            instances, kept, hits = slow_counts(truth, found, score, label)
            best = max(best, 2 * hits / (instances + kept))
        if best > 0:
            assert threshold.f1 >= best * (1 - min(FLAT_INSTANCES / instances, FLAT_SHARE)) - 1e-12


def test_the_threshold_lies_in_the_middle_between_right_and_wrong():
    truth = {"v": line(["a", "a"])}
    found = {"v": line(["a", "a", "a"], [0.9, 0.8, 0.2])}  # the third stands where nothing is
    best = best_thresholds(truth, found)["a"]
    assert best.score == pytest.approx((0.8 + 0.2) / 2)
    assert (best.precision, best.recall, best.f1) == (1, 1, 1)


def test_where_nothing_is_wrong_lower_scores_count_too():
    """New recordings may score lower: halfway down to 0, or, where scores are no probabilities, the lowest."""
    truth = {"v": line(["a", "a"])}
    assert best_thresholds(truth, {"v": line(["a", "a"], [0.9, 0.6])})["a"].score == pytest.approx(0.3)
    assert best_thresholds(truth, {"v": line(["a", "a"], [-1.0, -3.0])})["a"].score == pytest.approx(-3.0)


def test_the_flat_top_has_a_width():
    """100 instances; the last two found cost little: thresholds up to two instances below the best are as good."""
    truth = {"v": line(["a"] * 100)}
    scores = np.concatenate([np.full(97, 0.8), [0.6, 0.5, 0.4]])
    curve = threshold_curve(truth, {"v": line(["a"] * 100, scores)}, label="a")
    assert curve.f1 == pytest.approx([2 * n / (100 + n) for n in (97, 98, 99, 100)])
    # 0.8 keeps 97 of 100: F1 0.985 >= 0.98
    assert best_thresholds(truth, {"v": line(["a"] * 100, scores)})["a"].score == pytest.approx((0.8 + 0.0) / 2)


def test_equal_scores_are_kept_together():
    curve = threshold_curve({"v": line(["a"])}, {"v": line(["a", "a"], [0.5, 0.5])})
    assert curve.scores.tolist() == [0.5] and curve.precision.tolist() == [0.5] and curve.recall.tolist() == [1]


def test_a_class_that_is_never_found_gets_the_common_threshold():
    truth = {"v": line(["a", "a", "b"])}
    found = {"v": line(["a", "a", "a", "x"], [0.9, 0.8, 0.2, 0.6])}
    best = best_thresholds(truth, found)
    assert best["b"].score == best["a"].score == best["x"].score == pytest.approx(0.5)
    assert (best["b"].recall, best["b"].f1) == (0, 0) and math.isnan(best["b"].precision)
    assert best["x"].precision == 0  # reported, and nothing of the kind is there


def test_nothing_found_at_all():
    best = best_thresholds({"v": line(["a"])}, {})
    assert best["a"].score == 0.5 and best["a"].recall == 0
    wrong = best_thresholds({"v": line(["a"])}, {"v": line(["a"], [0.4]).shift(7)})
    assert wrong["a"].score == pytest.approx(0.2) and wrong["a"].precision == 0  # it is shown, not hidden


def test_bad_requests():
    with pytest.raises(InputError, match="'b'"):
        threshold_curve({"v": line(["a"])}, {}, label="b")
    with pytest.raises(InputError, match="no instance"):
        best_thresholds({"v": Segments.empty()}, {})
