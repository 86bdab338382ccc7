"""Segments of any detector, their ends moved to the zeros of the distance fields."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .arrays import Floats, Numbers, as_float64
from .extraction import extract_boundaries

RefinementMode = Literal["none", "snap", "newton", "fuse"]

# Noise lets a predicted field fall a little; a change of the nearest boundary lets it fall by at least 1.
_JUMP = -0.5
# A Newton step that ends where the field is farther from zero than this has not found a boundary.
_ARRIVED = 0.5


def refine_segments(
    starts: Numbers,
    ends: Numbers,
    start_field: Numbers,
    end_field: Numbers,
    *,
    mode: RefinementMode = "newton",
    max_move: float = 0.3,
    steps: int = 2,
    box_variance: Numbers | None = None,
    start_variance: Numbers | None = None,
    end_variance: Numbers | None = None,
) -> tuple[Floats, Floats]:
    """Refined starts and ends, float64 (N,) each, in grid units.

    starts, ends: (N,); start_field, end_field: (T,) distances (the same array twice for a joint field).
    mode: `none`; `snap` to the nearest extracted boundary; `newton`, `steps` times `s <- s - d(s)`; `fuse`, the
    precision-weighted mean of the segment's end and the Newton zero.
    A zero farther away than `max_move` times the segment's length is not taken, and a segment that would be turned
    around stays as it was.

    For `fuse`: box_variance (N,), or (N, 2) for starts and ends, default `(max_move * length / 3)^2`, which makes
    `max_move` three standard deviations; start_variance, end_variance (T,) or a number, default 1 squared position.
    """
    old_starts, old_ends = as_float64(starts).reshape(-1), as_float64(ends).reshape(-1)
    if old_starts.shape != old_ends.shape:
        raise ValueError(f"{len(old_starts)} starts and {len(old_ends)} ends")
    if mode not in ("none", "snap", "newton", "fuse"):
        raise ValueError(f"mode must be 'none', 'snap', 'newton' or 'fuse', got {mode!r}")
    if mode == "none" or not len(old_starts):
        return old_starts.copy(), old_ends.copy()

    limit = max_move * (old_ends - old_starts)
    box = np.square(np.maximum(limit, 1e-9) / 3)[:, None] if box_variance is None else as_float64(box_variance)
    box = np.broadcast_to(box.reshape(len(old_starts), -1), (len(old_starts), 2))

    refined = []
    for side, (old, field, variance) in enumerate(
        ((old_starts, as_float64(start_field), start_variance), (old_ends, as_float64(end_field), end_variance))
    ):
        zeros = _nearest_boundary(field, old) if mode == "snap" else _newton(field, old, steps)
        move = zeros - old
        taken = np.abs(move) <= limit  # false for the NaN of "no zero"
        move = np.where(taken, move, 0.0)
        if mode == "fuse":
            move *= _gain(box[:, side], variance, np.where(taken, zeros, old), len(field))
        refined.append(old + move)
    kept = refined[1] > refined[0]
    return np.where(kept, refined[0], old_starts), np.where(kept, refined[1], old_ends)


def _nearest_boundary(field: Floats, positions: Floats) -> Floats:
    """The extracted boundary nearest to each position (N,); NaN if the field has none."""
    boundaries, _ = extract_boundaries(field, margin=1.0)
    if not len(boundaries):
        return np.full_like(positions, np.nan)
    after = np.searchsorted(boundaries, positions)
    left, right = boundaries[np.maximum(after - 1, 0)], boundaries[np.minimum(after, len(boundaries) - 1)]
    return np.where(np.abs(positions - left) <= np.abs(right - positions), left, right)


def _newton(field: Floats, positions: Floats, steps: int) -> Floats:
    """Zeros of the field (T,) near the positions (N,); NaN where the steps do not arrive at one."""
    if not field.size:
        return np.full_like(positions, np.nan)
    for _ in range(steps):
        positions = positions - _read(field, positions)
    return np.where(np.abs(_read(field, positions)) <= _ARRIVED, positions, np.nan)


def _read(field: Floats, positions: Floats) -> Floats:
    """The field (T,) at real positions (N,): linear between samples, slope 1 from the nearest sample elsewhere.

    "Elsewhere" is beyond both ends, and across a jump, where a line between the samples would invent a distance.
    """
    last = len(field) - 1
    positions = np.where(np.isfinite(positions), positions, 0.0)
    lower = np.clip(np.floor(positions), 0, max(last - 1, 0)).astype(np.intp)
    upper = np.minimum(lower + 1, last)
    step = field[upper] - field[lower]
    between = field[lower] + (positions - lower) * step
    nearest = np.clip(np.rint(positions), 0, last).astype(np.intp)
    outside = (positions < 0) | (positions > last)
    return np.where(outside | (step < _JUMP), field[nearest] + (positions - nearest), between)


def _gain(box_variance: Floats, field_variance: Numbers | None, zeros: Floats, length: int) -> Floats:
    """The share (N,) of the way from box end to zero that the precision-weighted mean takes."""
    field = as_float64(1.0 if field_variance is None else field_variance)
    if field.ndim:
        field = np.interp(zeros, np.arange(length), field)
    if not (np.all(box_variance > 0) and np.all(field > 0)):
        raise ValueError("variances must be positive")
    return 1.0 / (1.0 + field / box_variance)
