"""Pairs with enough tIoU: as many as the full matrix has, found without it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.metrics import analyse, average_recall, evaluate_detections
from temporalzoom.metrics import pairs as module
from temporalzoom.metrics.pairs import Pool, near_pairs, overlapping_pairs, tiou
from temporalzoom.metrics.proposals import _proposals_needed
from temporalzoom.segments import Segments


def slow_pairs(detections: Pool, truth: Pool, smallest: float, same_class: bool):
    """All pairs of one video (and class), by the matrix."""
    overlap = tiou(detections.starts, detections.ends, truth.starts, truth.ends)
    allowed = detections.videos[:, None] == truth.videos
    if same_class:
        allowed &= detections.labels[:, None] == truth.labels
    rows, columns = np.nonzero(allowed & (overlap >= smallest))
    return rows, columns, overlap[rows, columns]


def random_pool(draw, count, span, longest):
    starts = draw.uniform(0, span, count)
    lengths = np.where(draw.random(count) < 0.1, 0.0, longest ** draw.uniform(-3, 1, count))
    if draw.random() < 0.5:  # many ties
        starts, lengths = np.round(starts), np.round(lengths)
    return Pool(starts, starts + lengths, draw.random(count), draw.integers(0, 3, count), draw.integers(0, 3, count))


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.sampled_from([1e-9, 0.1, 0.5, 0.95, 1.0]), st.booleans(), st.sampled_from([7, 2**20]))
def test_bit_equal_to_the_matrix(seed, smallest, same_class, at_once):
    draw = np.random.default_rng(seed)
    pools = [random_pool(draw, int(draw.integers(0, 60)), 30.0, float(draw.choice([4, 50]))) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AT_ONCE", at_once)
        got = overlapping_pairs(*pools, smallest, same_class)
    order = np.lexsort((got[1], got[0]))
    for mine, expected in zip(got, slow_pairs(*pools, smallest, same_class), strict=True):
        np.testing.assert_array_equal(mine[order], expected)


def annotated(count: int, recordings: int) -> tuple[dict[str, Segments], dict[str, Segments]]:
    """The same instances and detections, in few recordings or in many; some of them long."""
    draw = np.random.default_rng(0)
    each = count // recordings
    truth, found = {}, {}
    lengths = draw.lognormal(0, 1.5, (recordings, each))
    for number in range(recordings):
        starts = np.arange(each) * 5.0
        moved = starts + draw.normal(0, 0.3, each)
        labels = draw.choice(["a", "b"], each)
        truth[f"r{number}"] = Segments(starts, starts + lengths[number], labels)
        found[f"r{number}"] = Segments(moved, moved + lengths[number], labels, draw.random(each))
    return truth, found


def pairs_looked_at(count: int, recordings: int) -> int:
    truth, found = annotated(count, recordings)
    pools = []
    for part in (found, truth):
        every = Segments.concatenate(part.values())
        videos = np.repeat(np.arange(recordings), count // recordings)
        labels = (every.labels == "b").astype(np.intp)
        pools.append(Pool(every.starts, every.ends, every.scores, labels, videos))
    return sum(len(rows) for rows, _ in near_pairs(*pools, 0.1, same_class=False))


def test_one_long_recording_is_no_more_work_than_many_short_ones():
    together, apart = pairs_looked_at(200_000, 1), pairs_looked_at(200_000, 2000)
    assert together <= 2 * apart
    assert apart < 50 * 200_000  # and not the square


def test_one_segment_that_lasts_all_day_does_not_meet_everything():
    count = 2000
    starts = np.arange(count) * 10.0
    truth = Pool(np.append(starts, 0), np.append(starts + 5, 1e6), *(np.zeros(count + 1, d) for d in (float, int, int)))
    assert sum(len(rows) for rows, _ in near_pairs(truth, truth, 0.1)) < 10 * count


def test_a_day_of_annotations_is_evaluated():
    """Which a matrix of 20,000 x 20,000 per class would make a matter of minutes and gigabytes."""
    truth, found = annotated(20_000, 1)
    assert evaluate_detections(truth, found, [0.3, 0.7]).average > 0.1
    assert analyse(truth, found, 0.5).counts().correct > 1000
    assert average_recall(truth, found, max_average=20_000)[2] > 0.1


def slow_needed(truth, proposals, order, thresholds):
    overlap = tiou(truth.starts, truth.ends, proposals.starts[order], proposals.ends[order])
    so_far = np.maximum.accumulate(overlap, axis=1)
    return (so_far[:, None] < thresholds[:, None]).sum(axis=2) + 1


@given(st.integers(0, 10**6))
def test_proposals_needed_by_definition(seed):
    draw = np.random.default_rng(seed)
    truth, proposals = (random_pool(draw, int(draw.integers(1, 30)), 20.0, 8.0) for _ in range(2))
    truth, proposals = (Segments(p.starts, p.ends, ["a"] * len(p), p.scores) for p in (truth, proposals))
    order = np.argsort(-proposals.scores, kind="stable")[: int(draw.integers(0, 30))]
    thresholds = np.array([0.0, 0.2, 0.5, 0.95])
    np.testing.assert_array_equal(
        _proposals_needed(truth, proposals, order, thresholds), slow_needed(truth, proposals, order, thresholds)
    )
