"""Soft labels from annotations and from what a teacher found: instances with scores from 0 to 1.

An annotated instance that the teacher sees has a score of 1, one that it doubts has less; and what it finds where
nothing is annotated is held against nobody as strongly as the teacher believes in it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from temporalzoom.metrics.matching import Matching, Pool, match_detections
from temporalzoom.segments import Segments

SHARE = 0.5  # of the teacher's word, in scores and in ends; the rest is the annotation's
SAME = 0.5  # tIoU from which on a detection is that of an instance
LEAST = 0.2  # trust in a detection that becomes an instance
FREE = 0.1  # share of such a detection that may lie in other instances

Floats = NDArray[np.float64]


def soften(truth: Mapping[str, Segments], judged: Mapping[str, Segments], share: float = SHARE) -> dict[str, Segments]:
    """Instances by recording; their scores are what class scores are to become.

    Args:
        truth: annotated instances; at least one.
        judged: what the teacher found in the same recordings.
        share: of the teacher's word, from 0 to 1; at 0 the annotations come back.

    The teacher's scores count relative to the usual, the median of those that find an instance of their class, and as 1
    at most: a teacher that is never sure is not to teach low scores. With this r of its detection, or 0, an annotated
    instance has the score `1 - share + share * r`. All else the teacher has to earn, with the precision p, the share of
    its detections of that class with at least that score that find an instance: the ends of an annotated instance move
    by `share * r * p` toward those of the detection (instances with equal times stay where they are: they are one place
    with several labels), and a detection where nothing is annotated becomes an instance with the score `share * r * p`.
    One in an annotated instance does not: it is a worse guess at that, and, being shorter, would take its positions.
    """
    matching = match_detections(truth, {name: judged.get(name, Segments.empty()) for name in truth}, [SAME])
    relative, trusted = relative_scores(matching), trust(matching)
    instances, detections = _blended(matching, share, relative, trusted), matching.detections
    possible = (matching.found[0] < 0) & (trusted >= LEAST) & (share > 0) & (detections.ends > detections.starts)
    names, soft = np.array(matching.classes, np.str_), {}
    for index, name in enumerate(matching.videos):
        mine = instances[instances.videos == index]
        rows = np.flatnonzero(possible & (detections.videos == index))
        rows = rows[np.argsort(-trusted[rows], kind="stable")]
        rows = rows[_where_free(matching.truth[matching.truth.videos == index], detections[rows])]
        more = detections[rows]
        soft[name] = Segments(
            np.append(mine.starts, more.starts),
            np.append(mine.ends, more.ends),
            names[np.append(mine.labels, more.labels)],
            np.append(mine.scores, share * trusted[rows]),
        )
    return soft


def relative_scores(matching: Matching) -> Floats:
    """(N,) of the detections, 0 to 1: their scores over the median of those that found an instance of their class."""
    scores, labels = matching.detections.scores, matching.detections.labels
    hit = (matching.found[0] >= 0) & (scores > 0)
    usual = np.ones(len(matching.classes))
    for label in np.unique(labels[hit]):
        usual[label] = np.median(scores[hit & (labels == label)])
    return np.minimum(scores, usual[labels]) / usual[labels]


def trust(matching: Matching) -> Floats:
    """(N,) of the detections, 0 to 1: their relative scores times the precision of their class at their score."""
    scores, labels = matching.detections.scores, matching.detections.labels
    precision = np.zeros(len(scores))
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)  # highest score first
        count = np.searchsorted(-scores[rows], -scores[rows], side="right")  # with at least this score
        precision[rows] = np.cumsum(matching.found[0, rows] >= 0)[count - 1] / count
    return relative_scores(matching) * precision


def _blended(matching: Matching, share: float, relative: Floats, trusted: Floats) -> Pool:
    """The annotated instances with their scores, and with their ends moved. relative, trusted: (N,) of detections."""
    instances, detections, found = matching.truth, matching.detections, matching.found[0]
    hit = found >= 0
    detected, scores = found[hit], np.full(len(instances), 1 - share)
    scores[detected] += share * relative[hit]
    times = np.stack([instances.videos, instances.starts, instances.ends], axis=1)
    _, place, count = np.unique(times, axis=0, return_inverse=True, return_counts=True)
    move = np.where(count[place.reshape(-1)] == 1, share, 0.0)[detected] * trusted[hit]
    starts, ends = instances.starts.copy(), instances.ends.copy()
    starts[detected] += move * (detections.starts[hit] - starts[detected])
    ends[detected] += move * (detections.ends[hit] - ends[detected])
    return Pool(starts, np.maximum(starts, ends), np.minimum(scores, 1.0), instances.labels, instances.videos)


def _where_free(taken: Pool, candidates: Pool) -> list[int]:
    """Of candidates in one recording, those that hardly lie in others: in what is taken, and in earlier candidates."""
    starts, ends, kept = list(taken.starts), list(taken.ends), []
    for row, (start, end) in enumerate(zip(candidates.starts, candidates.ends, strict=True)):
        shared = np.minimum(ends, end) - np.maximum(starts, start)
        if np.maximum(shared, 0.0).sum() <= FREE * (end - start):
            kept.append(row)
            starts.append(start)
            ends.append(end)
    return kept
