"""Kinds of errors and confusions: cases by hand, and an independent slow version."""

import math

import numpy as np
import pytest
from analysis_strategies import as_segments, overlap_of, predictions, truths
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.metrics import boundary_errors, match_detections
from temporalzoom.metrics.errors import DETECTION_KINDS, INSTANCE_KINDS, analyse
from temporalzoom.metrics.operating_point import best_thresholds
from temporalzoom.segments import Segments


def named(analysis):
    """Kinds by (start, label) of the detections and of the instances."""
    sides = (
        (analysis.detections, analysis.detection_kinds, DETECTION_KINDS),
        (analysis.truth, analysis.instance_kinds, INSTANCE_KINDS),
    )
    return [
        {
            (start, analysis.classes[label]): names[kind]
            for start, label, kind in zip(pool.starts.tolist(), pool.labels, kinds, strict=True)
        }
        for pool, kinds, names in sides
    ]


def test_every_kind_once():
    truth = {"v": Segments([0, 20, 40, 60], [10, 30, 50, 70], ["a", "a", "b", "a"])}
    found = {
        "v": Segments(
            [0, 1, 26, 41, 80, 90],
            [10, 11, 36, 51, 85, 95],
            ["a", "a", "a", "a", "b", "b"],
            [0.9, 0.8, 0.7, 0.6, 0.5, 0.1],
        )
    }
    analysis = analyse(truth, found, 0.3)
    detections, instances = named(analysis)
    assert detections == {
        (0, "a"): "correct", (1, "a"): "duplicate", (26, "a"): "misplaced", (41, "a"): "wrong label",
        (80, "b"): "background",
    }  # fmt: skip
    assert instances == {(0, "a"): "found", (20, "a"): "misplaced", (40, "b"): "wrong label", (60, "a"): "missed"}
    assert analysis.confusion.tolist() == [[1, 0, 2], [1, 0, 0], [2, 1, 0]]
    assert analysis.confusions() == [("b", "a", 1)]
    assert analysis.counts() == analysis.counts().__class__(4, 5, 1)
    assert analysis.counts("a").precision == 1 / 4 and analysis.counts("b").recall == 0


def test_the_other_class_must_fit_better_to_be_a_wrong_label():
    truth = {"v": Segments([0, 8], [10, 18], ["a", "b"])}
    for start, kind in ((4, "misplaced"), (7, "wrong label")):  # at 4 both overlap alike
        analysis = analyse(truth, {"v": Segments([start], [start + 10], ["a"])}, 0.5)
        assert named(analysis)[0] == {(start, "a"): kind}


def test_the_true_class_comes_first_in_the_confusion_matrix():
    """A better placed, surer detection of another class takes no instance from one of its own."""
    truth = {"v": Segments([0], [10], ["a"])}
    found = {"v": Segments([0, 3], [10, 13], ["b", "a"], [0.9, 0.4])}
    analysis = analyse(truth, found, 0.0)
    assert analysis.confusion.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]


def slow_kinds(own, other, matched, last):
    if matched:
        return 0
    if own >= 0.5:
        return None
    if other >= 0.3 and other > own:
        return 1
    return 2 if own >= 0.1 else last


@settings(max_examples=200)
@given(truths, predictions, st.integers(0, 5))
def test_against_a_slow_version(truth, found, score):
    analysis = analyse(as_segments(truth), as_segments(found), float(score))
    wanted = [(name, span, label) for name, rows in truth.items() for span, label in rows]
    kept = [(p, name, span, label) for name, rows in found.items() for span, label, p in rows if p >= score]
    kept.sort(key=lambda item: -item[0])
    taken, matched = set(), []
    for _, name, span, label in kept:
        free = [
            (-overlap_of(span, w[1]), i)
            for i, w in enumerate(wanted)
            if i not in taken and w[0] == name and w[2] == label and overlap_of(span, w[1]) >= 0.5
        ]
        matched.append(min(free)[1] if free else None)
        taken.update({matched[-1]} - {None})
    assert analysis.instance_of.tolist() == [-1 if i is None else i for i in matched]

    def best(name, span, label, others, same):
        return max((overlap_of(span, s) for n, s, c in others if n == name and (c == label) == same), default=0.0)

    for (_, name, span, label), match, kind in zip(kept, matched, analysis.detection_kinds, strict=True):
        own, other = (best(name, span, label, wanted, same) for same in (True, False))
        expected = slow_kinds(own, other, match is not None, 4)
        assert kind == (3 if expected is None else expected)
    reported = [item[1:] for item in kept]
    for index, ((name, span, label), kind) in enumerate(zip(wanted, analysis.instance_kinds, strict=True)):
        own, other = (best(name, span, label, reported, same) for same in (True, False))
        expected = slow_kinds(own, other, index in taken, 3)
        assert kind == (2 if expected is None else expected)


