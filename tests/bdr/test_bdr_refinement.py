"""Refinement: the truth from perturbed segments, and never a worse segment than physics allows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.bdr import distance_targets, refine_segments


@st.composite
def perturbed(draw):
    """True segments at least 8 long and 8 apart, a perturbation of each end of at most 2.4, and the length."""
    count = draw(st.integers(1, 6))
    size = st.lists(st.floats(8, 60), min_size=count, max_size=count)
    lengths, pauses = np.array(draw(size)), np.array(draw(size))
    noise = np.array(draw(st.lists(st.floats(-2.4, 2.4), min_size=2 * count, max_size=2 * count))).reshape(2, count)
    starts = np.cumsum(pauses + np.concatenate([[0.0], lengths[:-1]])) - draw(st.floats(0, 8))
    return starts, starts + lengths, noise, int(starts[-1] + lengths[-1]) + draw(st.integers(2, 20))


def fields(starts, ends, length, channels="start_end", **options):
    field = distance_targets(starts, ends, length, channels=channels, dtype=torch.float64, **options)
    return field[:, 0], field[:, -1]


@settings(max_examples=200, deadline=None)
@given(
    perturbed(),
    st.sampled_from(["snap", "newton"]),
    st.sampled_from(["start_end", "joint"]),
    st.sampled_from([None, 4.0, 16.0]),
)
def test_exact_fields_bring_perturbed_segments_back(case, mode, channels, radius):
    starts, ends, noise, length = case
    start_field, end_field = fields(starts, ends, length, channels, radius=radius)
    got = refine_segments(starts + noise[0], ends + noise[1], start_field, end_field, mode=mode, max_move=0.8)
    np.testing.assert_allclose(got, [starts, ends], rtol=0, atol=1e-6)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 99_999), st.sampled_from(["none", "snap", "newton", "fuse"]), st.floats(0, 3), st.integers(1, 40))
def test_on_any_field_segments_stay_segments_and_moves_stay_small(seed, mode, max_move, length):
    rng = np.random.default_rng(seed)
    starts = rng.uniform(-3, length, 20)
    ends = starts + rng.uniform(0.01, 20, 20)
    field = rng.normal(0, 4, (2, length))
    new_starts, new_ends = refine_segments(starts, ends, *field, mode=mode, max_move=max_move)
    assert (new_ends > new_starts).all()
    limit = max_move * (ends - starts) + 1e-9
    assert (abs(new_starts - starts) <= limit).all() and (abs(new_ends - ends) <= limit).all()
    if mode == "none":
        np.testing.assert_array_equal([new_starts, new_ends], [starts, ends])


def test_a_move_beyond_the_limit_is_not_made():
    start_field, end_field = fields([20.0], [30.0], 60)
    for mode in ("snap", "newton", "fuse"):
        starts, ends = refine_segments([17.5], [33.5], start_field, end_field, mode=mode, max_move=0.2)
        assert starts[0] != 17.5 and ends[0] == 33.5


def test_a_segment_that_would_turn_around_stays():
    same = distance_targets([15.0], [], 30, dtype=torch.float64)[:, 0]
    starts, ends = refine_segments([14.0], [16.0], same, same, max_move=1.0)
    assert (starts[0], ends[0]) == (14.0, 16.0)


def test_taken_says_which_ends_were_moved():
    start_field, end_field = fields([20.0], [30.0], 60)
    for mode in ("snap", "newton", "fuse"):
        arguments = ([17.5, 19.0, 40.0], [33.5, 31.0, 41.0], start_field, end_field)
        starts, ends, taken = refine_segments(*arguments, mode=mode, max_move=0.2, return_taken=True)
        assert taken.tolist() == [[True, False], [True, True], [False, False]]
        np.testing.assert_array_equal((starts, ends), refine_segments(*arguments, mode=mode, max_move=0.2))
    assert not refine_segments(*arguments, mode="none", return_taken=True)[2].any()
    same = distance_targets([15.0], [], 30, dtype=torch.float64)[:, 0]  # this segment would be turned around
    assert refine_segments([14.0], [16.0], same, same, max_move=1.0, return_taken=True)[2].tolist() == [[False, False]]
    assert refine_segments([], [], same, same, return_taken=True)[2].shape == (0, 2)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 99_999), st.sampled_from(["none", "snap", "newton", "fuse"]), st.integers(1, 40))
def test_an_end_that_is_not_taken_is_the_one_given(seed, mode, length):
    rng = np.random.default_rng(seed)
    old = np.sort(rng.uniform(-3, length + 9, (20, 2)))
    field = rng.normal(0, 4, (2, length))
    starts, ends, taken = refine_segments(*old.T, *field, mode=mode, return_taken=True)
    np.testing.assert_array_equal(np.stack([starts, ends], 1)[~taken], old[~taken])


def test_snap_reads_the_slope_and_the_window_that_are_asked_for():
    flat = 0.3 * (np.arange(40) - 10.0)  # a rising zero at 10, of slope 0.3
    assert refine_segments([9.0], [30.0], flat, flat, mode="snap")[0] == [9.0]
    assert refine_segments([9.0], [30.0], flat, flat, mode="snap", min_slope=0.2)[0] == [10.0]
    near = distance_targets([10.0, 14.0], [], 40, dtype=torch.float64)[:, 0]
    near[10:12] += 0.2  # the first crossing is the steeper one
    near[9] -= 0.2
    assert refine_segments([14.5], [60.0], near, near, mode="snap")[0] == [14.0]
    assert refine_segments([14.5], [60.0], near, near, mode="snap", window=9.0)[0] == pytest.approx(9.857, abs=1e-3)


def test_newton_near_a_jump_uses_a_sample_not_the_line_across():
    field = distance_targets([10.0, 30.0], [], 40, radius=None, dtype=torch.float64)[:, 0]  # jump between 19 and 20
    guesses = [19.3, 19.47, 19.8]  # the line across the jump has a zero near 19.47
    for steps in (1, 2):
        got, _ = refine_segments(guesses, [90.0] * 3, field, np.full(40, np.nan), max_move=1.0, steps=steps)
        np.testing.assert_allclose(got, [10.0, 10.0, 30.0])


def test_newton_beyond_the_ends_of_the_grid():
    for boundary, guess in [(-0.4, 0.1), (-0.4, -1.5), (1.0, -2.0), (39.6, 38.9), (39.6, 42.0)]:
        field = distance_targets([boundary], [], 40, dtype=torch.float64)[:, 0]
        got, _ = refine_segments([guess], [200.0], field, np.full(40, np.nan))
        np.testing.assert_allclose(got, [boundary], atol=1e-9)


def test_newton_does_not_extrapolate_a_noisy_step_at_the_end_of_the_grid():
    nothing = np.full(4, np.nan)
    np.testing.assert_allclose(refine_segments([-2.0], [90.0], [0.5, 3.5, 4.0, 5.0], nothing)[0], [-0.5])
    np.testing.assert_allclose(refine_segments([5.0], [90.0], [-5.0, -4.0, -3.5, -0.5], nothing)[0], [3.5])


def test_snap_reaches_boundaries_just_outside_the_grid():
    field = distance_targets([-0.4], [], 40, dtype=torch.float64)[:, 0]
    np.testing.assert_allclose(refine_segments([0.3], [9.0], field, field, mode="snap")[0], [-0.4])


def test_fuse_is_the_precision_weighted_mean():
    start_field, end_field = fields([20.0], [40.0], 60)
    got = refine_segments(
        [22.0], [37.0], start_field, end_field, mode="fuse", box_variance=[[4.0, 0.5]],
        start_variance=torch.full((60,), 1.0), end_variance=2.0,
    )  # fmt: skip
    np.testing.assert_allclose(got[0], (22 / 4 + 20 / 1) / (1 / 4 + 1))
    np.testing.assert_allclose(got[1], (37 / 0.5 + 40 / 2) / (1 / 0.5 + 1 / 2))
    default, _ = refine_segments([22.0], [37.0], start_field, end_field, mode="fuse")
    np.testing.assert_allclose(default, (22 / 1.5**2 + 20) / (1 / 1.5**2 + 1))  # box: a third of 0.3 * 15


def test_fuse_reads_the_variance_at_the_zero():
    start_field, end_field = fields([20.0], [40.0], 60)
    variance = np.full(60, 1e6)
    variance[20] = 1e-6
    variances = {"box_variance": [1.0], "start_variance": variance, "end_variance": variance}
    starts, ends = refine_segments([22.0], [37.0], start_field, end_field, mode="fuse", **variances)
    np.testing.assert_allclose([starts[0], ends[0]], [20.0, 37.0], atol=1e-4)


@settings(max_examples=50, deadline=None)
@given(perturbed(), st.floats(-3, 3))
def test_fuse_lies_between_box_and_newton(case, exponent):
    starts, ends, noise, length = case
    box = starts + noise[0], ends + noise[1]
    arguments = (*box, *fields(starts, ends, length))
    newton = np.array(refine_segments(*arguments, max_move=0.8))
    variance = 10**exponent
    fused = refine_segments(*arguments, mode="fuse", max_move=0.8, box_variance=np.full(len(starts), variance))
    np.testing.assert_allclose(fused - np.array(box), (newton - box) * variance / (1 + variance), atol=1e-7)


def test_nothing_to_refine_and_nothing_to_refine_with():
    for mode in ["none", "snap", "newton", "fuse"]:
        empty = refine_segments([], [], np.zeros(5), np.zeros(5), mode=mode)
        assert empty[0].shape == empty[1].shape == (0,)
        for field in (np.empty(0), np.full(6, np.nan), np.full(6, -16.0)):
            got = refine_segments([1.0], [3.0], field, field, mode=mode)
            np.testing.assert_array_equal(np.ravel(got), [1.0, 3.0])


def test_bad_arguments_are_refused():
    field = np.zeros(5)
    with pytest.raises(ValueError, match="mode"):
        refine_segments([1.0], [2.0], field, field, mode="gauss")
    with pytest.raises(ValueError, match="starts"):
        refine_segments([1.0], [2.0, 3.0], field, field)
    with pytest.raises(ValueError, match="positive"):
        refine_segments([1.0], [2.0], field, field, mode="fuse", start_variance=0.0)
