"""Poses: distances and speeds, the same wherever a body is and whichever way it points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.signals.keypoints import keypoint_count, pose_geometry
from temporalzoom.signals.missing import fill_missing


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
