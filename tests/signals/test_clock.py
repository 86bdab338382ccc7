"""Time columns: names, units, rates, and irregular clocks against a slow resampling of its own."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.signals.clock import on_regular_clock, round_rate, stamped_rows
from temporalzoom.signals.resampling import regular_rows
from temporalzoom.signals.time_columns import text_seconds, time_name, time_unit


@pytest.mark.parametrize(
    ("name", "kind", "unit"),
    [
        ("time", "clock", None), ("timestamp", "clock", None), ("Timestamp [ns]", "clock", "ns"),
        ("time_ms", "clock", "ms"), ("Time (s)", "clock", "s"), ("timestampMs", "clock", "ms"),
        ("seconds_elapsed", "clock", "s"), ("time(µs)", "clock", "us"), ("millis", "clock", "ms"),
        ("Unix Time", "clock", None), ("elapsed_minutes", "clock", "min"), ("t", "perhaps", None),
        ("t_s", "clock", "s"),
        ("reaction time", "perhaps", None), ("frame", "counter", None), ("frame_number", "counter", None),
        ("Unnamed: 0", "counter", None), ("", "counter", None), ("sample", "counter", None),
    ],
)  # fmt: skip
def test_what_a_name_says(name: str, kind: str, unit: str | None):
    said = time_name(name)
    assert said is not None and (said.kind, said.unit) == (kind, unit)


@pytest.mark.parametrize("name", ["ax", "s", "heart_rate", "temperature", "x", "estimate", "0", "h", "timer_voltage"])
def test_names_of_something_else(name: str):
    assert time_name(name) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:01.5", 1.5), ("1970-01-01 00:00:01.5Z", 1.5), ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-02", 86400.0), ("1970-01-01T00:00:00.123456789Z", 0.123456), ("1970-01-01 00:00:01,250", 1.25),
        ("12:34:56.5", 45296.5), ("1:30", 90.0), ("01:00:00", 3600.0), ("19700101T000002", 2.0),
    ],
)  # fmt: skip
def test_times_as_text(text: str, seconds: float):
    assert text_seconds(text) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("text", ["walk", "12", "1.5", "01.02.2024 12:00", "2024-13-01", "20240101", "12:61:00"])
def test_text_that_is_no_time(text: str):
    with pytest.raises(ValueError):
        text_seconds(text)


def stamps(step: float, rows: int = 600, start: float = 0.0):
    return start + step * np.arange(rows)


@pytest.mark.parametrize(
    ("times", "unit"),
    [
        (stamps(0.01), "s"), (stamps(0.02, start=1.7e9), "s"), (stamps(20), "ms"), (stamps(31, start=5702026), "ms"),
        (stamps(10, start=1.7e12), "ms"), (stamps(10_000, start=1.7e15), "us"), (stamps(1e7, start=1.7e18), "ns"),
        (stamps(1e7, start=1e14), "ns"), (stamps(10_000, start=1.2e9), "us"), (stamps(1), "s"), (stamps(1000), "ms"),
        (stamps(1000, start=1.7e12), "ms"), (stamps(0.5), "s"), (stamps(16.67), "ms"),
    ],
)  # fmt: skip
def test_units_by_magnitude(times: np.ndarray, unit: str):
    assert time_unit(times, "time", None, None, "x")[0] == unit


def test_an_ambiguous_unit_shows_both_readings_and_what_decides():
    times = stamps(2, rows=20_000)
    with pytest.raises(InputError, match=r"^f\.csv may be 0\.5 Hz in s or 500 Hz in ms; say which: .*fps.*time_ms"):
        time_unit(times, "time", None, None, "f.csv")
    assert time_unit(times, "time", None, 400.0, "")[0] == "ms"
    assert time_unit(times, "time", None, 1.0, "")[0] == "s"
    assert time_unit(times, "time_s", "s", None, "")[0] == "s"


def test_a_name_that_cannot_be_right_is_refused():
    with pytest.raises(InputError, match=r"1e\+09 rows per second in ns, as its name says"):
        time_unit(stamps(1), "time_ns", "ns", None, "f.csv")
    with pytest.raises(InputError, match="no unit of time gives a plausible rate"):
        time_unit(stamps(1e12), "time", None, None, "f.csv")


@pytest.mark.parametrize(
    ("measured", "usual"),
    [(30.08, 30), (29.968, 30000 / 1001), (99.6, 100), (32.3, None), (0.2004, 0.2), (12.51, 12.5), (127.9, 128)],
)
def test_round_rates(measured: float, usual: float | None):
    assert round_rate(measured) == (None if usual is None else pytest.approx(usual))


def regular(seconds, values, fps=None):
    notes: list[str] = []
    rows, rate = on_regular_clock(stamped_rows(np.asarray(seconds, float), values, "f", notes), fps, "f", notes)
    return rows, rate, notes


def column(values) -> np.ndarray:
    return np.asarray(values, np.float32).reshape(-1, 1)


def test_a_regular_clock_leaves_rows_as_they_are():
    values = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    for rate in (25, 29.97002997, 50, 102.3, 1000, 0.5):
        for digits in (9, max(3, math.ceil(math.log10(rate)) + 1)):  # exact, and as rounded as files have it
            rows, found, _ = regular(np.round(np.arange(1000) / rate, digits), values)
            np.testing.assert_array_equal(rows, values)
            assert found == pytest.approx(rate, rel=1e-4)
    assert regular(np.round(np.arange(1000) / 30, 3), values)[1] == 30  # 33, 33, 34 ms


def test_a_rate_is_made_round_only_where_no_row_moves():
    """29.9 Hz is within half a percent of 30; after an hour the difference would be 12 seconds."""
    values = column(np.zeros(108_000))
    assert regular(np.arange(108_000) / 29.9, values)[1] == pytest.approx(29.9)


def test_dropped_samples_are_interpolated_and_long_gaps_unknown():
    kept = np.delete(np.arange(100), [10, 20, 21, *range(40, 50)])
    rows, rate, notes = regular(kept / 50, column(kept))
    assert rate == 50 and len(rows) == 100
    unknown = np.isnan(rows[:, 0])
    assert np.flatnonzero(unknown).tolist() == list(range(40, 50))
    np.testing.assert_allclose(rows[~unknown, 0], np.arange(100)[~unknown], atol=1e-4)
    assert "2 short gaps interpolated, 10 rows unknown in 1 gaps of more than 3 samples" in notes[-1]


def slow_resampling(times, values, rate):
    """One position at a time, in the words of the rule."""
    step, rows, k = 1 / rate, [], 0
    while k <= round((times[-1] - times[0]) * rate):
        now = times[0] + k * step
        before = max((i for i, t in enumerate(times) if t <= now + 1e-9), default=0)
        after = min((i for i, t in enumerate(times) if t >= now - 1e-9), default=len(times) - 1)
        if before == after or times[after] == times[before]:
            rows.append(values[before])
        elif times[after] - times[before] > 3 * 1.01 * step:
            near = before if now - times[before] <= times[after] - now else after
            rows.append(
                values[near] if abs(times[near] - now) <= 0.5 * step + 1e-8 else np.full_like(values[0], np.nan)
            )
        else:
            share = (now - times[before]) / (times[after] - times[before])
            rows.append((1 - share) * values[before] + share * values[after])
        k += 1
    return np.array(rows)


@given(
    st.lists(st.sampled_from([0.4, 0.9, 1.0, 1.1, 1.7, 2.0, 2.9, 3.5, 7.3]), min_size=1, max_size=40),
    st.integers(0, 2**32 - 1),
    st.floats(0.5, 200),
)
def test_resampling_is_that_of_a_slow_version(steps: list[float], seed: int, rate: float):
    times = np.concatenate([[0.0], np.cumsum(steps)]) / rate
    values = np.random.default_rng(seed).normal(size=(len(times), 2)).astype(np.float32)
    rows, gaps, unknown = regular_rows(times, values, rate)
    np.testing.assert_allclose(rows, slow_resampling(times, values, rate), atol=1e-4)
    assert gaps == sum(step > 3.03 for step in steps) and unknown == int(np.isnan(rows[:, 0]).sum())


def test_a_clock_that_runs_backwards_names_the_row():
    with pytest.raises(InputError, match=r"^f, row 4: time runs backwards"):
        stamped_rows(np.array([0.0, 1, 2, 1.5, 3]), column(np.zeros(5)), "f", [])


def test_repeated_stamps_are_averaged_and_noted():
    times = np.arange(20) / 10
    times[5] = times[4]
    notes: list[str] = []
    stamped = stamped_rows(times, column(np.arange(20)), "f", notes)
    assert len(stamped.times) == 19 and stamped.values[4, 0] == 4.5 and stamped.rows[5] == 6
    assert notes == ["1 rows that repeat a time stamp are averaged with the one before."]


def test_a_clock_coarser_than_its_rows_is_spread():
    """Whole seconds at 50 Hz, from the middle of a second on."""
    true = 0.36 + np.arange(1000) / 50
    rows, rate, notes = regular(np.floor(true), column(np.arange(1000)))
    assert rate == 50 and len(rows) == 1000 and "47.6 rows each" in notes[0]
    np.testing.assert_array_equal(rows[:, 0], np.arange(1000))


def test_rows_without_a_time_are_left_out_and_noted():
    times = np.arange(20) / 10
    times[3] = np.nan
    notes: list[str] = []
    assert len(stamped_rows(times, column(np.zeros(20)), "f", notes).rows) == 19
    assert notes == ["1 rows without a time are left out."]
    with pytest.raises(InputError, match="15 of 20 rows have no time"):
        stamped_rows(np.where(np.arange(20) < 5, np.arange(20.0), np.nan), column(np.zeros(20)), "f", [])


def test_two_recordings_in_one_file_are_told_to_be_split():
    times = np.concatenate([np.arange(500) / 50, 86_400 + np.arange(500) / 50])
    with pytest.raises(InputError, match=r"the longest gap, 86390 s, is after row 500: split the file there"):
        regular(times, column(np.zeros(1000)))


def test_a_rate_that_is_given_is_used_or_refused():
    kept = np.delete(np.arange(300), [7])
    assert regular(kept / 31.0, column(kept), fps=30.0)[1] == 30.0
    with pytest.raises(InputError, match=r"say 31 rows per second, not the 50 asked for"):
        regular(kept / 31.0, column(kept), fps=50.0)
