"""Boundary errors by hand, and their behaviour under shifts of the predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.metrics import boundary_errors
from temporalzoom.segments import Segments

TRUTH = {
    "v": Segments([0, 20, 40], [10, 30, 50], ["a", "a", "b"]),
    "w": Segments([0], [100], ["a"]),
}


def test_errors_in_frames_by_hand():
    predictions = {
        "w": Segments([4], [90], ["a"], [0.95]),
        # The more certain detection is the one that counts, though the second fits better; the third is of class a.
        "v": Segments([1, 0, 40, 19], [10, 10, 50, 32], ["a", "a", "a", "a"], [0.9, 0.8, 0.7, 0.6]),
    }
    errors = boundary_errors(TRUTH, predictions, fps={"v": 10.0, "w": 25.0})
    np.testing.assert_allclose(errors.start, [10, 10, 100])
    np.testing.assert_allclose(errors.end, [0, 20, 250])
    assert errors.unmatched == 1
    assert errors.mean == pytest.approx(390 / 6)
    assert errors.median == pytest.approx(15)
    assert errors.percentile_95 == pytest.approx(100 + 0.75 * 150)  # position 0.95 * 5 = 4.75 of the sorted six


def test_matching_needs_the_overlap():
    predictions = {"v": Segments([0], [5], ["a"])}
    assert len(boundary_errors(TRUTH, predictions, 30, min_tiou=0.5).start) == 1
    assert len(boundary_errors(TRUTH, predictions, 30, min_tiou=0.51).start) == 0


@given(st.floats(-3, 3), st.floats(1, 120))
def test_shifted_predictions_have_exactly_that_error(shift, fps):
    errors = boundary_errors(TRUTH, {video: s.shift(shift) for video, s in TRUTH.items()}, fps)
    assert errors.unmatched == 0
    np.testing.assert_allclose(errors.start, abs(shift) * fps, atol=1e-9)
    np.testing.assert_allclose(errors.end, abs(shift) * fps, atol=1e-9)


def test_nothing_found_is_nan_not_zero():
    errors = boundary_errors(TRUTH, {"elsewhere": TRUTH["v"]}, 30)
    assert errors.unmatched == 4 and len(errors.start) == len(errors.end) == 0
    assert np.isnan([errors.mean, errors.median, errors.percentile_95]).all()


def test_bad_fps_is_named():
    for fps, words in [({"v": 30.0}, "'w'"), (0.0, "fps"), ({"v": 30.0, "w": -1.0}, "'w'")]:
        with pytest.raises(InputError, match=words):
            boundary_errors(TRUTH, {}, fps)
