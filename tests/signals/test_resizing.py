"""Features resized to a fixed length: the field's interpolation, and time that stays where it was."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.signals.resizing import resize_features, resized_grid
from temporalzoom.timegrid import TimeGrid

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
