"""From raw arrays to what a network takes: closed forms, loops written out, and invariants."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from temporalzoom.errors import InputError
from temporalzoom.signals.preparation import (
    Framing,
    Preparation,
    fill_missing,
    keypoint_count,
    pose_geometry,
    resize_features,
    resized_grid,
    with_derivatives,
)
from temporalzoom.timegrid import TimeGrid

# Missing values: interpolated in time, and flagged

NAN, INF = np.nan, np.inf
signals = arrays.arrays(
    np.float32,
    st.tuples(st.integers(1, 20), st.integers(1, 3)),
    elements=st.one_of(st.just(NAN), st.floats(-100, 100, width=32)),
)


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def test_gaps_are_straight_lines_and_edges_are_repeated():
    filled = fill_missing(column(NAN, 1, NAN, NAN, 4, 0, NAN, NAN))
    np.testing.assert_allclose(filled[:, 0], [1, 1, 2, 3, 4, 0, 0, 0], atol=1e-6)
    np.testing.assert_array_equal(filled[:, 1], [1, 0, 1, 1, 0, 0, 1, 1])


def test_flags_follow_all_the_channels_in_their_order():
    signal = np.array([[1, NAN, 3], [NAN, NAN, 5]], np.float32)
    filled = fill_missing(signal)
    np.testing.assert_array_equal(filled, [[1, 0, 3, 0, 1, 0], [1, 0, 5, 1, 1, 0]])  # the second is never known
    assert filled.dtype == np.float32 and np.isnan(signal).sum() == 3  # the input stays as it was


def test_infinite_values_stay():
    filled = fill_missing(column(1, INF, 2, NAN, -INF))
    np.testing.assert_array_equal(filled[[0, 1, 2, 4], 0], [1, INF, 2, -INF])
    np.testing.assert_array_equal(filled[:, 1], [0, 0, 0, 1, 0])


def nearest(known: np.ndarray, row: int, step: int) -> int | None:
    while 0 <= row < len(known):
        if known[row]:
            return row
        row += step
    return None


@given(signals)
def test_as_a_walk_to_the_nearest_known_values_would(signal: np.ndarray):
    filled, channels = fill_missing(signal), signal.shape[1]
    assert filled.shape == (len(signal), 2 * channels) and np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[:, channels:], np.isnan(signal))
    for (row, channel), value in np.ndenumerate(signal):
        known = ~np.isnan(signal[:, channel])
        before, after = nearest(known, row, -1), nearest(known, row, 1)
        if before is None or after is None:
            only = before if after is None else after
            expected = 0.0 if only is None else signal[only, channel]
        elif before == after:
            expected = value
        else:
            low, high = float(signal[before, channel]), float(signal[after, channel])
            expected = low + (high - low) * (row - before) / (after - before)
        np.testing.assert_allclose(filled[row, channel], expected, rtol=1e-5, atol=1e-4)


# Keypoints


def test_three_points_in_the_plane():
    rows = [[0, 0, 0.9, 3, 4, 0.8, 0, 16, 0.7], [2, 0, 0.9, 3, 4, 0.6, 0, 16, 0.7]]
    geometry = pose_geometry(np.array(rows, np.float32), "xyc")
    distances = np.square(geometry[:, :3])
    np.testing.assert_allclose(distances[0], [5, 16, np.hypot(3, 12)], rtol=1e-6)
    np.testing.assert_allclose(np.square(geometry[:, 3:6]), [[2, 0, 0]] * 2, atol=1e-6)
    np.testing.assert_array_equal(geometry[:, 6:], np.array(rows, np.float32)[:, 2::3])
    assert geometry.dtype == np.float32


@given(st.integers(1, 5), st.integers(1, 12), st.floats(0, 6.3), st.integers(0, 999))
def test_neither_place_nor_direction_matters(count: int, rows: int, angle: float, seed: int):
    random = np.random.default_rng(seed)
    points = random.normal(size=(rows, count, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = points @ turn + random.normal(size=2) * 10
    before, after = (pose_geometry(p.reshape(rows, -1).astype(np.float32), "xy") for p in (points, moved))
    np.testing.assert_allclose(before, after, atol=2e-3)  # a root is steep where distances vanish


@given(st.integers(1, 12), st.sampled_from(["x", "xy", "xyz", "xyc", "cxyd"]), st.booleans())
def test_the_number_of_keypoints_is_known_from_the_width(count: int, pattern: str, flagged: bool):
    signal = np.ones((3, count * len(pattern)), np.float32)
    geometry = pose_geometry(fill_missing(signal) if flagged else signal, pattern, flagged)
    assert keypoint_count(geometry.shape[1], pattern, flagged) == count


def test_a_keypoint_without_one_of_its_coordinates_is_flagged():
    signal = np.array([[1, 2, 0.5, 3, 4, np.nan], [np.nan, 2, 0.5, 3, 4, 0.5]], np.float32)
    geometry = pose_geometry(fill_missing(signal), "xyc", flagged=True)
    np.testing.assert_array_equal(geometry[:, -2:], [[0, 0], [1, 0]])


def test_channels_that_are_no_keypoints():
    with pytest.raises(InputError, match=r"data\.keypoints: xyc is 3 values per keypoint; 10 channels are not"):
        pose_geometry(np.zeros((4, 10), np.float32), "xyc")


# Windows of raw signals: against a loop written out

framings = st.builds(Framing, window=st.integers(1, 9), stride=st.integers(1, 9))


def make_signal(rows: int, channels: int = 2) -> np.ndarray:
    """Every value says where it is: row 12, channel 1 is 12.1."""
    return (np.arange(rows)[:, None] + np.arange(channels) / 10).astype(np.float32)


def slow_cut(framing: Framing, signal: np.ndarray) -> np.ndarray:
    """Value by value, as the docstring says it."""
    windows = []
    begin = 0
    while begin == 0 or begin + framing.window <= len(signal):
        rows = [signal[min(begin + i, len(signal) - 1)] for i in range(framing.window)]
        windows.append([value for row in rows for value in row])
        begin += framing.stride
    return np.array(windows, np.float32)


@given(framings, st.integers(1, 60), st.integers(1, 3))
def test_cut_is_the_loop(framing: Framing, rows: int, channels: int):
    signal = make_signal(rows, channels)
    cut = framing.cut(signal)
    np.testing.assert_array_equal(cut, slow_cut(framing, signal))
    assert cut.dtype == np.float32 and cut.flags.c_contiguous and len(cut) == framing.count(rows)


def test_a_window_is_row_by_row():
    cut = Framing(window=3, stride=2).cut(make_signal(5))
    np.testing.assert_array_equal(cut[1], np.array([2, 2.1, 3, 3.1, 4, 4.1], np.float32))
    assert cut.shape == (2, 6)


@given(framings, st.integers(1, 40), st.data())
def test_rows_and_count_are_inverse(framing: Framing, count: int, data: st.DataObject):
    assert framing.count(framing.rows(count)) == count
    more = data.draw(st.integers(0, framing.stride - 1))  # rows that are not enough for one more window
    assert framing.count(framing.rows(count) + more) == count
    assert framing.count(framing.rows(count) + framing.stride) == count + 1
    assert framing.count(0) == framing.rows(0) == 0


@given(framings, st.integers(1, 80), st.integers(0, 30), st.integers(0, 30))
def test_a_part_is_that_part_of_the_whole(framing: Framing, rows: int, first: int, count: int):
    signal = make_signal(rows)
    whole = framing.cut(signal)
    np.testing.assert_array_equal(framing.cut(signal, first, count), whole[first : first + count])
    np.testing.assert_array_equal(framing.cut(signal, first), whole[first:])


@given(framings, st.integers(1, 80), st.data())
def test_cutting_a_part_of_the_rows_is_the_same(framing: Framing, rows: int, data: st.DataObject):
    signal = make_signal(rows)
    whole = framing.cut(signal)
    first = data.draw(st.integers(0, len(whole) - 1))
    count = data.draw(st.integers(1, len(whole) - first))
    piece = signal[first * framing.stride :][: framing.rows(count)]
    np.testing.assert_array_equal(framing.cut(piece), whole[first : first + count])


def test_a_short_signal_repeats_its_last_row():
    np.testing.assert_array_equal(Framing(4, 3).cut(make_signal(2, 1)), [[0, 1, 1, 1]])


@pytest.mark.parametrize("framing", [Framing(2, 1), Framing(2, 2), Framing(1, 1), Framing(9, 9)])
def test_the_windows_are_copies(framing: Framing):
    signal = make_signal(6)
    cut = framing.cut(signal)
    cut[:] = -1
    np.testing.assert_array_equal(signal, make_signal(6))


@pytest.mark.parametrize(("window", "stride"), [(0, 1), (1, 0), (-2, 3)])
def test_less_than_a_row_is_refused(window: int, stride: int):
    with pytest.raises(ValueError, match=f"at least one row, got {window} and {stride}"):
        Framing(window, stride)


# Features resized to a fixed length: the field's interpolation, and time that stays where it was

LENGTHS = st.integers(1, 60)
GRIDS = st.builds(TimeGrid, st.integers(1, 32), st.integers(0, 64), st.sampled_from([15.0, 25.0, 29.97]))


def features(length: int, width: int = 3) -> np.ndarray:
    return np.random.default_rng(length).normal(size=(length, width)).astype(np.float32)


@given(LENGTHS, LENGTHS, st.integers(1, 32))
def test_without_overlap_it_is_the_interpolation_of_the_field(length: int, resized: int, stride: int):
    array = features(length)
    found, grid = resize_features(array, TimeGrid(stride, stride, 15), resized)
    channels_first = torch.from_numpy(array.T.copy())[None]
    expected = torch.nn.functional.interpolate(channels_first, size=resized, mode="linear", align_corners=False)
    np.testing.assert_allclose(found, expected[0].T.numpy(), atol=1e-4)
    assert grid == TimeGrid(length * stride / resized, length * stride / resized, 15)
    assert found.shape == (resized, 3) and found.dtype == np.float32


@given(GRIDS, LENGTHS, LENGTHS)
def test_the_new_positions_cover_the_same_time(grid: TimeGrid, length: int, resized: int):
    if (length - 1) * grid.stride + grid.window == 0:
        return  # one position without a window covers no time at all
    new = resized_grid(grid, length, resized)
    assert new.duration(resized) == pytest.approx(grid.duration(length))
    assert new.fps == grid.fps and new.window == new.stride


@given(GRIDS, st.integers(2, 60), LENGTHS)
def test_a_feature_that_tells_the_time_still_does(grid: TimeGrid, length: int, resized: int):
    """Whatever the window: what is at 7 seconds stays at 7 seconds, up to the ends, where nothing is known."""
    times = grid.to_seconds(np.arange(length))
    found, new = resize_features(times.astype(np.float32)[:, None], grid, resized)
    expected = np.clip(new.to_seconds(np.arange(resized)), times[0], times[-1])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-5, atol=1e-5)


def test_the_same_length_changes_nothing():
    array = features(17)
    found, grid = resize_features(array, TimeGrid(16, 16, 15), 17)
    np.testing.assert_allclose(found, array, atol=1e-6)
    assert grid == TimeGrid(16, 16, 15)


def test_numbers_of_a_small_case():
    """Four positions of 8 frames made two: each stands in the middle of two old ones."""
    found, grid = resize_features(np.array([[0], [2], [4], [10]], np.float32), TimeGrid(8, 8, 10), 2)
    assert found[:, 0].tolist() == [1, 7] and grid == TimeGrid(16, 16, 10)
    assert grid.to_seconds([0, 1]).tolist() == [0.8, 2.4]


@pytest.mark.parametrize(("length", "resized"), [(0, 4), (4, 0)])
def test_nothing_cannot_be_resized(length: int, resized: int):
    with pytest.raises(ValueError, match="at least one position"):
        resized_grid(TimeGrid(1, 1, 1), length, resized)


@given(st.integers(1, 4), st.integers(1, 60), st.floats(-3, 3), st.floats(-100, 100), st.booleans())
def test_derivatives_of_lines(channels, rows, slope, offset, flagged):
    """The slope, away from the ends, where smoothing repeats the last value; constants do not change at all."""
    line = (offset + slope * np.arange(rows))[:, None] * np.arange(channels)
    flags = np.full((rows, channels), 1.0)
    signal = np.concatenate([line, flags], axis=1) if flagged else line
    found = with_derivatives(signal.astype(np.float32), flagged)
    assert found.shape == (rows, (3 if flagged else 2) * channels) and found.dtype == np.float32
    np.testing.assert_array_equal(found[:, :channels], line.astype(np.float32))
    inner = found[6:-6, channels : 2 * channels]
    np.testing.assert_allclose(inner, np.broadcast_to(slope * np.arange(channels), inner.shape), atol=1e-2)
    assert not found[:, channels].any()  # the first channel is constant
    if flagged:
        assert (found[:, 2 * channels :] == 1).all()


@pytest.mark.parametrize("gaps", [False, True])
def test_a_recording_with_derivatives_is_prepared_as_training_prepared_it(gaps):
    random = np.random.default_rng(0)
    signal = random.normal(size=(40, 3)).astype(np.float32)
    if gaps:
        signal[5:8, 1] = np.nan
    prepared = with_derivatives(fill_missing(signal), True) if gaps else with_derivatives(signal)
    framing = Framing(4, 4)
    preparation = Preparation(framing, fills_gaps=gaps, derivatives=True)
    width = prepared.shape[1] * framing.window
    assert preparation.channels(width) == 3
    features, _ = preparation.apply(signal, TimeGrid(4, 4, 10.0), width)
    np.testing.assert_array_equal(features, framing.cut(prepared))
