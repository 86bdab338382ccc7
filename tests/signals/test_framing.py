"""Windows of raw signals: against a loop written out, and how counts, rows and crops fit together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.signals.framing import Framing

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
