"""From time stamps to a rate: what is regular stays as it is, what is not is resampled onto a regular clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.signals.container import Floats
from temporalzoom.signals.resampling import LONGEST_GAP, SLACK, Seconds, regular_rows
from temporalzoom.signals.time_columns import check_forward

REGULAR = 0.25  # of a step: no time stamp of a regular clock is further from where it should be
ROUND_WITHIN = 0.005
CONTRADICTION = 0.1  # how far a rate that the user gives may be from that of the time stamps
COARSE = 0.25  # from this share of repeated time stamps on, the clock ticks more slowly than rows come
MOST_UNKNOWN = 20  # unknown rows per known one, beyond which a gap is no gap
USUAL = (*(1000 * rate / 1001 for rate in (24, 30, 48, 60, 120, 240)), 2.5, 7.5, 12.5, 31.25, 62.5)


@dataclass(frozen=True)
class Stamped:
    """Rows with one time stamp each. times: (M,) seconds, strictly rising; rows: the first row of the file for each;
    values: (M, C)."""

    times: Seconds
    rows: NDArray[np.intp]
    values: Floats


def round_rate(rate: float) -> float | None:
    """The usual rate near a measured one: a whole number, or its period is, or a rate of video; None for any other."""
    choices = [float(round(rate)), *USUAL] if rate >= 1 else [1 / round(1 / rate)]
    nearest = min(choices, key=lambda choice: abs(choice - rate))
    return nearest if abs(nearest - rate) <= ROUND_WITHIN * rate else None


def stamped_rows(seconds: Seconds, values: Floats, where: str, notes: list[str]) -> Stamped:
    """Rows (N, C) and their seconds (N,), NaN where unknown -> rows that each have a time of their own.

    Rows without a time are left out. Those that share one are averaged; where most do, the clock is coarser than the
    rows, and they are spread over the time until the next stamp.
    """
    check_forward(seconds, where)
    rows = np.flatnonzero(np.isfinite(seconds))
    if len(rows) < 2 or len(rows) < 0.5 * len(seconds):
        raise InputError(f"{where}: {len(seconds) - len(rows)} of {len(seconds)} rows have no time")
    if len(rows) < len(seconds):
        notes.append(f"{len(seconds) - len(rows)} rows without a time are left out.")
    times, values = seconds[rows], values[rows]
    firsts = np.flatnonzero(np.concatenate([[True], np.diff(times) > 0]))
    repeated = len(times) - len(firsts)
    if len(firsts) < 2:
        raise InputError(f"{where}: all {len(times)} rows have the same time")
    if repeated >= COARSE * len(times):
        notes.append(f"Time stamps stand for {len(times) / len(firsts):.3g} rows each; rows are spread between them.")
        return Stamped(_spread(times, firsts), rows, values)
    if repeated:
        notes.append(f"{repeated} rows that repeat a time stamp are averaged with the one before.")
        values = _group_means(values, firsts)
    return Stamped(times[firsts], rows[firsts], values)


def on_regular_clock(stamped: Stamped, fps: float | None, where: str, notes: list[str]) -> tuple[Floats, float]:
    """Rows on a regular clock (M, C), and its rate: `fps` if given, else the usual rate near the measured one.

    Where the time stamps themselves are regular the rows stay as they are.
    """
    times = stamped.times - stamped.times[0]
    measured = 1 / usual_step(times)
    if fps is not None and abs(measured / fps - 1) > CONTRADICTION:
        raise InputError(f"{where} say {measured:.4g} rows per second, not the {fps:g} asked for; leave fps out")
    average = (len(times) - 1) / times[-1]
    for rate in [fps] if fps is not None else [round_rate(average), average]:
        if rate is not None and _is_regular(times, rate):
            notes.append(f"{rate:.6g} rows per second, regular.")
            return stamped.values, float(rate)
    rate = fps or round_rate(measured) or measured
    wanted = times[-1] * rate
    if wanted > MOST_UNKNOWN * len(times) + 1000:
        gap = int(np.argmax(np.diff(times)))
        raise InputError(
            f"{where}: {wanted:.3g} samples at {rate:.4g} Hz for {len(times)} rows; the longest gap, "
            f"{np.diff(times)[gap]:.6g} s, is after row {stamped.rows[gap] + 1}: split the file there"
        )
    values, gaps, unknown = regular_rows(times, stamped.values, rate)
    steps = np.diff(times) * rate
    late = int(((steps > 1.5) & (steps <= LONGEST_GAP * SLACK)).sum())
    notes.append(
        f"Irregular, usually {measured:.4g} rows per second: resampled onto {rate:.6g} Hz, {len(times)} rows into "
        f"{len(values)}; {late} short gaps interpolated, {unknown} rows unknown in {gaps} gaps of more than "
        f"{LONGEST_GAP:g} samples."
    )
    return values, float(rate)


def usual_step(times: Seconds) -> float:
    """Seconds between neighbours: the mean of the steps that are near the median, for clocks that count in whole
    milliseconds."""
    steps = np.diff(times)
    median = float(np.median(steps))
    return float(steps[np.abs(steps - median) <= 0.5 * median].mean())


def _is_regular(times: Seconds, rate: float) -> bool:
    off = times * rate - np.arange(len(times))
    return bool(off.max() - off.min() <= 2 * REGULAR)


def _spread(times: Seconds, firsts: NDArray[np.intp]) -> Seconds:
    """Times (N,) with repetitions, groups of which begin at `firsts` -> strictly rising ones within one tick each."""
    counts = np.diff(np.append(firsts, len(times)))
    tick = float(np.median(np.diff(times[firsts])))
    usual = max(int(np.median(counts)), 1)
    within = np.arange(len(times)) - np.repeat(firsts, counts)
    share = counts.astype(np.float64)
    share[[0, -1]] = np.maximum(share[[0, -1]], usual)  # a recording begins and ends in the middle of a tick
    spread = times + within / np.repeat(share, counts) * tick
    if counts[0] < usual:
        spread[: counts[0]] += (usual - counts[0]) / usual * tick
    return spread


def _group_means(values: Floats, firsts: NDArray[np.intp]) -> Floats:
    """Means (M, C) of the known values of each group of rows (N, C); unknown where none is known."""
    known = np.isfinite(values)
    totals = np.add.reduceat(np.where(known, values, 0), firsts, axis=0, dtype=np.float64)
    counts = np.add.reduceat(known, firsts, axis=0, dtype=np.int64)
    means = np.divide(totals, counts, where=counts > 0, out=np.full(totals.shape, np.nan))
    return means.astype(np.float32)
