"""The fingerprint: numbers of a data set with a known answer, and their words."""

from dataclasses import replace

import numpy as np
import pytest

from temporalzoom.datasets.fingerprint import (
    annotation_step,
    fingerprint,
    gaps_between,
    in_words,
    shortest_class,
    span,
)
from temporalzoom.formats import Recording
from temporalzoom.segments import Segments


def recording(name, starts, ends, labels, subject=None):
    extra = {} if subject is None else {"subject": subject}
    return Recording(name, None, None, None, Segments(starts, ends, labels), extra=extra)


@pytest.fixture
def found():
    """Two recordings of 20 s and 10 s at 10 rows per second: three runs of two seconds, one jump of half a second."""
    random = np.random.default_rng(0)
    signals = {"a": random.normal(size=(200, 3)), "b": random.normal(size=(100, 3)) + 5}
    signals["a"][:10, 0] = np.nan
    for name, first, last in (("a", 20, 40), ("a", 100, 120), ("b", 10, 30), ("b", 35, 40)):
        signals[name][first:last, 1] += 30  # something changes at the boundaries
    recordings = [
        recording("a", [2, 10], [4, 12], ["run", "run"], "anna"),
        recording("b", [1, 3.5], [3, 4], ["run", "jump"], "ben"),
    ]
    return fingerprint(recordings, lambda name: signals[name].astype(np.float32), {"a": 10.0, "b": 10.0})


def test_numbers(found):
    assert (found.recordings, found.subjects, found.channels, found.total) == (2, 2, 3, 4)
    assert found.seconds == 30 and found.length(0) == 10 and found.length(100) == 20
    assert found.instances == {"jump": 1, "run": 3} and found.imbalance == 3
    assert found.duration(100) == 2 and found.duration(0) == 0.5
    assert found.covered == pytest.approx(6.5 / 30)
    assert found.missing == pytest.approx(10 / 900)
    assert found.overlapping == 0 and found.rate == 10
    assert found.spread > 1  # recordings differ by their level
    assert found.sharpness > 1


def test_words(found):
    words = "\n".join(in_words(replace(found, annotation_step=0.5, kinds={"acceleration": 3})))
    for part in (
        "2 recordings of 2 subjects",
        "3 acceleration",
        "10 rows per second",
        "4 instances of 2 classes",
        "run 3",
    ):
        assert part in words
    assert "multiples of 0.5 s" in words and "1.1% of the values are missing" in words


def test_a_rare_class_does_not_decide():
    common = Segments(np.arange(40.0), np.arange(40.0) + 0.8, ["walk"] * 40)
    slip = Segments([50.0], [50.01], ["slip"])
    assert shortest_class([common, slip]) == pytest.approx(0.8)
    assert shortest_class([slip]) == pytest.approx(0.01)
    assert np.isnan(shortest_class([Segments.empty()]))


def test_gaps_are_negative_where_instances_overlap():
    assert gaps_between(Segments([5, 0, 9], [8, 6, 10], ["a", "b", "a"])).tolist() == [-1, 1]


@pytest.mark.parametrize(("step", "expected"), [(1.0, 1.0), (0.5, 0.5), (0.04, 0.04), (0.0137, None)])
def test_what_annotators_round_to(step, expected):
    times = step * np.random.default_rng(0).integers(0, 10_000, size=(2, 60))
    segments = Segments(times.min(axis=0), times.max(axis=0), ["a"] * 60)
    assert annotation_step([segments], rate=100.0) == expected
    assert annotation_step([segments], rate=0.5) is None  # a row is coarser than that
    assert annotation_step([segments[:5]], rate=100.0) is None  # too few to tell


def test_spans_for_people():
    assert [span(value) for value in (0.05, 3.2, 240, 9000, float("nan"))] == ["0.05 s", "3.2 s", "4 min", "2.5 h", "?"]
