"""Extraction: exact on exact fields, suppression equal to the greedy loop."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.bdr import combine_with_probabilities, distance_targets, extract_boundaries
from temporalzoom.bdr.extraction import suppress

first_boundary = st.one_of(st.just(0.0), st.integers(0, 9).map(float), st.floats(0, 30))


@st.composite
def boundary_sets(draw, firsts=first_boundary, gaps=st.floats(2.001, 70)):
    """Ascending boundaries, anywhere between the samples; the first may be exactly 0."""
    return draw(firsts) + np.concatenate([[0.0], np.cumsum(draw(st.lists(gaps, max_size=12)))])


# On the grid the gap may be 2, the limit; off the grid rounding could push a gap of 2 below it.
on_grid = boundary_sets(st.integers(0, 9), st.integers(2, 40))


def greedy(positions, strengths, window):
    """Suppression as it is usually written: strongest first, one after the other."""
    kept = []
    for index in sorted(range(len(positions)), key=lambda i: (-strengths[i], i)):
        if all(abs(positions[index] - positions[k]) >= window / 2 for k in kept):
            kept.append(index)
    return sorted(kept)


@settings(max_examples=800, deadline=None)
@given(
    st.one_of(boundary_sets(), on_grid),
    st.sampled_from([0, 0, 1, 25]),
    st.sampled_from([None, 1.0, 16.0]),
    st.sampled_from([0.0, 0.0, 2.0, 30.0]),
)
def test_exact_fields_give_exactly_their_boundaries(boundaries, tail, radius, smoothing):
    length = int(np.ceil(boundaries[-1])) + 1 + tail
    smoothing = smoothing if radius is None else min(smoothing, (radius - 1) / 6)
    field = distance_targets(boundaries, [], length, radius=radius, smoothing=smoothing, dtype=torch.float64)[:, 0]
    positions, strengths = extract_boundaries(field, window=3.0)
    np.testing.assert_allclose(positions, boundaries, rtol=0, atol=1e-6)
    np.testing.assert_allclose(strengths, 1.0, atol=1e-6)


@settings(max_examples=200, deadline=None)
@given(boundary_sets(gaps=st.floats(2.6, 70)))
def test_default_window_and_float32(boundaries):
    field = distance_targets(boundaries, [], int(np.ceil(boundaries[-1])) + 2, dtype=torch.float32)[:, 0]
    np.testing.assert_allclose(extract_boundaries(field)[0], boundaries, rtol=0, atol=1e-5)


def test_the_midpoint_is_not_a_boundary():
    field = distance_targets([5.0, 15.0], [], 21)[:, 0]
    assert (field[:-1].sign() != field[1:].sign()).sum() > 2  # what the paper's rule would report
    np.testing.assert_allclose(extract_boundaries(field)[0], [5.0, 15.0])


def test_numpy_torch_and_half_precision_agree():
    field = np.random.default_rng(0).normal(size=400)
    for other in (torch.tensor(field), torch.tensor(field, requires_grad=True), list(field)):
        for a, b in zip(extract_boundaries(field), extract_boundaries(other), strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(extract_boundaries(torch.tensor(field).bfloat16())[0]) > 0


def test_slope_threshold_and_interpolation_by_hand():
    positions, strengths = extract_boundaries([-0.9, -0.3, 0.1, 0.2, -0.3, 0.9])
    np.testing.assert_allclose(positions, [4.25])
    np.testing.assert_allclose(strengths, [1.2])
    np.testing.assert_allclose(extract_boundaries([-0.9, -0.3, 0.1, 0.2], min_slope=0.3)[0], [1.75])


def test_fields_without_a_crossing():
    for field in [[], [1.0], [-1.0], np.zeros(9), np.ones(9), -np.ones(9), np.full(4, np.nan), np.arange(9, 0, -1)]:
        positions, strengths = extract_boundaries(field)
        assert positions.shape == strengths.shape == (0,) and positions.dtype == np.float64


def test_edges():
    np.testing.assert_array_equal(extract_boundaries([0.0])[0], [0.0])
    np.testing.assert_array_equal(extract_boundaries(np.arange(5.0))[0], [0.0])
    np.testing.assert_array_equal(extract_boundaries(np.arange(-4.0, 1.0))[0], [4.0])
    assert len(extract_boundaries(np.arange(5) + 0.4)[0]) == 0
    np.testing.assert_allclose(extract_boundaries(np.arange(5) + 0.4, margin=0.5)[0], [-0.4])
    np.testing.assert_allclose(extract_boundaries(np.arange(-5, 0) + 0.25, margin=1.0)[0], [4.75])
    with pytest.raises(ValueError, match="one field"):
        extract_boundaries(np.zeros((4, 2)))


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 200).map(lambda x: x / 4), st.integers(0, 5)), max_size=40),
    st.sampled_from([0.0, 1.0, 5.0, 7.5, 1000.0]),
)
def test_suppression_equals_the_greedy_loop(candidates, window):
    candidates = sorted(candidates, key=lambda c: c[0])
    positions = np.array([c[0] for c in candidates], float)
    strengths = np.array([c[1] for c in candidates], float)
    assert np.flatnonzero(suppress(positions, strengths, window)).tolist() == greedy(positions, strengths, window)


def test_suppression_of_a_long_sequence():
    rng = np.random.default_rng(1)
    positions = np.sort(np.round(rng.uniform(0, 3000, 2000), 2))
    strengths = np.round(rng.uniform(0.5, 1.5, 2000), 2)
    assert np.flatnonzero(suppress(positions, strengths, 5.0)).tolist() == greedy(positions, strengths, 5.0)


def test_hybrid_keeps_crossings_and_adds_peaks():
    probability = np.zeros(60)
    probability[[11, 30, 50]] = [0.9, 0.8, 0.3]
    positions, scores = combine_with_probabilities([10.6, 40.2], [1.0, 3.0], torch.tensor(probability))
    np.testing.assert_allclose(positions, [10.6, 30.0, 40.2])  # 11 supports 10.6, 30 stands alone, 50 is too weak
    np.testing.assert_allclose(scores, [0.5 + 0.5 * 0.6 * 0.9, 0.4, 0.5])
    only_probability, _ = combine_with_probabilities([10.6], [1.0], probability, weight=1.0)
    np.testing.assert_allclose(only_probability, [11.0, 30.0])
    only_crossings, scores = combine_with_probabilities([10.6], [0.7], np.zeros(60))
    assert only_crossings.tolist() == [10.6] and scores.tolist() == [0.35]
