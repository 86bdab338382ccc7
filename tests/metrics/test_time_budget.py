"""Time budgets: in closed form, and as properties that every budget has."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.metrics.time_budget import bin_edges, bouts, pool, time_budget
from temporalzoom.segments import Segments

DURATION = 24.0


@st.composite
def recordings(draw, overlap=True):
    """Segments of three behaviours within 24 seconds; without overlap they follow each other."""
    count = draw(st.integers(0, 12))
    if overlap:
        starts = np.array(draw(st.lists(st.floats(0, DURATION), min_size=count, max_size=count)))
        ends = np.minimum(starts + draw(st.lists(st.floats(0, 8), min_size=count, max_size=count)), DURATION)
    else:
        times = sorted(draw(st.lists(st.floats(0, DURATION), min_size=2 * count, max_size=2 * count)))
        starts, ends = times[::2], times[1::2]
    labels = draw(st.lists(st.sampled_from(["groom", "rear", "walk"]), min_size=count, max_size=count))
    return Segments(starts, ends, labels)


def test_by_hand():
    segments = Segments([2, 10, 13, 5], [4, 11, 16, 6], ["groom", "groom", "groom", "rear"])
    groom, rear = time_budget(segments, 20.0)
    assert (groom.behaviour, groom.count, groom.total, groom.share) == ("groom", 3, 6.0, 0.3)
    assert (groom.mean, groom.median, groom.sd) == (2.0, 2.0, 1.0)
    assert groom.intervals.tolist() == [6.0, 2.0] and (groom.mean_interval, groom.median_interval) == (4.0, 4.0)
    assert (groom.latency, rear.latency) == (2.0, 5.0)
    assert (rear.count, rear.mean, rear.share) == (1, 1.0, 0.05)
    assert math.isnan(rear.sd) and math.isnan(rear.mean_interval)


def test_bins_by_hand():
    """A bout from 8 to 13 in bins of 5 seconds: counted in the second, 2 seconds there, 3 in the third."""
    segments = Segments([1, 8, 14], [2, 13, 14.5], ["groom"] * 3)
    first, second, third, last = time_budget(segments, 17.0, width=5.0)
    assert [(b.start, b.end, b.observed) for b in (first, last)] == [(0, 5, 5), (15, 17, 2)]
    assert [b.count for b in (first, second, third, last)] == [1, 1, 1, 0]
    assert [b.total for b in (first, second, third, last)] == [1, 2, 3.5, 0]
    assert second.lengths.tolist() == [5.0] and second.intervals.tolist() == [6.0]  # whole, and by where it starts
    assert [b.latency for b in (first, second, third)] == [1, 3, 4] and math.isnan(last.latency)
    assert (third.share, last.share) == (0.7, 0)


def test_bouts_overlap_touch_and_last_no_time():
    segments = Segments([0, 1, 3, 5, 5, 6], [2, 3, 4, 5, 8, 7], ["groom"] * 6)
    starts, ends = bouts(segments, 10.0)
    assert list(zip(starts, ends, strict=True)) == [(0, 3), (3, 4), (5, 5), (5, 8)]
    [whole] = time_budget(segments, 10.0)
    assert whole.total == 7.0 and whole.count == 4 and whole.intervals.tolist() == [0.0, 1.0, 0.0]
    at_the_end = time_budget(Segments([10], [10], ["groom"]), 10.0, width=5.0)
    assert [b.count for b in at_the_end] == [0, 1]


def test_behaviours_that_never_happen_and_recordings_that_hold_nothing():
    [never] = time_budget(Segments.empty(), 10.0, ["groom"])
    assert (never.count, never.total, never.share) == (0, 0.0, 0.0) and math.isnan(never.mean)
    [nothing] = time_budget(Segments.empty(), 0.0, ["groom"], width=60.0)
    assert math.isnan(nothing.share)
    assert time_budget(Segments.empty(), 10.0) == []


@given(recordings(overlap=False))
def test_shares_sum_up_to_at_most_one_without_overlap(segments):
    budgets = time_budget(segments, DURATION)
    assert sum(budget.share for budget in budgets) <= 1 + 1e-9
    for budget in budgets:
        own = segments.filter(labels=budget.behaviour)
        lengths = own.durations.tolist()
        assert budget.count == len(own) and budget.total == pytest.approx(sum(lengths))
        assert budget.mean == pytest.approx(statistics.mean(lengths))
        assert budget.median == pytest.approx(statistics.median(lengths))
        if len(own) > 1:
            assert budget.sd == pytest.approx(statistics.stdev(lengths), abs=1e-9)
        gaps = own.sort("start").starts[1:] - own.sort("start").ends[:-1]
        np.testing.assert_allclose(budget.intervals, gaps)


@given(recordings(), st.floats(0.3, 40))
def test_bins_add_up_to_the_whole(segments, width):
    whole = time_budget(segments, DURATION)
    parts = time_budget(segments, DURATION, width=width)
    assert len(parts) == len(whole) * (len(bin_edges(DURATION, width)) - 1)
    for budget in whole:
        own = [part for part in parts if part.behaviour == budget.behaviour]
        assert sum(part.count for part in own) == budget.count
        assert sum(part.total for part in own) == pytest.approx(budget.total, abs=1e-9)
        assert sum(part.observed for part in own) == pytest.approx(DURATION)
        assert all(-1e-9 <= part.total <= part.observed + 1e-9 for part in own)
        pooled = pool(own)
        assert sorted(pooled.lengths) == sorted(budget.lengths) and pooled.share == pytest.approx(budget.share)
        assert len(pooled.intervals) == len(budget.intervals)


@given(recordings())
def test_time_is_that_of_the_union(segments):
    """An independent way to the same number, for labels that overlap themselves."""
    for budget in time_budget(segments, DURATION):
        united = segments.filter(labels=budget.behaviour).union()
        assert budget.total == pytest.approx(united.durations.sum(), abs=1e-9) and budget.share <= 1 + 1e-9


def test_several_recordings_are_pooled():
    one = time_budget(Segments([0, 4], [1, 6], ["groom", "groom"]), 10.0)
    two = time_budget(Segments([3], [6], ["groom"]), 20.0)
    both = pool([*one, *two])
    assert (both.count, both.total, both.share, both.mean, both.latency) == (3, 6.0, 0.2, 2.0, 1.5)
    assert both.intervals.tolist() == [3.0]  # none from one recording to the next


@pytest.mark.parametrize(
    ("segments", "duration", "width", "complaint"),
    [
        (Segments([11], [12], ["groom"]), 10.0, None, "'groom' starts at 11 s, after the end of the recording at 10 s"),
        (Segments.unchecked([3], [2], ["groom"]), 10.0, None, "'groom' from 3 to 2 s"),
        (Segments.unchecked([math.nan], [2], ["groom"]), 10.0, None, "'groom' from nan to 2 s"),
        (Segments.empty(), math.inf, None, "duration"),
        (Segments.empty(), 10.0, 0.0, "bins must last longer"),
        (Segments.empty(), 1e9, 1e-3, "at most 100000"),
    ],
)
def test_what_has_no_budget(segments, duration, width, complaint):
    with pytest.raises(InputError, match=complaint):
        time_budget(segments, duration, width=width)
