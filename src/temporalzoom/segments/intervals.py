"""Sets of half-open intervals as sorted arrays: merged, intersected, turned inside out, stacked in lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .columns import Columns, as_labels

Floats = NDArray[np.float64]


class Intervals(NamedTuple):
    """N intervals `[start, end)` that are ascending, not empty and do not touch each other; each with a score."""

    starts: Floats
    ends: Floats
    scores: Floats


def merge(starts: Floats, ends: Floats, scores: Floats) -> Intervals:
    """The time that any of the intervals (N,) covers. Those that overlap or touch are one, with their highest score.

    Empty intervals cover nothing and leave no trace.
    """
    order = np.flatnonzero(ends > starts)
    order = order[np.argsort(starts[order], kind="stable")]
    starts, reached, scores = starts[order], np.maximum.accumulate(ends[order]), scores[order]
    if not len(starts):
        return Intervals(starts, reached, scores)
    firsts = np.flatnonzero(np.concatenate([[True], starts[1:] > reached[:-1]]))
    lasts = np.append(firsts[1:], len(starts)) - 1
    return Intervals(starts[firsts], reached[lasts], np.maximum.reduceat(scores, firsts))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """The time that both cover, with the scores of `a`."""
    first = np.searchsorted(b.ends, a.starts, side="right")
    counts = np.maximum(np.searchsorted(b.starts, a.ends, side="left") - first, 0)
    mine = np.repeat(np.arange(len(a.starts)), counts)
    theirs = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts) + first[mine]
    starts = np.maximum(a.starts[mine], b.starts[theirs])
    return Intervals(starts, np.minimum(a.ends[mine], b.ends[theirs]), a.scores[mine])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """The time that `a` covers and `b` does not, with the scores of `a`."""
    return intersect(a, complement(b))


def complement(a: Intervals) -> Intervals:
    """All time that `a` does not cover, from minus to plus infinity; scores 1."""
    starts, ends = np.concatenate([[-np.inf], a.ends]), np.concatenate([a.starts, [np.inf]])
    return Intervals(starts, ends, np.ones(len(starts)))


def by_label(
    first: Columns, second: Columns, operation: Callable[[Intervals, Intervals], Intervals] | None = None
) -> Columns:
    """`operation` on what each label of `first` covers there and in `second`, all labels together by start.

    Without an operation, what it covers in `first`.
    """
    parts = [Columns(first.starts[:0], first.ends[:0], first.labels[:0], first.scores[:0])]
    for label in sorted(set(first.labels.tolist())):
        mine, theirs = (
            merge(*(column[part.labels == label] for column in (part.starts, part.ends, part.scores)))
            for part in (first, second)
        )
        starts, ends, scores = mine if operation is None else operation(mine, theirs)
        parts.append(Columns(starts, ends, as_labels([label] * len(starts)), scores))
    starts, ends, labels, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((ends, starts))
    return Columns(starts[order], ends[order], labels[order], scores[order])


def lanes(starts: Floats, ends: Floats) -> NDArray[np.intp]:
    """The lane of each interval (N,): the first one that is free when it begins, so that no two in a lane overlap."""
    chosen = np.zeros(len(starts), np.intp)
    busy_until: list[float] = []
    for row in np.lexsort((ends, starts)).tolist():
        lane = next((i for i, until in enumerate(busy_until) if until <= starts[row]), len(busy_until))
        busy_until[lane : lane + 1] = [float(ends[row])]
        chosen[row] = lane
    return chosen
