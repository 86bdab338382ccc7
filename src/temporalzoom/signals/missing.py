"""Missing values: a keypoint that was not tracked, a sensor that fell silent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def fill_missing(signal: Floats) -> Floats:
    """(N, C) with NaN -> (N, 2C) without: each channel interpolated in time, then a channel that is 1 where it was NaN.

    Before the first and after the last known value the nearest one is repeated; a channel that is never known is zero.
    Infinite values are no missing values, and stay.
    """
    missing = np.isnan(signal)
    filled = signal.copy()
    rows = np.arange(len(signal))
    for channel in np.flatnonzero(missing.any(axis=0)):
        gap = missing[:, channel]
        known = rows[~gap]
        filled[gap, channel] = np.interp(rows[gap], known, signal[known, channel]) if len(known) else 0.0
    return np.concatenate([filled, missing.astype(np.float32)], axis=1)
