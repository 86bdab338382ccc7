"""What of all that was found a user wants to see: sure enough, joined, long enough, without overlaps.

Pure functions on Segments, in the order in which `select` applies them. Metrics never see their results: a ranking is
scored as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from heapq import merge as merge_sorted
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import InferenceConfig, PerClass
from temporalzoom.config.per_class import layered, of_class
from temporalzoom.segments import Segments

ROUNDING = 1e-9  # seconds; 1.3 - 1.0 is 0.30000000000000004 in floating point, and a gap of 0.3


@dataclass(frozen=True)
class Selection:
    """The settings of `select`: one number for all classes, or a mapping from class to number with the key `default`
    for the others. What is 0 or False changes nothing."""

    threshold: PerClass = 0.0
    merge_gap: PerClass = 0.0
    min_length: PerClass = 0.0
    no_overlap: bool = False

    @classmethod
    def of(cls, options: InferenceConfig) -> Selection:
        """Those of a model."""
        return cls(**{field.name: getattr(options, field.name) for field in fields(cls)})

    @property
    def lowest_threshold(self) -> float:
        """Of all classes."""
        values = self.threshold.values() if isinstance(self.threshold, Mapping) else [self.threshold]
        return min(values)

    def changed(
        self,
        *,
        threshold: PerClass | None = None,
        merge_gap: PerClass | None = None,
        min_length: PerClass | None = None,
        no_overlap: bool | None = None,
    ) -> Selection:
        """With what is given. A number holds for all classes, a mapping changes the classes that it names."""
        return Selection(
            layered(self.threshold, threshold),
            layered(self.merge_gap, merge_gap),
            layered(self.min_length, min_length),
            self.no_overlap if no_overlap is None else no_overlap,
        )


def select(segments: Segments, selection: Selection, top: int | None = None) -> Segments:
    """Threshold, merging, least length, overlaps, in this order; then the `top` highest scores. Highest score first.

    A segment that was cut where it overlapped another one is measured again: none is shorter than `min_length`.
    """
    found = drop_low(segments, selection.threshold)
    found = drop_short(merge_near(found, selection.merge_gap), selection.min_length)
    if selection.no_overlap:
        found = drop_short(without_overlap(found), selection.min_length)
    found = found.sort("score")
    return found if top is None else found[:top]


def drop_low(segments: Segments, threshold: PerClass) -> Segments:
    """Those whose score reaches the threshold of their class."""
    return segments[segments.scores >= _limits(segments, threshold)]


def drop_short(segments: Segments, min_length: PerClass) -> Segments:
    """Those that last as long as their class asks for."""
    return segments[segments.durations >= _limits(segments, min_length) - ROUNDING]


def merge_near(segments: Segments, merge_gap: PerClass) -> Segments:
    """Segments of one class with at most `merge_gap` seconds between them become one, with their highest score.

    Those that overlap or touch have no gap at all, and become one too: where bouts are joined, a behaviour runs or it
    does not. The highest score, as in `Segments.union`, because suppression leaves copies of low score around a segment
    that was found surely, and a mean would count them against it. Classes whose gap is 0 stay as they are, overlaps
    too.
    """
    gaps = {str(label): of_class(merge_gap, str(label)) for label in sorted(set(segments.labels.tolist()))}
    if not any(gaps.values()):
        return segments
    parts = [segments.filter(labels=[label for label, gap in gaps.items() if not gap])]
    for label, gap in gaps.items():
        if gap:
            part = segments.filter(labels=label).sort("start")
            reached = np.maximum.accumulate(part.ends)
            firsts = np.flatnonzero(np.append(True, part.starts[1:] - reached[:-1] > gap + ROUNDING))
            lasts = np.append(firsts[1:], len(part)) - 1
            scores = np.maximum.reduceat(part.scores, firsts)
            labels = [label] * len(firsts)
            parts.append(Segments(part.starts[firsts], reached[lasts], labels, scores, classes=part.classes))
    return Segments.concatenate(parts).sort("score")


def without_overlap(segments: Segments) -> Segments:
    """The best segments of which no two overlap, whatever their classes, by start.

    Two segments exclude each other if they share at least half of the shorter one. Among all choices without such a
    pair it is one with the highest total of score x length (weighted interval scheduling, exact, O(n log n)). Slight
    overlaps that are left, as at every change from one behaviour to the next, are cut in their middle rather than
    losing one of the two: a segment loses less than a quarter of its length on either side.
    Segments are half-open: they may touch. One of zero length holds no time, so it overlaps nothing, and stays.
    """
    lasting = segments.durations > 0
    chosen = segments[lasting]
    rows = best_rows(chosen.starts, chosen.ends, chosen.scores * chosen.durations)
    chosen = chosen[rows].sort("start")
    starts, ends = chosen.starts.copy(), chosen.ends.copy()
    overlap = ends[:-1] > starts[1:]
    middles = (ends[:-1] + starts[1:]) / 2
    ends[:-1][overlap] = starts[1:][overlap] = middles[overlap]
    cut = Segments(starts, ends, chosen.labels, chosen.scores, classes=segments.classes)
    return Segments.concatenate([cut, segments[~lasting]]).sort("start")


def best_rows(starts: NDArray[np.float64], ends: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.intp]:
    """Of segments (N,) of positive length, rows with the highest total weight of which no two exclude each other.

    One may come before another if it ends before the other's middle and has its own middle before the other's start,
    which says that they share less than half of the shorter one. In a row of such segments those that are not
    neighbours do not overlap at all: between them lies the middle of another. So the best row that ends with a segment
    is that segment after the best row that may come before it. A sweep over time asks for it at every start and learns
    of a segment at its middle; what it has learnt is a prefix maximum over ends.
    """
    middles = (starts + ends) / 2
    by_end = np.sort(ends)
    known = _PrefixMaximum(len(ends))
    total, before = np.zeros(len(starts)), np.full(len(starts), -1)
    for row, is_start in _moments(starts, middles):
        if is_start:
            best, before[row] = known.below(bisect_left(by_end, middles[row]))
            total[row] = weights[row] + best
        else:
            known.add(bisect_left(by_end, ends[row]), float(total[row]), row)
    rows: list[int] = []
    row = known.below(len(ends))[1]
    while row >= 0:
        rows.append(row)
        row = int(before[row])
    return np.array(rows[::-1], np.intp)


def _moments(starts: NDArray[np.float64], middles: NDArray[np.float64]) -> Iterator[tuple[int, bool]]:
    """`(row, is it a start)` in order of time; of equal times starts first: a middle must lie before a start."""
    asked = ((starts[row], 0, row) for row in np.argsort(starts, kind="stable").tolist())
    learnt = ((middles[row], 1, row) for row in np.argsort(middles, kind="stable").tolist())
    return ((row, kind == 0) for _, kind, row in merge_sorted(asked, learnt))


class _PrefixMaximum:
    """The highest value among the first places, with whose it is; both in O(log n) (a Fenwick tree)."""

    def __init__(self, count: int) -> None:
        self.best: list[tuple[float, int]] = [(0.0, -1)] * (count + 1)

    def add(self, place: int, value: float, row: int) -> None:
        place += 1
        while place < len(self.best):
            if value > self.best[place][0]:
                self.best[place] = (value, row)
            place += place & -place

    def below(self, count: int) -> tuple[float, int]:
        """The maximum over places 0 to `count` - 1; (0, -1) if none is positive."""
        best = (0.0, -1)
        while count:
            best = max(best, self.best[count], key=lambda entry: entry[0])
            count -= count & -count
        return best


def _limits(segments: Segments, setting: PerClass) -> NDArray[np.float64]:
    """(N,) the number of each segment's class."""
    labels: list[Any] = segments.labels.tolist()
    known = {label: of_class(setting, label) for label in set(labels)}
    return np.array([known[label] for label in labels], np.float64)
