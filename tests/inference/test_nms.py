"""Suppression against a slow greedy reference, and the invariants that every suppression has."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.inference.nms import suppress


def tiou(a, b):
    overlap = max(0.0, min(a[1], b[1]) - max(a[0], b[0]))
    return overlap / ((a[1] - a[0]) + (b[1] - b[0]) - overlap) if overlap > 0 else 0.0


def slow_suppress(starts, ends, scores, labels, method, sigma, tiou_threshold, min_score, max_segments):
    """Each class on its own, one candidate at a time; classes are merged at the end."""
    selected = []
    for label in set(labels):
        alive = {i: scores[i] for i in range(len(scores)) if labels[i] == label and scores[i] >= min_score}
        while alive:
            best = min(alive, key=lambda i: (-alive[i], i))
            selected.append((-alive.pop(best), best))
            for i in list(alive):
                overlap = tiou((starts[i], ends[i]), (starts[best], ends[best]))
                if method == "soft":
                    alive[i] *= float(np.exp(overlap * overlap / -sigma))
                    if alive[i] < min_score:
                        del alive[i]
                elif overlap > tiou_threshold:
                    del alive[i]
    selected.sort()
    return [i for _, i in selected][:max_segments], [-score for score, _ in selected][:max_segments]


@st.composite
def candidates(draw, distinct_scores=False):
    """Half of the examples on a coarse grid, where ties, duplicates, touching and zero-length segments are common."""
    count = draw(st.integers(0, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = draw(st.integers(1, 4))
    if draw(st.booleans()):
        starts, lengths = rng.integers(0, 8, count) / 2.0, rng.integers(0, 6, count) / 2.0
        scores = rng.integers(0, 9, count) / 8.0
    else:
        starts, lengths, scores = rng.uniform(0, 10, count), rng.exponential(2.0, count), rng.uniform(0, 1, count)
    if distinct_scores:
        scores = rng.permutation(count) / max(count, 1) + 0.01
    return starts, starts + lengths, scores, rng.integers(0, classes, count)


OPTIONS = st.fixed_dictionaries(
    {
        "method": st.sampled_from(["soft", "hard"]),
        "sigma": st.sampled_from([0.1, 0.5, 0.9, 1e-4]),
        "tiou_threshold": st.sampled_from([0.0, 0.2, 0.5, 1.0]),
        "min_score": st.sampled_from([0.0, 0.001, 0.2]),
        "max_segments": st.sampled_from([None, 0, 1, 5]),
    }
)


@given(candidates(), OPTIONS)
@settings(max_examples=400, deadline=None)
def test_equals_slow_reference(columns, options):
    indices, scores = suppress(*columns, **options)
    expected, expected_scores = slow_suppress(*(column.tolist() for column in columns), **options)
    assert indices.tolist() == expected
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-12)


def slow_bmn(starts, ends, scores, labels, sigma, min_score, max_segments, duration):
    """BMN's soft-NMS from its description: the wider the selected segment, the more overlap it tolerates."""
    duration = max(ends, default=0.0) - min(starts, default=0.0) if duration is None else duration
    selected = []
    for label in set(labels):
        alive = {i: scores[i] for i in range(len(scores)) if labels[i] == label and scores[i] >= min_score}
        while alive:
            best = min(alive, key=lambda i: (-alive[i], i))
            selected.append((-alive.pop(best), best))
            width = ends[best] - starts[best]
            threshold = 0.5 + 0.4 * min(width / duration if width else 0.0, 1.0)
            for i in list(alive):
                overlap = tiou((starts[i], ends[i]), (starts[best], ends[best]))
                if overlap > threshold:
                    alive[i] *= float(np.exp(-(overlap**2) / sigma))
                if alive[i] < min_score:
                    del alive[i]
    selected.sort()
    return [i for _, i in selected][:max_segments], [-score for score, _ in selected][:max_segments]


