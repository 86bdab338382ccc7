"""tIoU, and the pairs of segments that have enough of it, without looking at all pairs there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
Booleans = NDArray[np.bool_]

AT_ONCE = 2**20  # pairs that are compared in one array
ROUNDING = 1 + 1e-6  # of a comparison of lengths that only says which pairs to look at


def tiou(starts_a: ArrayLike, ends_a: ArrayLike, starts_b: ArrayLike, ends_b: ArrayLike) -> Floats:
    """Intersection over union of every pair of segments: (N,), (N,), (M,), (M,) -> (N, M). Zero length: 0."""
    starts_a, ends_a = (np.asarray(column, np.float64).reshape(-1, 1) for column in (starts_a, ends_a))
    starts_b, ends_b = (np.asarray(column, np.float64).reshape(1, -1) for column in (starts_b, ends_b))
    intersection = np.minimum(ends_a, ends_b) - np.maximum(starts_a, starts_b)
    union = (ends_a - starts_a) + (ends_b - starts_b) - intersection
    return np.divide(intersection, union, out=np.zeros_like(intersection), where=intersection > 0)


@dataclass(frozen=True, eq=False)
class Pool:
    """The segments of many videos as parallel arrays of length N; `labels` and `videos` are indices into the names."""

    starts: Floats
    ends: Floats
    scores: Floats
    labels: Integers
    videos: Integers

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: Integers | Booleans) -> Pool:
        return Pool(self.starts[rows], self.ends[rows], self.scores[rows], self.labels[rows], self.videos[rows])


def overlapping_pairs(
    detections: Pool, truth: Pool, smallest: float, same_class: bool = True
) -> tuple[Integers, Integers, Floats]:
    """Pairs of the same video (and class) with at least the `smallest` tIoU (> 0): detection rows, truth rows, tIoU."""
    found = [(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))]
    for rows, columns in near_pairs(detections, truth, smallest, same_class):
        starts, ends = detections.starts[rows], detections.ends[rows]
        intersection = np.minimum(ends, truth.ends[columns]) - np.maximum(starts, truth.starts[columns])
        union = (ends - starts) + (truth.ends[columns] - truth.starts[columns]) - intersection
        overlap = np.divide(intersection, union, out=np.zeros_like(intersection), where=intersection > 0)
        enough = overlap >= smallest
        found.append((rows[enough], columns[enough], overlap[enough]))
    rows, columns, overlaps = (np.concatenate(part) for part in zip(*found, strict=True))
    return rows, columns, overlaps


def near_pairs(
    detections: Pool, truth: Pool, smallest: float, same_class: bool = True
) -> Iterator[tuple[Integers, Integers]]:
    """Pairs, in pieces, among which are all that `overlapping_pairs` asks for, and not many more.

    Two segments share at most the shorter one, so their lengths differ by a factor of 1 / smallest at most. Instances
    are taken by octaves of length: within one of them, those that may overlap a detection follow each other by start.
    """
    videos = 1 + max(int(pool.videos.max(initial=0)) for pool in (detections, truth))
    groups = [pool.labels * videos * same_class + pool.videos for pool in (detections, truth)]
    lengths = detections.ends - detections.starts
    lasting = np.flatnonzero(truth.ends > truth.starts)
    octaves = np.frexp(truth.ends[lasting] - truth.starts[lasting])[1]
    for octave in np.unique(octaves).tolist():
        shortest, longest = np.ldexp(0.5, octave), np.ldexp(1.0, octave)
        alike = (lengths * ROUNDING >= smallest * shortest) & (lengths * smallest <= longest * ROUNDING)
        rows, columns = np.flatnonzero(alike & (lengths > 0)), lasting[octaves == octave]
        # Complex numbers are sorted by their real part, here the group, then by the imaginary one, the start.
        places = groups[1][columns] + 1j * truth.starts[columns]
        order = np.argsort(places, kind="stable")
        columns, places = columns[order], places[order]
        low = np.searchsorted(places, groups[0][rows] + 1j * (detections.starts[rows] - longest))
        high = np.searchsorted(places, groups[0][rows] + 1j * detections.ends[rows])
        yield from _pieces(rows, columns, low, np.maximum(high, low))


def _pieces(rows: Integers, columns: Integers, low: Integers, high: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Each row (N,) with each of `columns[low:high]` (N,)."""
    counts = high - low
    total = np.cumsum(counts)
    most = int(total[-1]) if len(total) else 0
    first = 0
    for last in (1 + np.searchsorted(total, np.arange(AT_ONCE, most + AT_ONCE, AT_ONCE))).tolist():
        part = slice(first, last)
        here = counts[part]
        within = np.arange(int(here.sum())) - np.repeat(np.cumsum(here) - here, here)
        if len(within):
            yield np.repeat(rows[part], here), columns[np.repeat(low[part], here) + within]
        first = last
