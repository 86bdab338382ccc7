"""Missing values: interpolated in time, and flagged."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from temporalzoom.signals.missing import fill_missing

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
