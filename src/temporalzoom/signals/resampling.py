"""Rows brought onto a regular clock: those of irregular times, and those of another rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.signals.container import Floats, Signal

Seconds = NDArray[np.float64]
LONGEST_GAP = 3.0  # steps between two rows; beyond it nothing is known in between
SLACK = 1.01  # so that rounded time stamps do not turn three steps into more
# Fewer than this many old rows per new one are interpolated, more are averaged: what lies above the new Nyquist
# frequency would else come back as something slower.
LINEAR_BELOW = 1.25
EXACT = 1e-6  # of a step: this near to a row its value is taken as it is


def resampled(signal: Signal, fps: float) -> Signal:
    """The same signal at another rate. Labels and the start stay where they are: they are in seconds.

    Row `k` of the result is at second `k / fps` after the first row. Towards a higher or a slightly lower rate values
    are interpolated linearly; towards a lower one each is the mean over the `1 / fps` seconds around it. What is made
    from unknown values (of a mean: from more than half) is unknown.
    """
    if not (np.isfinite(fps) and fps > 0):
        raise InputError(f"fps must be a positive number, got {fps}")
    if signal.fps is None:
        raise InputError("has no clock, so that it cannot be brought to another rate; say its own: fps")
    if fps == signal.fps or not len(signal.values):
        return replace(signal, fps=fps)
    ratio = signal.fps / fps
    count = max(round(len(signal.values) / ratio), 1)
    places = np.arange(count, dtype=np.float64) * ratio
    if ratio <= LINEAR_BELOW:
        values = interpolated(signal.values, places)
    else:
        values = averaged(signal.values, places, ratio)
    note = f"Resampled from {signal.fps:.6g} to {fps:.6g} Hz."
    return replace(signal, values=values, fps=fps, notes=(*signal.notes, note))


def interpolated(values: Floats, places: Seconds) -> Floats:
    """(N, C) at real-valued rows `places` (M,) -> (M, C), linearly; outside, the nearest row is repeated.

    Between a known and an unknown value nothing is known.
    """
    places = np.clip(places, 0, len(values) - 1)
    nearest = np.rint(places)
    places = np.where(np.abs(places - nearest) < EXACT, nearest, places)
    low = places.astype(np.intp)
    high = np.minimum(low + 1, len(values) - 1)
    share = (places - low)[:, None]
    mixed = values[low] * (1 - share) + values[high] * share
    return np.where(share == 0, values[low], mixed).astype(np.float32)


def averaged(values: Floats, places: Seconds, width: float) -> Floats:
    """(N, C) -> (M, C): means over `width` rows around real-valued rows `places` (M,), cut off at the ends.

    A row counts by how much of its own surroundings, half a row to each side, lies within. Unknown values do not
    count; where less than half is known the mean is unknown.
    """
    known = np.isfinite(values)
    middle = np.divide(
        np.where(known, values, 0).sum(axis=0, dtype=np.float64), known.sum(axis=0), where=known.any(axis=0),
        out=np.zeros(values.shape[1]),
    )  # fmt: skip
    # Running sums of what is left without the mean stay small, and so does their rounding.
    centred = np.where(known, values - middle, 0.0)
    edges = np.clip(np.stack([places - width / 2, places + width / 2]) + 0.5, 0, len(values))
    total, weight = (_running_sum(part, edges[1]) - _running_sum(part, edges[0]) for part in (centred, known))
    enough = weight >= 0.5 * (edges[1] - edges[0])[:, None] - EXACT
    means = np.divide(total, weight, where=enough & (weight > 0), out=np.full(total.shape, np.nan))
    return (means + middle).astype(np.float32)


def _running_sum(values: NDArray[np.generic], until: Seconds) -> Seconds:
    """Sums of (N, C) over all rows before real-valued `until` (M,), the last one in part: (M, C)."""
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0, dtype=np.float64)])
    low = np.minimum(until.astype(np.intp), len(values) - 1)
    share = (until - low)[:, None]
    return sums[low] * (1 - share) + sums[low + 1] * share


def regular_rows(times: Seconds, values: Floats, fps: float) -> tuple[Floats, int, int]:
    """Rows (N, C) at rising `times` (N,) -> rows (M, C) at `times[0] + k / fps`, how many gaps, how many unknown rows.

    Linear in between. In a gap of more than LONGEST_GAP steps, rows more than half a step away from the nearest known
    one are unknown: NaN.
    """
    grid = np.arange(round((times[-1] - times[0]) * fps) + 1) / fps
    since = times - times[0]
    places = np.interp(grid, since, np.arange(len(times)))
    low = np.minimum(places.astype(np.intp), max(len(times) - 2, 0))
    steps = np.diff(since) * fps
    gaps = steps > LONGEST_GAP * SLACK
    unknown = np.zeros(len(grid), bool)
    if gaps.any():
        before, after = grid - since[low], since[low + 1] - grid
        in_gap = gaps[low] & (after > 0)
        unknown = in_gap & (np.minimum(before, after) * fps > 0.5 + EXACT)
        # At the edge of a gap the nearest row, not a line across it.
        places = np.where(in_gap & ~unknown, low + (after < before), places)
    rows = interpolated(values, places)
    rows[unknown] = np.nan
    return rows, int(gaps.sum()), int(unknown.sum())
