"""Intervals of precision, recall and F1 over recordings."""

import numpy as np
import pytest
from analysis_strategies import as_segments, predictions, truths
from hypothesis import given, settings

from temporalzoom.metrics.bootstrap import bootstrap_interval, draw_recordings
from temporalzoom.metrics.errors import analyse
from temporalzoom.metrics.rates import rate_intervals, recording_counts
from temporalzoom.segments import Segments


def test_equal_recordings_leave_no_doubt():
    truth = {name: Segments([0, 20], [10, 30], ["a", "b"]) for name in "uvw"}
    found = {name: Segments([0, 40], [10, 50], ["a", "a"]) for name in "uvw"}
    intervals = rate_intervals(analyse(truth, found, 0.5))
    assert intervals[None].recall == intervals[None].precision == intervals[None].f1 == (0.5, 0.5)
    assert intervals["a"].recall == (1, 1) and intervals["a"].precision == (0.5, 0.5)
    assert intervals["b"].precision is None and intervals["b"].recall == (0, 0)  # no detection: no precision


def test_a_share_of_two_recordings():
    """One recording with everything found and one with nothing: either alone is drawn in a quarter of the resamples."""
    truth = {name: Segments([0], [10], ["a"]) for name in "uv"}
    intervals = rate_intervals(analyse(truth, {"u": Segments([0], [10], ["a"])}, 0.5))
    assert intervals["a"].recall == (0, 1) and intervals["a"].precision == (1, 1)


@settings(max_examples=25)
@given(truths, predictions)
def test_against_recordings_that_are_really_repeated(truth, found):
    truth, found = as_segments(truth), as_segments(found)
    analysis = analyse(truth, found, 2.0)
    draws = draw_recordings(len(analysis.recordings), 20, 0)
    recalls = []
    for draw in draws:
        copies = [(name, k) for name, n in zip(analysis.recordings, draw, strict=True) for k in range(n)]
        again = {f"{name}{k}": truth.get(name, Segments.empty()) for name, k in copies}
        if any(len(segments) for segments in again.values()):
            repeated = {f"{name}{k}": found.get(name, Segments.empty()) for name, k in copies}
            recalls.append(analyse(again, repeated, 2.0).counts().recall)
    interval = rate_intervals(analysis, resamples=20)[None].recall
    assert interval == pytest.approx(bootstrap_interval(recalls)) if recalls else interval is None
    for array, total in zip(recording_counts(analysis), vars(analysis.counts()).values(), strict=True):
        assert np.sum(array) == total
