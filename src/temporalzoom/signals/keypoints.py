"""Tracked poses: from coordinates to what does not depend on where in the picture something happens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError

Floats = NDArray[np.float32]
AXES = frozenset("xyz")


def pose_geometry(signal: Floats, pattern: str, flagged: bool = False) -> Floats:
    """(N, K * P) -> (N, M): the distances between all pairs of K keypoints, their speeds, their further values.

    A network that sees coordinates learns by heart where in its few recordings things happened; distances and speeds
    are the same wherever they happen and whichever way the bodies point. Both as square roots, which keeps the many
    small ones apart.

    pattern: what the P values of a keypoint are, a letter each: x, y, z are coordinates, anything else is kept as it
    is, such as the tracker's confidence in `xyc`. flagged: signal is (N, 2 * K * P), values and then 1 where they were
    missing; M then ends with a flag per keypoint.
    """
    width = signal.shape[1] // (2 if flagged else 1)
    count, rest = divmod(width, len(pattern))
    if rest:
        raise InputError(f"data.keypoints: {pattern} is {len(pattern)} values per keypoint; {width} channels are not")
    values = signal[:, :width].reshape(len(signal), count, len(pattern))
    axes = [place for place, letter in enumerate(pattern) if letter in AXES]
    others = [place for place, letter in enumerate(pattern) if letter not in AXES]
    points = values[:, :, axes]
    first, second = np.triu_indices(count, 1)
    distances = np.linalg.norm(points[:, first] - points[:, second], axis=-1)
    steps = np.gradient(points, axis=0) if len(points) > 1 else np.zeros_like(points)
    parts = [np.sqrt(distances), np.sqrt(np.linalg.norm(steps, axis=-1)), values[:, :, others].reshape(len(signal), -1)]
    if flagged:
        flags = signal[:, width:].reshape(len(signal), count, len(pattern))
        parts.append(flags[:, :, axes].max(axis=-1))
    return np.concatenate(parts, axis=1, dtype=np.float32)


def keypoint_count(width: int, pattern: str, flagged: bool) -> int:
    """How many keypoints there were, from the width of what `pose_geometry` made of them."""
    per_point = 1 + sum(letter not in AXES for letter in pattern) + flagged
    count = 1
    while count * (count - 1) // 2 + count * per_point < width:
        count += 1
    return count
