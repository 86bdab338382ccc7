"""Voting: ends are means over what overlaps, and nothing else has a say."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.inference.nms import vote


def slow_vote(starts, ends, scores, labels, kept, threshold):
    voted = []
    for k in kept:
        votes = []
        for n in range(len(starts)):
            overlap = max(min(ends[k], ends[n]) - max(starts[k], starts[n]), 0.0)
            tiou = overlap / ((ends[k] - starts[k]) + (ends[n] - starts[n]) - overlap)
            if n == k:
                votes.append((scores[n], starts[n], ends[n]))
            elif labels[n] == labels[k] and tiou >= threshold:
                votes.append((scores[n] * tiou, starts[n], ends[n]))
        total = sum(weight for weight, _, _ in votes)
        voted.append([sum(w * s for w, s, _ in votes) / total, sum(w * e for w, _, e in votes) / total])
    return np.array(voted).T


@given(st.integers(1, 30), st.integers(0, 2**20), st.sampled_from([0.3, 0.6, 0.9, 1.0]))
@settings(max_examples=60, deadline=None)
def test_as_the_slow_version(count, seed, threshold):
    random = np.random.default_rng(seed)
    starts = random.uniform(0, 10, count)
    ends = starts + random.uniform(0.5, 8, count)
    scores, labels = random.uniform(0.01, 1, count), random.integers(0, 2, count)
    kept = random.permutation(count)[: random.integers(1, count + 1)]
    expected = slow_vote(starts, ends, scores, labels, kept, threshold)
    np.testing.assert_allclose(vote(starts, ends, scores, labels, kept, threshold), expected, rtol=1e-12)


def test_a_lonely_segment_stays_and_another_class_has_no_say():
    starts, ends = np.array([1.0, 1.1, 50.0]), np.array([5.0, 5.2, 60.0])
    voted = vote(starts, ends, np.array([0.9, 0.8, 0.7]), np.array([0, 1, 0]), np.array([0, 1, 2]), 0.5)
    np.testing.assert_allclose(voted, (starts, ends), rtol=1e-14)


def test_nothing_selected():
    nothing = np.empty(0)
    voted = vote(nothing, nothing, nothing, np.empty(0, np.intp), np.empty(0, np.intp), 0.5)
    assert [len(column) for column in voted] == [0, 0]