@given(candidates(), OPTIONS, st.sampled_from([None, 12.0, 40.0, 1.0]))
@settings(max_examples=200, deadline=None)
def test_bmn_equals_slow_reference(columns, options, duration):
    options = {name: options[name] for name in ("sigma", "min_score", "max_segments")}
    starts, ends = columns[0], columns[1]
    # A tIoU that is exactly at a threshold goes either way by a rounding error: move segments off the grid.
    noise = np.random.default_rng(0).uniform(0, 1e-3, (2, len(starts)))
    columns = (starts + noise[0], ends + noise[0] + noise[1], *columns[2:])
    indices, scores = suppress(*columns, method="bmn", duration=duration, **options)
    expected, expected_scores = slow_bmn(*(column.tolist() for column in columns), duration=duration, **options)
    assert indices.tolist() == expected
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("duration", "threshold"), [(None, 0.9), (5.0, 0.9), (20.0, 0.7), (1e9, 0.5)])
def test_bmn_tolerates_more_beside_a_wider_segment(duration, threshold):
    """The selected segment is 10 long; the other, inside it, has a tIoU just below or just above the threshold."""
    for tiou_, decay in ((threshold - 0.01, 1.0), (threshold + 0.01, np.exp(-((threshold + 0.01) ** 2) / 0.4))):
        columns = [0.0, 0.0], [10.0, 10 * tiou_], [0.9, 0.8], [0, 0]
        scores = suppress(*columns, method="bmn", duration=duration, sigma=0.4)[1]
        np.testing.assert_allclose(scores, [0.9, 0.8 * decay])


def field_soft_nms(starts, ends, scores, labels, sigma, min_score, max_segments):
    """The soft-NMS of the field's detectors: lengths + 1e-6, class by class, then the best of all classes."""
    indices, kept = [], []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        left = scores[rows].copy()
        areas = ends[rows] - starts[rows] + 1e-6
        while len(rows):
            best = int(np.argmax(left))
            indices.append(int(rows[best]))
            kept.append(left[best])
            shared = np.maximum(
                0.0, np.minimum(ends[rows], ends[rows[best]]) - np.maximum(starts[rows], starts[rows[best]])
            )
            overlap = shared / (areas + areas[best] - shared)
            left = left * np.exp(-(overlap**2) / sigma)
            stays = left >= min_score
            stays[best] = False
            rows, left, areas = rows[stays], left[stays], areas[stays]
    order = np.argsort(-np.array(kept), kind="stable")[:max_segments]
    return [indices[i] for i in order], np.array(kept)[order]


