"""A classifier of boundaries: peaks between the samples, in the form in which BDR finds boundaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.bdr import extract_boundaries, extract_peaks, hybrid_field, peak_field, refine_segments


def gaussian(boundaries, length=60, variance=1.0):
    """The labels of training, or a wider curve."""
    positions = np.arange(length)[:, None]
    return np.exp(-0.5 * (positions - np.asarray(boundaries)) ** 2 / variance).max(1)


@given(st.floats(1.0, 57.0))
def test_the_peak_of_a_label_is_its_boundary(boundary):
    positions, heights, variances = extract_peaks(gaussian([boundary]))
    assert positions == pytest.approx([boundary], abs=1e-6)
    assert 0.88 < heights[0] <= 1 and variances == pytest.approx([1 / 12])  # all of its width is that of the label


def test_a_wider_peak_is_less_certain():
    positions, _, variances = extract_peaks(gaussian([20.3], variance=5.0))
    assert positions == pytest.approx([20.3]) and variances == pytest.approx([4.0])


def test_low_and_close_peaks_are_none():
    curve = gaussian([10.0, 30.0]) * 0.05
    assert len(extract_peaks(curve)[0]) == 0 and len(extract_peaks(np.zeros(9))[0]) == 0
    curve = np.zeros(20)
    curve[[8, 10]] = 0.5, 0.9
    assert extract_peaks(curve)[0].tolist() == [10.0] and extract_peaks(curve, window=2)[0].tolist() == [8.0, 10.0]
    with pytest.raises(ValueError, match="one curve"):
        extract_peaks(np.zeros((3, 2)))


def test_a_field_of_peaks_has_their_zeros_and_moves_segments_there():
    probability = gaussian([12.4, 40.7])
    field, log_variance = peak_field(probability)
    assert extract_boundaries(field)[0] == pytest.approx([12.4, 40.7])
    assert np.exp(log_variance) == pytest.approx(1 / 12)
    for mode in ("snap", "newton"):
        starts, ends = refine_segments([11.0], [42.0], field, field, mode=mode)
        assert (starts[0], ends[0]) == pytest.approx((12.4, 40.7))
    nothing, _ = peak_field(np.zeros(60))
    for mode in ("snap", "newton", "fuse"):
        assert [x.tolist() for x in refine_segments([11.0], [42.0], nothing, nothing, mode=mode)] == [[11.0], [42.0]]


def test_of_both_crossings_keep_their_place_and_peaks_fill_in():
    distances = np.clip(np.arange(60) - 20.25, -8, 8)  # one crossing; nothing at 45
    field = hybrid_field(distances, gaussian([21.0, 45.0]))
    assert extract_boundaries(field)[0] == pytest.approx([20.25, 45.0])
