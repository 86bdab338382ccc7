"""Which positions the oracle ablation protects from pruning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.timegrid import TimeGrid
from temporalzoom.training.batches import near_boundaries


@pytest.mark.parametrize(
    ("starts", "ends", "reach", "first", "expected"),
    [
        ([3.0], [8.4], 1, 0, [2, 3, 4, 8, 9]),
        ([3.0], [8.4], 0, 0, [3]),
        ([3.0], [8.4], 1, 2, [0, 1, 2, 6, 7]),  # the same, seen from position 2 on
        ([-1.0], [12.6], 2, 0, [0, 1, 11]),  # boundaries outside protect what they reach
        ([5.0], [6.0], 2, 0, [3, 4, 5, 6, 7, 8]),
        ([], [], 20, 0, []),
    ],
)
def test_positions_near_known_boundaries(starts, ends, reach, first, expected):
    near = near_boundaries(np.array(starts), np.array(ends), 12, reach, first)
    assert near.shape == (12,) and near.nonzero().flatten().tolist() == expected


@given(st.lists(st.floats(-10, 50), max_size=5), st.integers(1, 40), st.integers(0, 6), st.integers(0, 30))
def test_positions_near_boundaries_are_those_of_the_definition(boundaries, length, reach, first):
    half = len(boundaries) // 2
    near = near_boundaries(np.array(boundaries[:half]), np.array(boundaries[half:]), length, reach, first)
    slow = [any(abs(first + i - b) <= reach + 1e-6 for b in boundaries) for i in range(length)]
    assert near.tolist() == slow


def test_boundaries_from_seconds_keep_their_positions():
    grid = TimeGrid(stride=3, window=7, fps=29.97)
    for position in range(200):
        boundary = grid.to_grid(grid.to_seconds([position]))
        assert near_boundaries(boundary, boundary, 200, 2).sum() == min(position, 2) + 1 + min(199 - position, 2)
