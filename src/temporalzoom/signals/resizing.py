"""Features of any length resized to a fixed one: short recordings are looked at more closely than long ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporalzoom.timegrid import TimeGrid

Floats = NDArray[np.float32]


def resized_grid(grid: TimeGrid, length: int, resized: int) -> TimeGrid:
    """The grid on which `resized` positions without overlap cover the same time as `length` positions of `grid`."""
    if length < 1 or resized < 1:
        raise ValueError(f"both lengths must be at least one position, got {length} and {resized}")
    stride = ((length - 1) * grid.stride + grid.window) / resized
    return TimeGrid(stride, stride, grid.fps)


def resize_features(features: Floats, grid: TimeGrid, resized: int) -> tuple[Floats, TimeGrid]:
    """(T, D) -> (resized, D) and its grid. Each new position holds the linear interpolation at its own time; before the
    first and after the last old position the nearest one is repeated.

    For windows that do not overlap (window = stride) this is the field's `interpolate(align_corners=False)`; for others
    that would be off by up to half the difference, because it takes the first feature for the time 0.
    """
    new = resized_grid(grid, len(features), resized)
    wanted = np.clip(grid.to_grid(new.to_seconds(np.arange(resized))), 0, len(features) - 1)
    low = np.minimum(wanted.astype(np.intp), max(len(features) - 2, 0))
    high = np.minimum(low + 1, len(features) - 1)
    share = (wanted - low)[:, None]
    return (features[low] * (1 - share) + features[high] * share).astype(np.float32), new
