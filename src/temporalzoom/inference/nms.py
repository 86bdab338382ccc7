"""Suppression of duplicate detections: class-wise soft or hard non-maximum suppression of 1-D segments, in numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.inference.limits import is_one_neighbourhood
from temporalzoom.metrics.pairs import tiou

Floats = NDArray[np.float64]

BLOCK = 2048  # candidates of which the highest score is kept
_GONE = -np.inf  # the score of a candidate that was selected or suppressed
TINY = np.finfo(np.float64).tiny
# Voting: the most pairs whose tIoU is computed in one matrix; with more of them, segments of one batch.
WHOLE, GROUP = 2**21, 256
# Method `bmn`: the tIoU above which a segment of no width, and one as wide as the recording, weaken others
LOW, HIGH = 0.5, 0.9


def suppress(
    starts: ArrayLike,
    ends: ArrayLike,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    method: Literal["soft", "hard", "none", "bmn"] = "soft",
    sigma: float = 0.5,
    tiou_threshold: float = 0.5,
    min_score: float = 0.001,
    max_segments: int | None = 200,
    duration: float | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Select segments greedily by score; a selected segment weakens the others of its class that overlap it.

    starts, ends, scores: `(N,)` floats; labels: `(N,)` integers.
    Returns the selected indices `(M,)` and their scores `(M,)`, highest first; ties keep the order of the input.

    - `soft`: Gaussian soft-NMS, `score *= exp(-tIoU² / sigma)`, for every overlap however small (`tiou_threshold` is
      not used). As in the field's detectors, except that the tIoU is exact: they add 1e-6 to each length.
    - `hard`: candidates with a tIoU above `tiou_threshold` are removed, scores stay.
    - `bmn`: as `soft`, but only above a tIoU that grows with the selected segment's share of the recording's `duration`
      (None: from the first start to the last end), from 0.5 to 0.9: long segments tolerate neighbours that are alike.
      Published with a sigma of 0.4.
    - `none`: filter and sort only.

    Candidates whose score is, or falls, below `min_score` are dropped; `max_segments` limits the total of all classes.
    """
    nowhere = np.zeros(len(np.atleast_1d(np.asarray(starts))))
    kept, left, _ = suppress_in_time(
        starts, ends, scores, labels, nowhere, method=method, sigma=sigma, tiou_threshold=tiou_threshold,
        min_score=min_score, max_segments=max_segments, duration=duration, span=None,
    )  # fmt: skip
    return kept, left


def suppress_in_time(
    starts: ArrayLike,
    ends: ArrayLike,
    scores: ArrayLike,
    labels: ArrayLike,
    positions: Floats | None,
    *,
    method: Literal["soft", "hard", "none", "bmn"],
    sigma: float,
    tiou_threshold: float,
    min_score: float,
    max_segments: int | None,
    duration: float | None,
    span: float | None,
) -> tuple[NDArray[np.intp], NDArray[np.float64], float]:
    """As `suppress`, but `max_segments` holds within `span` positions to either side; None: everywhere together.

    positions: (N,) whole numbers, where the segments stand. A segment that finds as many better ones selected around
    it is left out and weakens no other: so what is selected somewhere depends on its surroundings alone, and of a
    recording no longer than the span the best are left, as ever. Third result: the highest score that was left out for
    this limit, -inf if none was.
    """
    starts, ends, scores, labels = _checked(starts, ends, scores, labels)
    if method not in ("soft", "hard", "none", "bmn"):
        raise ValueError(f"method must be 'soft', 'hard', 'bmn' or 'none', not {method!r}")
    if duration is not None and not duration > 0:
        raise ValueError(f"duration must be positive, got {duration!r}")
    if not sigma > 0:
        raise ValueError(f"sigma must be positive, got {sigma!r}")
    if not min_score >= 0:
        raise ValueError(f"min_score must not be negative, got {min_score!r}")
    if max_segments is not None and max_segments < 0:
        raise ValueError(f"max_segments must not be negative, got {max_segments!r}")

    candidates = np.flatnonzero(scores >= min_score)
    limit = len(candidates) if max_segments is None else max_segments
    if is_one_neighbourhood(positions, span):
        positions = None
    if method == "none" and positions is None:
        order = candidates[np.argsort(-scores[candidates], kind="stable")]
        cut = float(scores[order[limit]]) if len(order) > limit else -np.inf
        return order[:limit], scores[order[:limit]], cut
    order = candidates[np.lexsort((starts[candidates], labels[candidates]))]
    floors = None
    if method == "bmn" and len(order):
        duration = float(ends.max() - starts.min()) if duration is None else duration
        floors = tolerated(ends[order] - starts[order], duration)
    crowd = Crowd(limit, None if positions is None else positions[order], span)
    picked, picked_scores, cut, _ = select_greedily(
        starts[order], ends[order], scores[order], labels[order], order, crowd,
        sigma if method in ("soft", "bmn") else None, 1.0 if method == "none" else tiou_threshold, min_score, floors,
    )  # fmt: skip
    return order[picked], picked_scores, cut


