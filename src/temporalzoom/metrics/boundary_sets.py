"""Boundaries as sets of times, and as peaks of a curve: Boundary Chamfer Distance and peak sharpness.

The paper names both and defines neither; what is measured here is said where it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from temporalzoom.metrics.pairs import Floats
from temporalzoom.segments import Segments

REACH = 4  # positions to either side of a boundary that sharpness looks at
BESIDE = 2  # from here on a position is beside a peak, no longer part of it


def chamfer_distance(first: ArrayLike, second: ArrayLike, limit: float = np.inf) -> float:
    """Mean distance of each time of one set (N,) to the nearest of the other (M,), averaged over both directions.

    limit: nothing counts as farther away; in an empty set, everything is that far. NaN where both are empty.
    """
    a, b = (np.asarray(times, np.float64).reshape(-1) for times in (first, second))
    if not len(a) and not len(b):
        return float("nan")
    if not len(a) or not len(b):
        return float(limit)
    return 0.5 * (_mean_nearest(a, b, limit) + _mean_nearest(b, a, limit))


def _mean_nearest(times: Floats, others: Floats, limit: float) -> float:
    ordered = np.sort(others)
    after = np.searchsorted(ordered, times)
    left, right = ordered[np.maximum(after - 1, 0)], ordered[np.minimum(after, len(ordered) - 1)]
    return float(np.minimum(np.minimum(np.abs(times - left), np.abs(times - right)), limit).mean())


def boundary_chamfer(
    truth: Mapping[str, Segments], predictions: Mapping[str, Segments], fps: Mapping[str, float], limit: float = np.inf
) -> Floats:
    """Boundary Chamfer Distance (BCD) of every recording of `truth`, in its order, in frames: (V,).

    Starts are compared with starts and ends with ends, whatever their labels; of a recording with n instances, the n
    detections with the highest scores count, so that no threshold has to be chosen. limit: in frames. NaN for a
    recording without instances.
    """
    found = np.full(len(truth), np.nan)
    for row, (name, instances) in enumerate(truth.items()):
        if not len(instances):
            continue
        detected = predictions.get(name, Segments.empty())
        best = np.argsort(-np.asarray(detected.scores, np.float64), kind="stable")[: len(instances)]
        sides = ((instances.starts, detected.starts[best]), (instances.ends, detected.ends[best]))
        found[row] = np.mean([chamfer_distance(true * fps[name], seen * fps[name], limit) for true, seen in sides])
    return found


def peak_sharpness(curve: ArrayLike, boundaries: ArrayLike, reach: int = REACH) -> Floats:
    """How far the curve (T,), not negative, falls off beside its peak near each of the boundaries (N,): (N,), 0 to 1.

    Of the positions within `reach` of a boundary the highest is its peak; sharpness is one minus the mean of those at
    least two positions beside it, in units of the peak. All at one position: 1; a plateau, or nothing: 0.
    """
    values, centres = np.asarray(curve, np.float64), np.rint(np.asarray(boundaries, np.float64)).astype(np.intp)
    offsets = np.arange(-reach, reach + 1)
    at = centres[:, None] + offsets
    inside = (at >= 0) & (at < len(values))
    window = np.where(inside, values[at.clip(0, max(len(values) - 1, 0))], 0.0) if len(values) else np.zeros(at.shape)
    peak = window.argmax(1)[:, None]
    height = np.take_along_axis(window, peak, 1)[:, 0]
    beside = inside & (np.abs(np.arange(len(offsets)) - peak) >= BESIDE)
    mean = (window * beside).sum(1) / np.maximum(beside.sum(1), 1)
    return np.where(height > 0, 1 - mean / np.where(height > 0, height, 1.0), 0.0).clip(0.0, 1.0)