@given(truths, predictions)
def test_every_instance_and_detection_is_in_the_matrix_once(truth, found):
    analysis = analyse(as_segments(truth), as_segments(found))
    counts = [analysis.counts(label) for label in analysis.classes]
    assert analysis.confusion[:-1].sum(axis=1).tolist() == [c.instances for c in counts]
    assert analysis.confusion[:, :-1].sum(axis=0).tolist() == [c.detections for c in counts]
    assert analysis.confusion[-1, -1] == 0
    loose = match_detections(as_segments(truth), as_segments(found), [0.3])
    assert len(loose.truth) == sum(c.instances for c in counts)
    for side in range(2):
        total = analysis.kinds()[side]
        parts = [analysis.kinds(label)[side] for label in analysis.classes]
        assert total == {kind: sum(part[kind] for part in parts) for kind in total}


@given(truths, predictions)
def test_fitted_thresholds_are_the_best_ones(truth, found):
    truth, found = as_segments(truth), as_segments(found)
    best = best_thresholds(truth, found)
    analysis = analyse(truth, found)
    assert analysis.fitted == analysis.classes
    assert analysis.thresholds == {label: best[label].score for label in analysis.classes}
    for label in analysis.classes:
        assert analysis.counts(label).f1 == pytest.approx(best[label].f1)
        assert analysis.counts(label).recall == pytest.approx(best[label].recall, nan_ok=True)


def test_thresholds_of_some_classes():
    truth = {"v": Segments([0, 20], [10, 30], ["a", "b"])}
    found = {"v": Segments([0, 20], [10, 30], ["a", "b"], [0.4, 0.6])}
    analysis = analyse(truth, found, {"a": 0.5, "z": 0.1})
    assert analysis.fitted == ("b",) and analysis.thresholds["a"] == 0.5
    assert (analysis.counts("a").detections, analysis.counts("b").correct) == (0, 1)
    assert math.isnan(analysis.counts("a").precision)
    with pytest.raises(InputError, match="'a'"):
        analyse(truth, found, {"a": math.nan})


def test_boundaries_in_seconds_agree_with_those_in_frames():
    generator = np.random.default_rng(0)
    starts = 20.0 * np.arange(50)
    truth = {"v": Segments(starts, starts + 10, ["a"] * 50)}
    found = {"v": Segments(starts + generator.normal(0.5, 1, 50), starts + 10 + generator.normal(0, 1, 50), ["a"] * 50)}
    start, end = analyse(truth, found, 0.0).boundaries()
    frames = boundary_errors(truth, found, 25.0)
    assert start.median == pytest.approx(np.median(frames.start) / 25)
    assert end.percentile_90 == pytest.approx(np.percentile(frames.end, 90) / 25)
    assert start.bias == pytest.approx((found["v"].starts - starts).mean()) and start.count == 50


def test_recordings_that_only_predictions_name():
    truth = {"v": Segments([0], [10], ["a"])}
    analysis = analyse(truth, {"v": Segments.empty(), "w": Segments([0], [10], ["a"])}, 0.5)
    assert analysis.recordings == ("v", "w") and analysis.unknown == 1
    assert named(analysis)[0] == {(0, "a"): "background"}


def test_bad_requests():
    with pytest.raises(InputError, match="no instance"):
        analyse({"v": Segments.empty()}, {}, 0.5)
    with pytest.raises(InputError, match="'b'"):
        analyse({"v": Segments([0], [1], ["a"])}, {}).counts("b")