def tolerated(lengths: Floats, duration: float) -> Floats:
    """Of method `bmn`: the tIoU (N,) above which segments of these lengths (N,) weaken others."""
    return LOW + (HIGH - LOW) * np.minimum(lengths / max(duration, np.finfo(np.float64).tiny), 1.0)


def _checked(
    starts: ArrayLike, ends: ArrayLike, scores: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """The four columns as arrays; what has no meaning (NaN, an end before its start) is an error, not a result."""
    columns = [np.asarray(column, np.float64) for column in (starts, ends, scores)]
    classes = np.asarray(labels)
    shapes = [column.shape for column in (*columns, classes)]
    if len(set(shapes)) != 1 or len(shapes[0]) != 1:
        raise ValueError(f"starts, ends, scores and labels must be vectors of one length, got shapes {shapes}")
    if classes.size and not np.issubdtype(classes.dtype, np.integer):
        raise ValueError(f"labels must be integers, got {classes.dtype}")
    for name, column in zip(("starts", "ends", "scores"), columns, strict=True):
        if not np.isfinite(column).all():
            raise ValueError(f"{name} must be finite, got {column[~np.isfinite(column)][0]}")
    if (columns[1] < columns[0]).any():
        raise ValueError("a segment ends before it starts")
    return columns[0], columns[1], columns[2], classes.astype(np.intp)


def select_greedily(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    scores: NDArray[np.float64],
    labels: NDArray[np.intp],
    rank: NDArray[np.intp],
    crowd: Crowd,
    sigma: float | None,
    tiou_threshold: float,
    min_score: float,
    floors: NDArray[np.float64] | None,
    open_ends: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.float64], float, NDArray[np.float64]]:
    """Greedy selection from `(N,)` columns that are sorted by class, then start; `rank` decides ties. No sigma: hard.

    floors: `(N,)`, the tIoU that others must exceed for a segment to weaken them; None: any does. open_ends: `(N,)`,
    segments that may overlap some that are not known yet; None: all are known.
    Returns the rows selected, their scores, the highest score that the limit left out, and `(N,)` the scores so far of
    rows that cannot be judged yet, -inf for all others.

    One loop serves all classes: decay never raises a score, so the best candidate of all classes together is also the
    next of the merged result, and the loop may stop at a limit. Since the columns are sorted, whatever overlaps a
    segment lies in one slice around it, found once beforehand: a step touches that slice, and looks for the best among
    the maxima of blocks, so that steps do not grow with the recording.
    """
    scores = scores.copy()
    lows, highs = _overlap_slices(starts, ends, labels)
    waits = None if open_ends is None else _waiting(open_ends, lows, highs, sigma)
    undecided = np.full(len(scores), _GONE)
    picked: list[int] = []
    picked_scores: list[float] = []
    cut = -np.inf
    maxima = np.maximum.reduceat(scores, np.arange(0, len(scores), BLOCK)) if len(scores) else scores
    with np.errstate(invalid="ignore"):  # 0 * _GONE, where a decay underflows, is NaN and stays gone below
        while len(scores):
            best, score = _best(scores, maxima, rank)
            if score == _GONE:
                break
            crowd.pass_earlier(score, int(rank[best]))
            if crowd.is_full_at(best) and (waits is None or not waits[best] or score <= cut):
                cut = max(cut, score)
                if crowd.positions is None:
                    break
                crowded = slice(best // BLOCK * BLOCK, (best // BLOCK + 1) * BLOCK)
                scores[crowded][crowd.is_full(crowded)] = _GONE
                maxima[best // BLOCK] = scores[crowded].max()
                continue
            low, high = int(lows[best]), int(highs[best])
            near, start, end = slice(low, high), starts[best], ends[best]
            if waits is not None and (waits[best] or crowd.may_be_full_at(best)):
                undecided[best], scores[best] = score, _GONE
                crowd.add_doubtful(best)
                # All that it would weaken waits, and, as products are rounded, all that would weaken one of those next
                met = low + np.flatnonzero((scores[near] > _GONE) & (ends[near] > start) & (starts[near] < end))
                waits[met] = True
                if sigma is not None and len(met):
                    waits[lows[met].min() : highs[met].max()] = True
                block = best // BLOCK
                maxima[block] = scores[block * BLOCK : (block + 1) * BLOCK].max()
                continue
            picked.append(best)
            picked_scores.append(score)
            crowd.add(best)
            scores[best] = _GONE

            overlap = np.minimum(ends[near], end)
            overlap -= np.maximum(starts[near], start)
            np.maximum(overlap, 0.0, out=overlap)
            # Not quite zero, so that two points in one place have tIoU 0 and not 0/0; other unions are unchanged by it
            lengths = np.maximum(ends[near] - starts[near], TINY)
            tiou = overlap / (lengths + max(end - start, TINY) - overlap)
            weakened = scores[near]  # a view: changes go into `scores`
            if sigma is None:
                weakened[tiou > tiou_threshold] = _GONE
            else:
                decay = np.exp(tiou * tiou / -sigma)
                weakened *= decay if floors is None else np.where(tiou > floors[best], decay, 1.0)
                weakened[~(weakened >= min_score)] = _GONE
            if len(maxima) > 1:
                # A segment of no length is in no slice, not even in its own.
                for block in {best // BLOCK, *range(low // BLOCK, -(-high // BLOCK))}:
                    maxima[block] = scores[block * BLOCK : (block + 1) * BLOCK].max()
    return np.array(picked, np.intp), np.array(picked_scores), cut, undecided


def _waiting(
    open_ends: NDArray[np.bool_], lows: NDArray[np.int32], highs: NDArray[np.int32], sigma: float | None
) -> NDArray[np.bool_]:
    """Whom segments that are not known yet may weaken, `(N,)`; with soft suppression also whoever overlaps such a one:
    it would have to wait for its turn, because products are rounded."""
    if sigma is None:
        return open_ends.copy()
    edges = np.zeros(len(open_ends) + 1, np.intp)
    np.add.at(edges, lows[open_ends], 1)
    np.add.at(edges, highs[open_ends], -1)
    return open_ends | (np.cumsum(edges[:-1]) > 0)


class Earlier(NamedTuple):
    """What was selected before: positions, scores and ranks (M,) each, by descending score, then rank."""

    positions: Floats
    scores: Floats
    rank: NDArray[np.intp]


class Crowd:
    """How many segments are selected around each position, and where that is as many as may be.

    positions: (N,) of the candidates, whole numbers; None: the limit is one of all of them together. earlier: counted
    each when its turn has come. frontier: from here on there may be candidates that are not known yet.
    """

    def __init__(
        self,
        limit: int,
        positions: Floats | None,
        span: float | None,
        earlier: Earlier | None = None,
        frontier: float = np.inf,
    ) -> None:
        self.limit, self.positions, self.total, self.passed = limit, None, 0, 0
        self.earlier = earlier
        if positions is not None and span is not None:
            known = positions if earlier is None else np.concatenate([positions, earlier.positions])
            self.base, self.frontier = int(known.min(initial=np.inf) if len(known) else 0), frontier
            self.positions, self.span = (positions - self.base).astype(np.int32), int(span)
            self.counts = np.zeros(int(known.max(initial=self.base)) - self.base + 1, np.int32)
            self.doubtful = np.zeros_like(self.counts)

    def pass_earlier(self, score: float, rank: int) -> None:
        """Count what was selected before and comes before this score and rank."""
        if self.earlier is None:
            return
        places, scores, ranks = self.earlier
        while self.passed < len(scores) and (-scores[self.passed], ranks[self.passed]) < (-score, rank):
            self._count(self.counts, int(places[self.passed]) - self.base)
            self.passed += 1

    def _count(self, counts: NDArray[np.int32], at: int) -> None:
        counts[max(at - self.span, 0) : at + self.span + 1] += 1

    def add(self, row: int) -> None:
        self.total += 1
        if self.positions is not None:
            self._count(self.counts, int(self.positions[row]))

    def add_doubtful(self, row: int) -> None:
        """It may be selected or not."""
        assert self.positions is not None
        self._count(self.doubtful, int(self.positions[row]))

    def is_full_at(self, row: int) -> bool:
        there = self.total if self.positions is None else self.counts[self.positions[row]]
        return bool(there >= self.limit)

    def may_be_full_at(self, row: int) -> bool:
        assert self.positions is not None
        at = self.positions[row]
        return bool(at + self.base + self.span >= self.frontier or self.counts[at] + self.doubtful[at] >= self.limit)

    def is_full(self, rows: slice) -> NDArray[np.bool_]:
        assert self.positions is not None
        return self.counts[self.positions[rows]] >= self.limit


def _best(scores: Floats, maxima: Floats, rank: NDArray[np.intp]) -> tuple[int, float]:
    """Row and value of the highest score; of equal ones that of the lowest rank. maxima: of each block, if several."""
    if len(maxima) <= 1:
        best = int(scores.argmax())
        score = scores[best]
        ties = (scores == score).nonzero()[0]
    else:
        score = maxima.max()
        blocks = (maxima == score).nonzero()[0] * BLOCK
        ties = np.concatenate([first + (scores[first : first + BLOCK] == score).nonzero()[0] for first in blocks])
        best = int(ties[0])
    if len(ties) > 1 and score != _GONE:
        best = int(ties[rank[ties].argmin()])
    return best, float(score)


def _overlap_slices(
    starts: NDArray[np.float64], ends: NDArray[np.float64], labels: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For each segment the slice `[low, high)` of its class that holds every segment overlapping it.

    Columns are sorted by class, then start. Inside the slice some segments may still not overlap (short ones before a
    long one); outside it none does.
    """
    lows, highs = np.empty(len(starts), np.int32), np.empty(len(starts), np.int32)
    borders = np.flatnonzero(np.diff(labels)) + 1
    for first, last in zip([0, *borders], [*borders, len(starts)], strict=True):
        rows = slice(first, last)
        # the latest end so far is sorted even though the ends are not
        lows[rows] = first + np.searchsorted(np.maximum.accumulate(ends[rows]), starts[rows], side="right")
        highs[rows] = first + np.searchsorted(starts[rows], ends[rows], side="left")
    return lows, highs


def vote(
    starts: Floats, ends: Floats, scores: Floats, labels: NDArray[np.intp], kept: NDArray[np.intp], threshold: float
) -> tuple[Floats, Floats]:
    """Starts and ends of the selected segments, (M,) each: means over the candidates of their class that overlap them.

    starts, ends, scores, labels: (N,), all candidates before suppression; kept: (M,) indices of the selected ones. A
    candidate with at least `threshold` tIoU votes with the weight score * tIoU; so does the segment itself.
    """
    voted_starts, voted_ends = np.empty(len(kept)), np.empty(len(kept))
    for group, members in _near_groups(starts, ends, kept):
        mine = kept[group]
        overlap = tiou(starts[mine], ends[mine], starts[members], ends[members])
        weight = overlap * scores[members] * (overlap >= threshold) * (labels[mine][:, None] == labels[members])
        weight[np.arange(len(mine)), np.searchsorted(members, mine)] = np.maximum(scores[mine], TINY)
        # One vote after the other: the last bits of a mean do not depend on who else was looked at.
        voted, voter = np.nonzero(weight)
        share, by = weight[voted, voter], members[voter]
        total, start, end = (
            np.bincount(voted, weights=values, minlength=len(mine))
            for values in (share, share * starts[by], share * ends[by])
        )
        voted_starts[group], voted_ends[group] = start / total, end / total
    return voted_starts, voted_ends


def _near_groups(
    starts: Floats, ends: Floats, kept: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Groups of the selected segments, as indices into `kept` (M,), each with all candidates that touch one of it,
    ascending: no matrix is larger than a group times its surroundings. Few of them are one group."""
    if len(kept) * len(starts) <= WHOLE:
        yield np.arange(len(kept)), np.arange(len(starts))
        return
    by_start = np.argsort(starts, kind="stable")
    reached = np.maximum.accumulate(ends[by_start])
    order = np.argsort(starts[kept], kind="stable")
    for first in range(0, len(order), GROUP):
        group = order[first : first + GROUP]
        low = np.searchsorted(reached, starts[kept[group]].min())
        high = np.searchsorted(starts[by_start], ends[kept[group]].max(), side="right")
        yield group, np.sort(by_start[low:high])
