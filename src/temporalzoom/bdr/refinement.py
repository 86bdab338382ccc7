"""Segments of any detector, their ends moved to the zeros of the distance fields."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .extraction import extract_boundaries
from .targets import Floats, Numbers, as_float64

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
    min_slope: float = 0.5,
    window: float = 5.0,
    box_variance: Numbers | None = None,
    start_variance: Numbers | None = None,
    end_variance: Numbers | None = None,
    return_taken: bool = False,
    first: int = 0,
) -> tuple[NDArray[Any], ...]:
    """Refined starts and ends, float64 (N,) each, in grid units.

    starts, ends: (N,); start_field, end_field: (T,) distances (the same array twice for a joint field).
    mode: `none`; `snap` to the nearest extracted boundary (`min_slope` and `window` as in `extract_boundaries`);
    `newton`, `steps` times `s <- s - d(s)`; `fuse`, the precision-weighted mean of the segment's end and the Newton
    zero. A zero farther away than `max_move` times the segment's length is not taken, and a segment that would be
    turned around stays as it was.

    For `fuse`: box_variance (N,), or (N, 2) for starts and ends, default `assumed_box_variance`; start_variance,
    end_variance (T,) or a number, default 1 squared position.

    return_taken: also return (N, 2) bool, True where the field's zero was taken for the start and the end. An end
    where it is False is the one that was given, and no more certain than it was.

    first: the position of the fields' first sample, where they are a part of longer ones.
    """
    old_starts, old_ends = as_float64(starts).reshape(-1), as_float64(ends).reshape(-1)
    if old_starts.shape != old_ends.shape:
        raise ValueError(f"{len(old_starts)} starts and {len(old_ends)} ends")
    if mode not in ("none", "snap", "newton", "fuse"):
        raise ValueError(f"mode must be 'none', 'snap', 'newton' or 'fuse', got {mode!r}")
    old = np.stack([old_starts, old_ends], 1)
    refined, taken = old.copy(), np.zeros(old.shape, bool)
    if mode != "none" and len(old):
        limit = max_move * (old_ends - old_starts)
        box = assumed_box_variance(old_starts, old_ends, max_move) if box_variance is None else as_float64(box_variance)
        box = np.broadcast_to(box.reshape(len(old), -1), old.shape)
        for side, (given, variance) in enumerate(((start_field, start_variance), (end_field, end_variance))):
            field, ends_before = as_float64(given), old[:, side]
            if mode == "snap":
                zeros = _nearest_boundary(field, ends_before, min_slope, window, first)
            else:
                zeros = _newton(field, ends_before, steps, first)
            move = zeros - ends_before
            taken[:, side] = np.abs(move) <= limit  # false for the NaN of "no zero"
            move = np.where(taken[:, side], move, 0.0)
            if mode == "fuse":
                move *= _gain(box[:, side], variance, np.where(taken[:, side], zeros, ends_before), first)
            refined[:, side] += move
        kept = (refined[:, 1] > refined[:, 0])[:, None]
        refined, taken = np.where(kept, refined, old), taken & kept
    new_starts, new_ends = refined[:, 0].copy(), refined[:, 1].copy()
    return (new_starts, new_ends, taken) if return_taken else (new_starts, new_ends)


def assumed_box_variance(starts: Numbers, ends: Numbers, max_move: float = 0.3) -> Floats:
    """The variance (N,) of the ends of segments whose detector predicts none: `(max_move * length / 3)^2`.

    With it `max_move` is three standard deviations.
    """
    lengths = as_float64(ends).reshape(-1) - as_float64(starts).reshape(-1)
    return np.square(np.maximum(max_move * lengths, 1e-9) / 3)


def _nearest_boundary(field: Floats, positions: Floats, min_slope: float, window: float, first: int) -> Floats:
    """The extracted boundary nearest to each position (N,); NaN if the field has none."""
    boundaries, _ = extract_boundaries(field, min_slope=min_slope, window=window, margin=1.0, first=first)
    if not len(boundaries):
        return np.full_like(positions, np.nan)
    after = np.searchsorted(boundaries, positions)
    left, right = boundaries[np.maximum(after - 1, 0)], boundaries[np.minimum(after, len(boundaries) - 1)]
    return np.where(np.abs(positions - left) <= np.abs(right - positions), left, right)


def newton_path(field: Numbers, positions: Numbers, steps: int = 2, first: int = 0) -> Floats:
    """Where `newton` reads the field (T,) on its way from each position (N,): (steps + 1, N), the last the zero found.

    first: the position of the field's first sample. Of a field that is a part of a longer one, a path that stays inside
    is that of the longer one, to the last bit.
    """
    values, path = as_float64(field), [as_float64(positions)]
    for _ in range(steps):
        path.append(path[-1] - _read(values, path[-1], first))
    return np.stack(path)


def _newton(field: Floats, positions: Floats, steps: int, first: int) -> Floats:
    """Zeros of the field (T,) near the positions (N,); NaN where the steps do not arrive at one."""
    if not field.size:
        return np.full_like(positions, np.nan)
    zeros = newton_path(field, positions, steps, first)[-1]
    return np.where(np.abs(_read(field, zeros, first)) <= _ARRIVED, zeros, np.nan)


def _read(field: Floats, positions: Floats, first: int) -> Floats:
    """The field (T,) at real positions (N,): linear between samples, slope 1 from the nearest sample elsewhere.

    "Elsewhere" is beyond both ends, and across a jump, where a line between the samples would invent a distance.
    """
    last = first + len(field) - 1
    positions = np.where(np.isfinite(positions), positions, 0.0)
    lower = np.clip(np.floor(positions), first, max(last - 1, first)).astype(np.intp)
    upper = np.minimum(lower + 1, last)
    step = field[upper - first] - field[lower - first]
    between = field[lower - first] + (positions - lower) * step
    nearest = np.clip(np.rint(positions), first, last).astype(np.intp)
    outside = (positions < first) | (positions > last)
    return np.where(outside | (step < _JUMP), field[nearest - first] + (positions - nearest), between)


def _gain(box_variance: Floats, field_variance: Numbers | None, zeros: Floats, first: int) -> Floats:
    """The share (N,) of the way from box end to zero that the precision-weighted mean takes."""
    field = as_float64(1.0 if field_variance is None else field_variance)
    if field.ndim:
        field = np.interp(zeros, np.arange(first, first + len(field)), field)
    if not (np.all(box_variance > 0) and np.all(field > 0)):
        raise ValueError("variances must be positive")
    return 1.0 / (1.0 + field / box_variance)
