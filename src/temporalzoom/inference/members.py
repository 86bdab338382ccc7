"""Detections of several networks become one set: weighted segment fusion.

Networks that were trained on different recordings, or see time in different steps, err in different places. Where most
of them find a segment, its ends are averaged and it keeps its score; what only one of them finds falls behind.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from temporalzoom.segments import Labels, Segments, as_labels

TIOU = 0.65  # from here on segments of two members are the same instance

Floats = NDArray[np.float64]


def fuse_members(members: Sequence[Segments], tiou: float = TIOU, min_score: float = 0.0) -> Segments:
    """One set of segments, highest score first, from what each member found in a recording.

    Within a class, segments are taken by descending score. Of the clusters that have nothing of its member yet, each
    joins the one that it overlaps most, if by at least `tiou`, or founds one. The ends of a cluster are the means of
    its segments, weighted by score; its score is their sum, divided by the number of members. So every member speaks
    once about an instance: a duplicate that its suppression left over neither moves ends nor adds to a score.

    One member comes back as it is (but for its order), and so do members that all found the same.
    """
    if not members:
        return Segments.empty()
    classes = members[0].classes
    if len(members) == 1:
        alone = members[0]
        return alone[np.argsort(-alone.scores, kind="stable")].filter(min_score=min_score)
    everything = Segments.concatenate(members)
    owner = np.repeat(np.arange(len(members)), [len(member) for member in members])
    parts: list[tuple[Floats, Floats, Labels, Floats]] = []
    for label in sorted(set(everything.labels.tolist())):
        rows = np.flatnonzero(everything.labels == label)
        rows = rows[np.argsort(-everything.scores[rows], kind="stable")]
        columns = everything.starts[rows], everything.ends[rows], everything.scores[rows]
        starts, ends, scores = _fuse_class(*columns, owner[rows], len(members), tiou)
        parts.append((starts, ends, as_labels([label] * len(starts)), scores))
    if not parts:
        return Segments([], [], [], [], classes=classes)
    starts, ends, labels, scores = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] >= min_score]
    return Segments(starts[order], ends[order], labels[order], scores[order], classes=classes)


def _fuse_class(
    starts: Floats, ends: Floats, scores: Floats, owner: NDArray[np.intp], members: int, threshold: float
) -> tuple[Floats, Floats, Floats]:
    """Of one class, by descending score: (N,) each -> starts, ends and scores of the clusters, (M,) each."""
    count = len(starts)
    low, high = np.empty(count), np.empty(count)  # of the clusters
    total, spoken = np.zeros(count), np.zeros((count, members), bool)
    places: list[tuple[float, int]] = []  # (low, cluster), sorted
    found = 0
    for start, end, score, member in zip(starts.tolist(), ends.tolist(), scores.tolist(), owner.tolist(), strict=True):
        near = _near(places, start, end, threshold)
        overlap = np.minimum(high[near], end) - np.maximum(low[near], start)
        union = (high[near] - low[near]) + (end - start) - overlap
        free = (overlap > 0) & (union > 0) & ~spoken[near, member]
        shared = np.divide(overlap, union, out=np.zeros(len(near)), where=free)
        nearest = near[int(shared.argmax())] if len(near) and shared.max() >= threshold else found
        if nearest == found:
            found += 1
            low[nearest], high[nearest] = start, end
        else:
            del places[bisect_left(places, (float(low[nearest]), nearest))]
        total[nearest] += score
        spoken[nearest, member] = True
        if total[nearest] > 0:
            low[nearest] += (start - low[nearest]) * score / total[nearest]
            high[nearest] += (end - high[nearest]) * score / total[nearest]
        insort(places, (float(low[nearest]), nearest))
    return low[:found], high[:found], total[:found] / members


def _near(places: list[tuple[float, int]], start: float, end: float, threshold: float) -> list[int]:
    """The clusters whose start lies where it must for a tIoU of the threshold with the segment, in order.

    A shared part of `threshold` of the union is one of the segment too, so a cluster begins before the rest of the
    segment does; and the union is at most the segment over the threshold. A little more, for rounding.
    """
    length = end - start
    before = length * (1 / threshold - 1) * (1 + 1e-6) if threshold > 0 else float("inf")
    first = bisect_left(places, (start - before - 1e-9, -1))
    last = bisect_left(places, (end + 1e-9, -1))
    return sorted(cluster for _, cluster in places[first:last])
