"""Signals of another rate: constants, sines, labels, unknown values; means against a slow version."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.signals.container import Signal
from temporalzoom.signals.resampling import averaged, resampled

RATES = st.floats(0.5, 500)


def sine(frequency: float, fps: float, seconds: float = 8.0) -> np.ndarray:
    times = np.arange(round(seconds * fps)) / fps
    return np.sin(2 * np.pi * frequency * times).astype(np.float32)[:, None]


@given(RATES, RATES, st.integers(1, 300), st.floats(-1e4, 1e4, width=32))
def test_constants_stay_constant(old: float, new: float, rows: int, value: float):
    signal = resampled(Signal(np.full((rows, 2), value, np.float32), fps=old), new)
    assert signal.fps == new and len(signal.values) == max(round(rows * new / old), 1)
    np.testing.assert_allclose(signal.values, value, rtol=1e-5, atol=1e-5)


@given(RATES, RATES, st.integers(2, 300))
def test_labels_start_and_names_do_not_move(old: float, new: float, rows: int):
    labels = Segments([0.25], [1.5], ["walk"])
    given_signal = Signal(np.zeros((rows, 1), np.float32), ("a",), old, 12.5, labels, notes=("One.",))
    signal = resampled(given_signal, new)
    assert signal.labels is labels and signal.start == 12.5 and signal.channels == ("a",)
    assert signal.notes == (("One.",) if old == new else ("One.", f"Resampled from {old:.6g} to {new:.6g} Hz."))
    assert abs(signal.duration - given_signal.duration) <= 0.5 / new + 1e-9 or len(signal.values) == 1


@pytest.mark.parametrize(
    ("old", "new"), [(100, 50), (50, 100), (100, 30), (31, 100), (102.3, 100), (1000, 25), (60, 59.94)]
)
def test_a_sine_below_nyquist_survives(old: float, new: float):
    frequency = min(old, new) / 12
    found = resampled(Signal(sine(frequency, old), fps=old), new).values[:, 0]
    expected = sine(frequency, new)[: len(found), 0]
    inside = slice(4, min(len(found), len(expected)) - 4)
    assert np.corrcoef(found[inside], expected[inside])[0, 1] > 0.99  # and it has not moved in time
    assert 0.93 < np.std(found[inside]) / np.std(expected[inside]) < 1.03


def test_what_is_above_the_new_nyquist_does_not_come_back_as_something_slower():
    """48 Hz sampled at 50 Hz would look like 2 Hz."""
    found = resampled(Signal(sine(48, 1000), fps=1000), 50).values
    assert np.abs(found[3:-3]).max() < 0.1


def test_a_straight_line_stays_one():
    line = np.arange(400, dtype=np.float32)[:, None]
    for new in (7.0, 80.0, 93.0, 250.0):
        found = resampled(Signal(line, fps=100.0), new).values[:, 0]
        inside = slice(2, -max(3, round(new / 10)))
        np.testing.assert_allclose(found[inside], (np.arange(len(found)) * 100 / new)[inside], rtol=1e-4, atol=0.02)


def slow_means(values, places, width):
    rows = []
    for place in places:
        total = weight = 0.0
        first, last = max(place - width / 2, -0.5), min(place + width / 2, len(values) - 0.5)
        for row, value in enumerate(values):
            share = max(min(row + 0.5, last) - max(row - 0.5, first), 0.0)
            if share > 0 and not math.isnan(value):
                total, weight = total + share * float(value), weight + share
        rows.append(total / weight if weight >= 0.5 * (last - first) - 1e-6 and weight else math.nan)
    return rows


@given(st.integers(2, 60), st.floats(1.3, 20), st.integers(0, 2**32 - 1))
def test_means_are_those_of_a_slow_version(rows: int, ratio: float, seed: int):
    random = np.random.default_rng(seed)
    values = random.normal(5, 2, size=(rows, 1)).astype(np.float32)
    values[random.random(rows) < 0.3] = np.nan
    places = np.arange(max(round(rows / ratio), 1)) * ratio
    np.testing.assert_allclose(
        averaged(values, places, ratio)[:, 0], slow_means(values[:, 0], places, ratio), atol=1e-3
    )


def test_unknown_values_stay_unknown_and_do_not_spread_over_known_ones():
    values = np.arange(100, dtype=np.float32)[:, None].repeat(2, axis=1)
    values[40:60, 0] = np.nan
    for new in (25.0, 95.0, 200.0, 100.0):
        found = resampled(Signal(values, fps=100.0), new).values
        unknown = np.flatnonzero(np.isnan(found[:, 0])) / new
        assert unknown.min() >= 0.385 and unknown.max() <= 0.605 and len(unknown) >= 0.15 * new
        assert not np.isnan(found[:, 1]).any()


def test_without_a_clock_there_is_no_other_rate():
    with pytest.raises(InputError, match="has no clock"):
        resampled(Signal(np.zeros((3, 1), np.float32)), 10.0)
    with pytest.raises(InputError, match="fps must be a positive number, got 0"):
        resampled(Signal(np.zeros((3, 1), np.float32), fps=5.0), 0)
