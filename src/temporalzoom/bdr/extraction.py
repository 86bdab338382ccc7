"""From a distance field to boundaries: its rising zeros."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .targets import Floats, Numbers, as_float64


def extract_boundaries(
    distances: Numbers, *, min_slope: float = 0.5, window: float = 5.0, margin: float = 0.0, first: int = 0
) -> tuple[Floats, Floats]:
    """Positions (N,), ascending, and strengths (N,) of the boundaries of one field (T,).

    A boundary is a rising crossing `d(t) < 0 <= d(t+1)` with a slope of at least `min_slope`; its position is the zero
    of the line between the two samples, its strength the slope (1 on a perfect field). The falling sign change midway
    between two boundaries is none, though the paper's `sign(d_t) != sign(d_{t+1})` reports it. Of boundaries closer
    than `window / 2` the strongest stays (`suppress`).

    Beyond its ends the field is continued by its outermost step (by slope 1 if that one falls), which finds a boundary
    exactly on position 0; zeros up to `margin` (at most 1) outside the grid are returned too.

    On the target field of boundaries in [0, T-1] that are at least two positions, and more than `window / 2`, apart the
    result is exactly those boundaries.

    first: the position of the field's first sample, where it is a part of a longer one; see `known_stretch`.
    """
    positions, strengths = _crossings(distances, min_slope, margin, first)
    keep = suppress(positions, strengths, window)
    return positions[keep], strengths[keep]


def known_stretch(
    distances: Numbers, *, min_slope: float = 0.5, window: float = 5.0, first: int = 0, is_last: bool = False
) -> tuple[float, float]:
    """Between which positions, both exclusive, the boundaries of a part (T,) of a field are those of the whole field.

    Crossings decide about each other as long as one is closer than `window / 2` to the next: what such a row of
    crossings at an edge of the part comes to depends on the rest of it. first: the position of the part's first sample,
    0: nothing comes before; is_last: nothing comes after.
    """
    positions, _ = _crossings(distances, min_slope, 0.0, first)
    low, high = -np.inf, np.inf
    if first > 0:
        all_of_them = np.concatenate([[float(first)], positions])
        apart = np.flatnonzero(all_of_them[1:] - window / 2 >= all_of_them[:-1])
        low = float(all_of_them[apart[0]] if len(apart) else all_of_them[-1])
    if not is_last:
        all_of_them = np.concatenate([positions, [float(first + len(as_float64(distances)) - 1)]])
        apart = np.flatnonzero(all_of_them[1:] - window / 2 >= all_of_them[:-1])
        high = float(all_of_them[apart[-1] + 1] if len(apart) else all_of_them[0])
    return low, high


def _crossings(distances: Numbers, min_slope: float, margin: float, first: int) -> tuple[Floats, Floats]:
    """Positions and strengths before any suppresses another, (N,) each."""
    field = as_float64(distances)
    if field.ndim != 1:
        raise ValueError(f"one field (T,) at a time, got shape {field.shape}")
    if not field.size:
        return np.empty(0), np.empty(0)
    inner = np.diff(field) if field.size > 1 else np.ones(1)
    step_in, step_out = (step if step >= 0 else 1.0 for step in (inner[0], inner[-1]))
    extended = np.concatenate([[field[0] - step_in], field, [field[-1] + step_out]])

    slopes = np.diff(extended)
    at = np.flatnonzero((extended[:-1] < 0) & (extended[1:] >= 0) & (slopes >= min_slope))
    positions, strengths = (at - 1 + first) - extended[at] / slopes[at], slopes[at]
    inside = (positions >= first - margin) & (positions <= first + field.size - 1 + margin)
    return positions[inside], strengths[inside]


def suppress(positions: Floats, strengths: Floats, window: float) -> NDArray[np.bool_]:
    """1-D non-maximum suppression: which of the ascending positions (N,) stay, (N,) bool.

    Greedy by strength, ties by position: a position falls if one closer than `window / 2` that is kept precedes it.
    In each round everything that no undecided neighbour precedes is kept, at all places of the sequence at once.
    """
    count = len(positions)
    # All pairs of neighbours (left, right): for each position the run of those after it that are close enough.
    runs = np.searchsorted(positions - window / 2, positions, side="left") - np.arange(count) - 1
    runs = np.maximum(runs, 0)
    left = np.repeat(np.arange(count), runs)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(runs) - runs, runs)
    left_wins = strengths[left] >= strengths[right]
    winner, loser = np.where(left_wins, left, right), np.where(left_wins, right, left)

    keep, undecided = np.zeros(count, bool), np.ones(count, bool)
    while undecided.any():
        preceded = np.zeros(count, bool)
        preceded[loser[undecided[winner]]] = True
        kept_now = undecided & ~preceded
        keep |= kept_now
        undecided &= ~kept_now
        undecided[loser[kept_now[winner]]] = False
    return keep


def combine_with_probabilities(
    positions: Numbers,
    strengths: Numbers,
    boundary_probability: Numbers,
    *,
    weight: float = 0.5,
    min_probability: float = 0.5,
    window: float = 5.0,
) -> tuple[Floats, Floats]:
    """The hybrid with a boundary classifier: positions (N,), ascending, and scores (N,) in [0, 1].

    positions, strengths: (M,) from `extract_boundaries`; boundary_probability: (T,) of the classifier.
    A zero crossing scores `(1 - weight) * min(strength, 1) + weight * probability there`; a local maximum of the
    probability of at least `min_probability` scores `weight * probability`. Close ones suppress each other by score: a
    clear crossing keeps its finer position, and a gradual boundary that no steep crossing marks is still found.
    """
    crossings, slopes = as_float64(positions).reshape(-1), as_float64(strengths).reshape(-1)
    probability = as_float64(boundary_probability).reshape(-1)
    if not probability.size:
        raise ValueError("boundary_probability is empty")
    padded = np.concatenate([[-np.inf], probability, [-np.inf]])
    peaks = np.flatnonzero((probability > padded[:-2]) & (probability >= padded[2:]) & (probability >= min_probability))
    there = np.interp(crossings, np.arange(len(probability)), probability)
    scores = np.concatenate([(1 - weight) * np.clip(slopes, 0, 1) + weight * there, weight * probability[peaks]])
    candidates = np.concatenate([crossings, peaks.astype(np.float64)])
    order = np.argsort(candidates, kind="stable")
    candidates, scores = candidates[order], scores[order]
    keep = suppress(candidates, scores, window)
    return candidates[keep], scores[keep]
