"""AR@AN against a slow version written from the toolkit's description, and closed forms."""

import numpy as np
import pytest

from temporalzoom.errors import InputError
from temporalzoom.metrics import average_recall
from temporalzoom.segments import Segments

THRESHOLDS = np.linspace(0.5, 0.95, 10)


def slow_average_recall(truth, proposals, thresholds, max_average):
    """Instance by instance, proposal by proposal."""
    videos = [name for name in truth if len(truth[name])]
    ratio = max_average * float(len(videos)) / sum(len(p) for p in proposals.values())
    lists = {}
    for name in videos:
        segments = proposals.get(name, Segments.empty())
        rows = sorted(zip(-segments.scores, range(len(segments)), segments.starts, segments.ends, strict=True))
        lists[name] = [row[2:] for row in rows][: int(len(rows) * ratio)]
    kept = sum(len(rows) for rows in lists.values())
    curve = []
    for step in range(1, 101):
        share = step / 100.0 * (max_average * float(len(videos)) / kept)
        recalls = []
        for threshold in thresholds:
            hits, instances = 0, 0
            for name in videos:
                used = lists[name][: int(len(lists[name]) * share)]
                for start, end in zip(truth[name].starts, truth[name].ends, strict=True):
                    instances += 1
                    for low, high in used:
                        shared = min(end, high) - max(start, low)
                        if shared > 0 and shared / ((end - start) + (high - low) - shared) >= threshold:
                            hits += 1
                            break
            recalls.append(hits / instances)
        curve.append(sum(recalls) / len(recalls))
    return np.array(curve)


def random_segments(rng, count):
    starts = rng.uniform(0, 20, count)
    return Segments(
        starts, starts + rng.uniform(0.5, 8, count), ["any"] * count, rng.permutation(count) / max(count, 1)
    )


def test_equals_slow_version():
    """Videos with many, few and no proposals; one without instances; proposals of an unknown video."""
    for seed in range(4):
        for max_average in [3, 100]:
            rng = np.random.default_rng(seed)
            truth = {name: random_segments(rng, count) for name, count in {"a": 3, "b": 1, "c": 2, "empty": 0}.items()}
            counts = {"a": 17, "b": 4, "empty": 5, "unknown": 2} | ({"c": 0} if seed % 2 else {})
            proposals = {name: random_segments(rng, count) for name, count in counts.items()}
            near = Segments(truth["a"].starts + 0.1, truth["a"].ends, truth["a"].labels, rng.uniform(0.5, 1, 3))
            proposals["a"] = Segments.concatenate((proposals["a"], near))
            average, recall, area = average_recall(truth, proposals, max_average=max_average)
            expected = slow_average_recall(truth, proposals, THRESHOLDS, max_average)
            np.testing.assert_allclose(average, np.arange(1, 101) / 100 * max_average)
            np.testing.assert_allclose(recall, expected, rtol=0, atol=1e-12)
            assert area == pytest.approx(np.trapezoid(expected, average) / max_average)
            assert 0 < recall[-1] <= 1 and (np.diff(recall) >= 0).all()


def one(start, end, score=1.0):
    return Segments([start], [end], ["any"], [score])


def test_closed_forms():
    truth = {"a": one(0, 10), "b": one(5, 15)}
    # Perfect, one per video: all share it from the first full count on, AN = 1, of 100 steps up to 1.
    _, recall, area = average_recall(truth, truth, max_average=1)
    assert recall[:-1].tolist() == [0.0] * 99 and recall[-1] == 1.0
    assert area == pytest.approx(0.005)
    # At up to 100 on average, one proposal is all there is from AN = 1 on.
    assert average_recall(truth, truth)[1].tolist() == [1.0] * 100
    # A tIoU of 0.72 is above 5 of the 10 thresholds (0.5 to 0.7); half of the instances have none at all.
    assert average_recall(truth, {"a": one(0, 7.2)})[1].tolist() == pytest.approx([0.25] * 100)
    # The better one has the lower score: found at the second proposal only.
    two = Segments([0, 20], [10, 30], ["any"] * 2, [0.1, 0.9])
    _, recall, _ = average_recall({"a": one(0, 10)}, {"a": two}, max_average=2)
    assert recall[49] == recall[98] == 0.0 and recall[99] == 1.0


def test_nothing_found_and_nothing_to_find():
    average, recall, area = average_recall({"a": one(0, 10)}, {})
    assert len(average) == 100 and not recall.any() and area == 0.0
    with pytest.raises(InputError, match="no instance"):
        average_recall({"a": Segments.empty()}, {"a": one(0, 10)})
    with pytest.raises(InputError, match="max_average"):
        average_recall({"a": one(0, 10)}, {"a": one(0, 10)}, max_average=0)
