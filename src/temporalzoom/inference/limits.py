"""The best of each neighbourhood in time: limits that mean the same for a minute and for a day."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]


def within_limit(positions: Floats, limit: int, span: float | None) -> Booleans:
    """Which of the rows (N,), best first, are among the `limit` best within `span` positions to either side.

    None: within all of them, so the first `limit` stay, as they do where the positions lie no farther apart than the
    span. Otherwise what stays somewhere depends on what is within the span and on nothing else: on no cut of a
    recording into files that are farther apart, and on no place where counting began. O(n log n).
    """
    count = len(positions)
    if count <= limit or span is None or is_one_neighbourhood(positions, span):
        return np.arange(count) < limit
    by_position = np.argsort(positions, kind="stable")
    there = positions[by_position]
    low, high = np.searchsorted(there, positions - span), np.searchsorted(there, positions + span, side="right")
    kept = np.ones(count, bool)
    crowded = np.flatnonzero(high - low > limit)
    kept[crowded] = count_below(by_position, low[crowded], high[crowded], crowded) < limit
    return kept


def is_one_neighbourhood(positions: Floats | None, span: float | None) -> bool:
    """Whether all rows are within the span of each other, as in a short recording."""
    return span is None or positions is None or not len(positions) or bool(np.ptp(positions) <= span)


def count_below(values: Integers, low: Integers, high: Integers, bounds: Integers) -> Integers:
    """How many of `values[low:high]` lie below the bound: values (N,) from 0 to N - 1, the others (M,) -> (M,).

    A wavelet matrix: bit by bit from the highest, values are parted into those with a 0 and those with a 1, in order;
    a range stays a range on either side, and where the bound has a 1, all with a 0 are below it. O((n + m) log n).
    """
    low, high, total = low.copy(), high.copy(), np.zeros(len(bounds), np.intp)
    for bit in range(max(len(values) - 1, 1).bit_length() - 1, -1, -1):
        ones = (values >> bit & 1).astype(bool)
        zeros_before = np.concatenate([[0], np.cumsum(~ones)])
        in_low, in_high = zeros_before[low], zeros_before[high]
        upper = (bounds >> bit & 1).astype(bool)
        total[upper] += (in_high - in_low)[upper]
        border = zeros_before[-1]
        low, high = np.where(upper, border + low - in_low, in_low), np.where(upper, border + high - in_high, in_high)
        values = np.concatenate([values[~ones], values[ones]])
    return total
