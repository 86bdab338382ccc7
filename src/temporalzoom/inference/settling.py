"""Suppression while a recording goes on: what nothing later can change is decided and leaves; the rest waits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import InferenceConfig
from temporalzoom.inference.nms import Crowd, Earlier, select_greedily, tolerated, vote

Floats = NDArray[np.float64]


class ReachesBack(Exception):
    """Something depends on what was forgotten already: more has to be kept."""


class Boxes(NamedTuple):
    """Segments in seconds before suppression, (N,) each. raw: scores before they were weighed; order: see `Rows`."""

    starts: Floats
    ends: Floats
    scores: Floats
    labels: NDArray[np.int32]
    positions: Floats
    raw: NDArray[np.float32]
    order: NDArray[np.int64]

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Boxes:
        return Boxes(*(column[rows] for column in self))  # type: ignore[arg-type]

    def best_first(self) -> NDArray[np.intp]:
        """Rows by score, then by score before weighing, then as they came."""
        return np.lexsort((self.order, -self.raw, -self.scores))


class Settled(NamedTuple):
    """What was selected, with the scores it has now and the ends that were voted for, best first; cut: the highest
    score that the limit left out."""

    boxes: Boxes
    scores: Floats
    cut: float


class Settling:
    """`suppress_in_time` of boxes that come in order of time, bit for bit, in memory that does not grow with time.

    A segment is decided when its turn has come whatever follows: all that overlaps it, and all that shares the limit
    with it, is known, and whatever of this comes before it is decided. Segments that wait hold up only those that come
    after them and near them, so that decisions lag behind by a stretch that does not depend on the recording's length.
    """

    def __init__(self, options: InferenceConfig, duration: float) -> None:
        assert options.limit_span is not None
        self.options, self.duration, self.span = options, duration, options.limit_span
        self.is_soft = options.suppression in ("soft", "bmn")
        self.waiting: Boxes | None = None
        self.voters: Boxes | None = None  # all that may overlap what is selected from now on; None without voting
        self.left: Floats = np.empty(0)  # what suppression left of their scores
        self.parts: list[tuple[Boxes, Floats]] = []
        self.recent: tuple[Boxes, Floats] | None = None  # selected, and near enough to count for a limit
        self.closed = -np.inf  # seconds: nothing that comes may begin before
        self.cut = -np.inf

    def add(self, boxes: Boxes) -> None:
        if len(boxes.starts) and boxes.starts.min() < self.closed:
            raise ReachesBack
        self.left = np.concatenate([self.left, boxes.scores])
        self.waiting = boxes if self.waiting is None else joined_boxes([self.waiting, boxes])
        if self.options.voting is not None:
            self.voters = boxes if self.voters is None else joined_boxes([self.voters, boxes])

    def settle(self, closed: float, frontier: float) -> None:
        """Decide what can be. closed: in seconds, whatever is still to come begins here or later; frontier: and stands
        at this position or later. Infinity: nothing is to come."""
        if self.waiting is None:
            return
        self.closed = max(self.closed, closed)
        options, boxes = self.options, self.waiting
        enough = self.left >= options.min_score
        boxes, left = boxes.take(enough), self.left[enough]
        order = np.lexsort((boxes.starts, boxes.labels))
        boxes, left = boxes.take(order), left[order]
        rank, earlier = self._ranked(boxes)
        picked, scores, cut, undecided = select_greedily(
            boxes.starts, boxes.ends, left, boxes.labels.astype(np.intp), rank,
            Crowd(options.max_segments, boxes.positions, self.span, earlier, frontier),
            options.sigma if self.is_soft else None,
            1.0 if options.suppression == "none" else options.tiou_threshold,
            options.min_score,
            tolerated(boxes.ends - boxes.starts, self.duration) if options.suppression == "bmn" else None,
            None if np.isinf(frontier) else boxes.ends > self.closed,
        )  # fmt: skip
        self.cut = max(self.cut, cut)
        decided = boxes.take(picked)
        self.parts.append((self._voted(decided), scores))
        waits = np.flatnonzero(np.isfinite(undecided))
        self.waiting, self.left = boxes.take(waits), undecided[waits]
        if self.voters is not None:
            self.voters = self.voters.take(self.voters.ends > self.waiting.starts.min(initial=self.closed))
        self._forget(decided, scores, min(frontier, float(self.waiting.positions.min(initial=np.inf))))

    def _voted(self, decided: Boxes) -> Boxes:
        """With the ends that all that overlap them vote for: what is decided has no others to come."""
        if self.voters is None or self.options.voting is None:
            return decided
        voters = self.voters.take(self.voters.best_first())
        by_order = np.argsort(voters.order)
        kept = by_order[np.searchsorted(voters.order, decided.order, sorter=by_order)]
        labels = voters.labels.astype(np.intp)
        starts, ends = vote(voters.starts, voters.ends, voters.scores, labels, kept, self.options.voting)
        return decided._replace(starts=starts, ends=ends)

    def _ranked(self, boxes: Boxes) -> tuple[NDArray[np.intp], Earlier | None]:
        """Of ties the lowest rank comes first: among the boxes, and among those with what was selected before."""
        both = boxes if self.recent is None else joined_boxes([boxes, self.recent[0]])
        rank = np.empty(len(both.starts), np.intp)
        rank[both.best_first()] = np.arange(len(rank))
        if self.recent is None:
            return rank, None
        before, scores = self.recent
        mine, theirs = rank[: len(boxes.starts)], rank[len(boxes.starts) :]
        by_score = np.lexsort((theirs, -scores))
        return mine, Earlier(before.positions[by_score], scores[by_score], theirs[by_score])

    def _forget(self, decided: Boxes, scores: Floats, first: float) -> None:
        """Keep in mind what was selected within the span of `first` or later."""
        near, left = decided, scores
        if self.recent is not None:
            near, left = joined_boxes([self.recent[0], decided]), np.concatenate([self.recent[1], scores])
        stays = near.positions >= first - self.span
        self.recent = near.take(stays), left[stays]

    def finish(self) -> Settled:
        self.settle(np.inf, np.inf)
        boxes = joined_boxes([boxes for boxes, _ in self.parts])
        scores = np.concatenate([scores for _, scores in self.parts])
        best = np.lexsort((boxes.order, -boxes.raw, -boxes.scores, -scores))
        return Settled(boxes.take(best), scores[best], self.cut)


def joined_boxes(parts: list[Boxes]) -> Boxes:
    return Boxes(*map(np.concatenate, zip(*parts, strict=True)))
