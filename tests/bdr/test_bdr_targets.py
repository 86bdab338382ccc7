"""Distance targets against slow references, written as double loops and as numerical integrals."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from temporalzoom.bdr import distance_targets, distance_weights, jump_mask

positions = st.lists(st.floats(-30, 90, allow_nan=False).map(lambda x: round(x, 3)), max_size=8)
F64 = {"dtype": torch.float64}


def slow_distance(t: float, boundaries: list[float]) -> float:
    """The nearest boundary by trying them all; the later one of two at the same distance."""
    nearest = None
    for b in sorted(boundaries):
        if nearest is None or abs(t - b) <= abs(t - nearest):
            nearest = b
    return -np.inf if nearest is None else t - nearest


@settings(max_examples=200, deadline=None)
@given(
    positions,
    positions,
    st.integers(0, 50),
    st.sampled_from([None, 1.0, 5.5, 16.0]),
    st.sampled_from([0.0, -3.5, 7.25]),
)
def test_targets_equal_the_double_loop(starts, ends, length, radius, first):
    fields = distance_targets(starts, ends, length, radius=radius, first=first, **F64)
    joint = distance_targets(starts, ends, length, radius=radius, first=first, channels="joint", **F64)
    assert fields.shape == (length, 2) and joint.shape == (length, 1)
    for column, boundaries in ((fields[:, 0], starts), (fields[:, 1], ends), (joint[:, 0], starts + ends)):
        for index in range(length):
            expected = slow_distance(first + index, boundaries)
            if radius is not None:
                expected = max(-radius, min(radius, expected))
            elif not boundaries:
                expected = -length
            assert float(column[index]) == pytest.approx(expected, abs=1e-9)


def test_a_small_field_by_hand():
    field = distance_targets([2.0, 6.0], [], 9, radius=None, **F64)[:, 0]
    assert field.tolist() == [-2, -1, 0, 1, -2, -1, 0, 1, 2]  # position 4 is midway: it belongs to the later boundary


def test_defaults_follow_torch_and_inputs_may_be_arrays_lists_or_tensors():
    expected = distance_targets(np.array([1.1, 7.3]), np.array([4.7]), 12)
    assert expected.dtype == torch.get_default_dtype()
    for kind in (list, torch.tensor, lambda x: torch.tensor(x, dtype=torch.float64)):
        torch.testing.assert_close(distance_targets(kind([7.3, 1.1]), kind([4.7]), 12), expected)
    exact = distance_targets([1.1], [], 3, **F64)[:, 0].numpy()
    np.testing.assert_allclose(exact, np.arange(3) - 1.1, rtol=0, atol=1e-15)  # lists are not rounded to float32


@settings(max_examples=50, deadline=None)
@given(positions, positions, st.integers(0, 40), st.sampled_from([None, 16.0]), st.sampled_from([0.0, 1.5]))
def test_a_crop_has_the_field_of_the_whole(starts, ends, offset, radius, smoothing):
    if radius is None and not (starts and ends):
        return  # the placeholder of "no boundary" is the length itself
    options = {"radius": radius, "smoothing": smoothing, **F64}
    whole = distance_targets(starts, ends, 60, **options)
    torch.testing.assert_close(distance_targets(starts, ends, 20, first=offset, **options), whole[offset : offset + 20])


def test_without_boundaries_the_field_is_constant_and_finite():
    assert (distance_targets([], [], 7, radius=4.0) == -4.0).all()
    assert (distance_targets([], [], 7, radius=4.0, smoothing=0.5) == -4.0).all()
    assert (distance_targets([], [], 7, radius=None, smoothing=2.0) == -7.0).all()


def test_weights_fall_with_the_distance_and_vanish_where_no_distance_exists():
    weights = distance_weights([10.0], [], 30, radius=4.0, far_weight=0.25)
    torch.testing.assert_close(weights[8:14, 0], torch.tensor([0.5, 0.75, 1.0, 0.75, 0.5, 0.25]))
    assert (weights[:8, 0] == 0.25).all() and (weights[14:, 0] == 0.25).all()
    assert (weights[:, 1] == 0.25).all()
    unclipped = distance_weights([10.0], [], 30, radius=None)
    assert (unclipped[:, 0] == 1).all() and (unclipped[:, 1] == 0).all()


def test_bad_arguments_are_refused():
    for arguments in [
        {"radius": 0.5},
        {"radius": float("nan")},
        {"smoothing": -1.0},
        {"channels": "both"},
        {"starts": [float("nan")]},
    ]:
        with pytest.raises(ValueError):
            distance_targets(**{"starts": [1.0], "ends": [2.0], "length": 5, **arguments})


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(2.5, 60), min_size=1, max_size=6), st.sampled_from([None, 16.0]))
def test_jumps_are_exactly_the_steps_between_different_nearest_boundaries(gaps, radius):
    boundaries = np.cumsum(gaps)
    length = int(boundaries[-1]) + 20
    nearest = np.array([t - slow_distance(t, list(boundaries)) for t in range(length)])
    mask = jump_mask(distance_targets(boundaries, [], length, radius=radius, **F64))[:, 0]
    assert mask.tolist() == (np.diff(nearest) > 0.5).tolist()


def test_jump_mask_keeps_leading_dimensions():
    assert jump_mask(torch.zeros(3, 5, 2)).shape == (3, 4, 2)
    assert jump_mask(torch.zeros(3, 1, 2)).shape == (3, 0, 2)


# Smoothing


def convolved(t: int, boundaries: list[float], radius: float | None, smoothing: float) -> float:
    """The clipped field around `t`, times a Gaussian, integrated piece by piece."""

    def weighted(x: float) -> float:
        d = slow_distance(x, boundaries)
        sharp = d if radius is None else max(-radius, min(radius, d))
        return sharp * np.exp(-0.5 * ((x - t) / smoothing) ** 2)

    breaks = [(a + b) / 2 for a, b in pairwise(boundaries)]
    breaks += [b + s * radius for b in boundaries for s in (-1, 1)] if radius else []
    near = [x for x in breaks if abs(x - t) < 9 * smoothing]
    reach = t - 9 * smoothing, t + 9 * smoothing
    return quad(weighted, *reach, points=near or None, limit=200, epsabs=1e-10)[0] / (smoothing * np.sqrt(2 * np.pi))


def test_smoothing_is_the_convolution_with_a_gaussian():
    boundaries = [12.3, 37.1, 90.0]  # far enough apart for the whole sigma
    for radius, smoothing in product((None, 9.0, 16.0), (0.4, 1.3)):
        smooth = distance_targets(boundaries, [], 120, radius=radius, smoothing=smoothing, **F64)[:, 0]
        expected = [convolved(t, boundaries, radius, smoothing) for t in range(120)]
        np.testing.assert_allclose(smooth.numpy(), expected, rtol=0, atol=2e-7)


def test_a_smoothing_too_wide_for_the_radius_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"smoothing 3 .*radius 16: .* 2\.5$"):
        distance_targets([10.0], [], 40, radius=16.0, smoothing=3.0)
    with pytest.raises(ValueError, match=r"smoothing 0\.1 .*radius 1:"):
        distance_targets([], [], 40, radius=1.0, smoothing=0.1)
    assert distance_targets([10.0], [], 40, radius=16.0, smoothing=2.5).isfinite().all()
    assert distance_targets([10.0], [], 40, radius=None, smoothing=30.0).isfinite().all()


@settings(max_examples=100, deadline=None)
@given(positions, st.sampled_from([None, 3.0, 16.0]))
def test_a_vanishing_smoothing_is_none(boundaries, radius):
    sharp = distance_targets(boundaries, [], 60, radius=radius, **F64)
    smooth = distance_targets(boundaries, [], 60, radius=radius, smoothing=1e-9, **F64)
    away = np.ones(60, bool)  # exactly on a midpoint the limit is the mean of both sides
    ordered = np.unique(boundaries)
    for midpoint in (ordered[1:] + ordered[:-1]) / 2:
        away &= abs(np.arange(60) - midpoint) > 1e-6
    torch.testing.assert_close(smooth[away], sharp[away], rtol=0, atol=1e-8)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(2.0, 40), min_size=1, max_size=6),
    st.floats(0.01, 50),
    st.sampled_from([None, 1.0, 4.0, 16.0]),
)
def test_smoothing_leaves_the_field_around_boundaries_and_the_signs_alone(gaps, smoothing, radius):
    if radius is not None:
        smoothing = min(smoothing, (radius - 1) / 6)
    boundaries = np.cumsum(gaps)
    length = int(boundaries[-1]) + 30
    sharp = distance_targets(boundaries, [], length, radius=radius, **F64)[:, 0].numpy()
    smooth = distance_targets(boundaries, [], length, radius=radius, smoothing=smoothing, **F64)[:, 0].numpy()
    beside = abs(sharp) <= 1
    np.testing.assert_array_equal(smooth[beside], sharp[beside])
    assert (abs(smooth) <= abs(sharp) + 1e-7).all()
    assert ((smooth * sharp) >= -1e-9).all()