@pytest.mark.parametrize("seed", range(12))
def test_soft_agrees_with_the_fields_detectors(seed):
    """Up to the 1e-6 that they add to each length."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 120))
    starts, lengths = rng.uniform(0, 50, count), rng.uniform(0.5, 10, count)
    columns = starts, starts + lengths, rng.uniform(0.01, 1, count), rng.integers(0, 4, count)
    options = {"sigma": [0.5, 0.9, 0.1][seed % 3], "min_score": 0.001, "max_segments": [200, 20][seed % 2]}
    indices, scores = suppress(*columns, method="soft", **options)
    expected, expected_scores = field_soft_nms(*columns, **options)
    assert indices.tolist() == expected
    np.testing.assert_allclose(scores, expected_scores, rtol=0, atol=1e-4)


@given(candidates(), st.sampled_from(["soft", "hard", "none", "bmn"]), st.integers(0, 30))
@settings(deadline=None)
def test_limit_is_a_prefix_of_the_unlimited_result(columns, method, limit):
    indices, scores = suppress(*columns, method=method, max_segments=None)
    few, few_scores = suppress(*columns, method=method, max_segments=limit)
    assert few.tolist() == indices[:limit].tolist()
    assert few_scores.tolist() == scores[:limit].tolist()
    assert (np.diff(scores) <= 0).all()


@given(candidates(), st.sampled_from(["soft", "hard"]))
@settings(deadline=None)
def test_classes_do_not_see_each_other(columns, method):
    indices, scores = suppress(*columns, method=method, max_segments=None)
    labels = columns[3]
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        alone, alone_scores = suppress(*(column[rows] for column in columns), method=method, max_segments=None)
        of_class = labels[indices] == label
        assert rows[alone].tolist() == indices[of_class].tolist()
        assert alone_scores.tolist() == scores[of_class].tolist()


@given(candidates(distinct_scores=True), st.sampled_from(["hard", "none"]), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_of_the_input_does_not_matter(columns, method, random):
    order = np.array(random.sample(range(len(columns[0])), len(columns[0])), np.intp)
    indices, scores = suppress(*columns, method=method, max_segments=None)
    moved, moved_scores = suppress(*(column[order] for column in columns), method=method, max_segments=None)
    assert order[moved].tolist() == indices.tolist()
    assert moved_scores.tolist() == scores.tolist()


def test_order_of_the_input_does_not_matter_for_soft():
    # continuous values only: decayed scores of different segments can tie on a grid even if the scores do not
    rng = np.random.default_rng(7)
    starts = rng.uniform(0, 50, 300)
    columns = starts, starts + rng.exponential(5, 300), rng.uniform(0, 1, 300), rng.integers(0, 4, 300)
    order = rng.permutation(300)
    indices, scores = suppress(*columns)
    moved, moved_scores = suppress(*(column[order] for column in columns))
    assert order[moved].tolist() == indices.tolist()
    assert moved_scores.tolist() == scores.tolist()


@given(candidates(), st.sampled_from([0.1, 0.5, 0.8]))
@settings(deadline=None)
def test_hard_leaves_no_pair_above_the_threshold_and_no_unexplained_loss(columns, threshold):
    starts, ends, scores, labels = columns
    kept, _ = suppress(*columns, method="hard", tiou_threshold=threshold, max_segments=None)

    def overlap(i, j):
        return tiou((starts[i], ends[i]), (starts[j], ends[j])) if labels[i] == labels[j] else 0.0

    assert all(overlap(i, j) <= threshold for i in kept for j in kept if i != j)
    for lost in set(np.flatnonzero(scores >= 0.001)) - set(kept):
        assert any(overlap(lost, i) > threshold and scores[i] >= scores[lost] for i in kept)


def test_closed_forms():
    # two of one class with tIoU 1/3, the first of another class in the same place
    columns = [0.0, 1.0, 0.0], [2.0, 3.0, 2.0], [0.9, 0.8, 0.7], [0, 0, 1]
    indices, scores = suppress(*columns, sigma=0.5)
    assert indices.tolist() == [0, 2, 1]
    np.testing.assert_allclose(scores, [0.9, 0.7, 0.8 * np.exp(-2 / 9)])  # 0.64: now behind the other class
    assert suppress(*columns, method="hard", tiou_threshold=1 / 3)[0].tolist() == [0, 1, 2]
    assert suppress(*columns, method="hard", tiou_threshold=0.33)[0].tolist() == [0, 2]
    assert suppress(*columns, method="none")[0].tolist() == [0, 1, 2]


def test_exact_duplicates():
    indices, scores = suppress([1.0] * 3, [4.0] * 3, [0.5] * 3, [2] * 3, sigma=0.5)
    assert indices.tolist() == [0, 1, 2]
    np.testing.assert_allclose(scores, 0.5 * np.exp([0.0, -2.0, -4.0]))


def test_zero_length_segments_overlap_nothing():
    columns = [1.0, 1.0, 0.0], [1.0, 1.0, 2.0], [0.5, 0.4, 0.9], [0, 0, 0]
    for method in ("soft", "hard"):
        indices, scores = suppress(*columns, method=method)
        assert indices.tolist() == [2, 0, 1]
        assert scores.tolist() == [0.9, 0.5, 0.4]


def test_ties_keep_the_input_order_across_classes():
    indices, _ = suppress([30.0, 0.0, 20.0, 10.0], [31.0, 1.0, 21.0, 11.0], [0.5] * 4, [1, 0, 1, 0])
    assert indices.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["soft", "hard", "none", "bmn"])
def test_empty(method):
    for columns in (([], [], [], []), ([0.0], [1.0], [0.0], [0])):
        indices, scores = suppress(*columns, method=method)
        assert indices.shape == scores.shape == (0,)
        assert indices.dtype.kind == "i" and scores.dtype == np.float64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [0.5, np.nan]}, "scores must be finite"),
        ({"starts": [np.inf, 0.0]}, "starts must be finite"),
        ({"ends": [-1.0, 2.0]}, "ends before it starts"),
        ({"labels": [0.0, 1.0]}, "integers"),
        ({"labels": [0]}, "one length"),
        ({"method": "linear"}, "linear"),
        ({"sigma": 0.0}, "sigma"),
        ({"min_score": -0.1}, "min_score"),
        ({"max_segments": -1}, "max_segments"),
        ({"duration": 0.0}, "duration"),
    ],
)
def test_meaningless_input(change, message):
    arguments = {"starts": [0.0, 1.0], "ends": [1.0, 2.0], "scores": [0.5, 0.6], "labels": [0, 1]}
    with pytest.raises(ValueError, match=message):
        suppress(**(arguments | change))
