"""The time grid: the field's convention in closed form, and its inverse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.timegrid import TimeGrid

GRIDS = st.builds(
    TimeGrid,
    stride=st.floats(0.5, 64),
    window=st.one_of(st.just(0.0), st.floats(0.5, 128)),
    fps=st.floats(1, 120),
)


@given(GRIDS, st.lists(st.floats(-1e5, 1e5), max_size=20))
def test_positions_to_seconds_and_back(grid: TimeGrid, positions: list[float]):
    np.testing.assert_allclose(grid.to_grid(grid.to_seconds(positions)), positions, rtol=1e-12, atol=1e-8)


@given(GRIDS, st.floats(-1e4, 1e4))
def test_the_convention_in_closed_form(grid: TimeGrid, position: float):
    expected = (position * grid.stride + 0.5 * grid.window) / grid.fps
    assert float(grid.to_seconds(position)) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    # Position 0 is the middle of the first window; neighbours are one stride apart.
    assert float(grid.to_seconds(0)) == pytest.approx(grid.window / 2 / grid.fps)
    step = float(grid.to_seconds(position + 1) - grid.to_seconds(position))
    assert step == pytest.approx(grid.step_seconds, rel=1e-6)


def test_the_numbers_of_a_common_extractor():
    """I3D on THUMOS14: every 4 frames, 16 at a time, 30 frames per second."""
    grid = TimeGrid(stride=4, window=16, fps=30)
    np.testing.assert_allclose(grid.to_seconds([0, 1, 100]), [8 / 30, 12 / 30, 408 / 30], rtol=1e-15)
    np.testing.assert_allclose(grid.to_grid([8 / 30, 1.0]), [0.0, 5.5], atol=1e-12)
    np.testing.assert_allclose(grid.to_frames([0.5, 2]), [15, 60])
    assert grid.duration(101) == pytest.approx(416 / 30)


def test_shapes_stay_and_integers_become_real():
    grid = TimeGrid(2, 3, 10)
    assert grid.to_seconds(np.zeros((2, 3), int)).shape == (2, 3) == grid.to_grid(np.zeros((2, 3), int)).shape
    assert grid.to_seconds(3).shape == () and grid.to_seconds([]).shape == (0,)
    assert grid.to_seconds(np.arange(3)).dtype == grid.to_grid([1]).dtype == np.float64


def test_seconds_are_clipped_to_a_known_duration():
    grid = TimeGrid(stride=10, window=0, fps=10)
    assert grid.to_seconds([-3, 0, 4, 9], duration=5.5).tolist() == [0, 0, 4, 5.5]
    assert grid.to_seconds([-3, 9]).tolist() == [-3, 9]


@given(GRIDS, st.integers(1, 10_000))
def test_all_windows_lie_within_the_duration(grid: TimeGrid, length: int):
    first, last = grid.to_seconds([0, length - 1])
    half = grid.window / 2 / grid.fps
    assert first - half == pytest.approx(0, abs=1e-9)
    assert last + half == pytest.approx(grid.duration(length), rel=1e-9)


def test_no_positions_cover_no_time():
    assert TimeGrid(4, 16, 30).duration(0) == 0.0


def test_bad_values_are_refused_by_name():
    for name in ["stride", "window", "fps"]:
        for value in [-1.0, math.nan, math.inf, -math.inf]:
            with pytest.raises(ValueError, match=f"^{name} must be .*{value!r}"):
                TimeGrid(**{"stride": 4.0, "window": 16.0, "fps": 30.0, name: value})


def test_zero_is_a_window_but_neither_a_stride_nor_a_rate():
    assert float(TimeGrid(4, 0, 30).to_seconds(0)) == 0.0
    for values in ((0, 16, 30), (4, 16, 0)):
        with pytest.raises(ValueError, match="positive"):
            TimeGrid(*values)


def test_a_grid_is_a_value():
    assert TimeGrid(4, 16, 30) == TimeGrid(4.0, 16.0, 30.0) and hash(TimeGrid(4, 16, 30)) == hash(TimeGrid(4, 16, 30))
    with pytest.raises(AttributeError):
        TimeGrid(4, 16, 30).fps = 25  # type: ignore[misc]
