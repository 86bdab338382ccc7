"""Chamfer distances and sharpness with a known answer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.metrics import boundary_chamfer, chamfer_distance, peak_sharpness
from temporalzoom.segments import Segments

TIMES = st.lists(st.floats(0, 1000), min_size=1, max_size=12)


def test_by_hand():
    assert chamfer_distance([10, 50], [12, 51]) == 1.5
    assert chamfer_distance([10, 50], [10]) == 0.5 * (20 + 0) and chamfer_distance([10, 50], [10], limit=8) == 2
    assert chamfer_distance([], [3.0], limit=60) == 60 and np.isnan(chamfer_distance([], []))


@given(TIMES, TIMES, st.floats(1, 500))
def test_as_all_pairs_say(first, second, limit):
    pairs = np.minimum(np.abs(np.subtract.outer(first, second)), limit)
    expected = 0.5 * (pairs.min(1).mean() + pairs.min(0).mean())
    assert chamfer_distance(first, second, limit) == pytest.approx(expected)
    assert chamfer_distance(second, first, limit) == pytest.approx(expected)
    assert chamfer_distance(first, first) == 0


@given(st.floats(0, 2))
def test_shifted_detections_are_that_far_in_frames(shift):
    truth = {"a": Segments([10, 50], [20, 60], ["x", "y"]), "b": Segments.empty(), "c": Segments([5], [9], ["x"])}
    found = {
        "a": Segments([10 + shift, 50 + shift, 0], [20 + shift, 60 + shift, 99], ["y"] * 3, [0.5, 0.4, 0.1]),
    }
    distances = boundary_chamfer(truth, found, {"a": 25.0, "b": 1.0, "c": 1.0}, limit=60)
    assert distances[0] == pytest.approx(25 * shift) and np.isnan(distances[1]) and distances[2] == 60


def test_sharpness_of_curves_with_a_known_answer():
    curve = np.zeros(40)
    curve[10] = 0.3
    curve[20:22] = 0.5  # between two positions
    assert peak_sharpness(curve, [10.2, 20.5, 33.0]).tolist() == [1.0, 1.0, 0.0]
    assert peak_sharpness(np.full(40, 0.7), [3.0, 20.0]) == pytest.approx([0.0, 0.0])
    triangle = np.maximum(0, 1 - np.abs(np.arange(40) - 20) / 4)  # 1/2, 1/4 and 0 beside it
    assert peak_sharpness(triangle, [20.0]) == pytest.approx([0.75])
    assert peak_sharpness(3 * triangle, [18.0], reach=6) == pytest.approx(
        [1 - np.delete(triangle[12:25], [7, 8, 9]).mean()]
    )
    assert peak_sharpness(curve[:3], [0.0, 50.0]).tolist() == [0.0, 0.0]


def test_wider_gaussians_are_less_sharp():
    positions = np.arange(60)
    widths = [peak_sharpness(np.exp(-0.5 * ((positions - 30) / s) ** 2), [30.0])[0] for s in (0.5, 1, 2, 4, 8)]
    assert widths == sorted(widths, reverse=True) and widths[0] > 0.99 and widths[-1] < 0.1
