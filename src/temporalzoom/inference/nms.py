"""Suppression of duplicate detections: class-wise soft or hard non-maximum suppression of 1-D segments, in numpy."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.metrics.matching import tiou

Floats = NDArray[np.float64]

_GONE = -np.inf  # the score of a candidate that was selected or suppressed
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
    limit = len(candidates) if max_segments is None else min(max_segments, len(candidates))
    if method == "none":
        order = candidates[np.argsort(-scores[candidates], kind="stable")][:limit]
        return order, scores[order]
    order = candidates[np.lexsort((starts[candidates], labels[candidates]))]
    floors = None
    if method == "bmn" and len(order):
        duration = float(ends.max() - starts.min()) if duration is None else duration
        widths = (ends[order] - starts[order]) / max(duration, np.finfo(np.float64).tiny)
        floors = LOW + (HIGH - LOW) * np.minimum(widths, 1.0)
    picked, picked_scores = _select(
        starts[order], ends[order], scores[order], labels[order], order, limit,
        None if method == "hard" else sigma, tiou_threshold, min_score, floors,
    )  # fmt: skip
    return order[picked], picked_scores


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


def _select(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    scores: NDArray[np.float64],
    labels: NDArray[np.intp],
    rank: NDArray[np.intp],
    limit: int,
    sigma: float | None,
    tiou_threshold: float,
    min_score: float,
    floors: NDArray[np.float64] | None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Greedy selection from `(N,)` columns that are sorted by class, then start; `rank` decides ties. No sigma: hard.

    floors: `(N,)`, the tIoU that others must exceed for a segment to weaken them; None: any does.

    One loop serves all classes: decay never raises a score, so the best candidate of all classes together is also the
    next of the merged result, and the loop may stop at `limit`. Since the columns are sorted, whatever overlaps a
    segment lies in one slice around it, found once beforehand: a step touches that slice only.
    """
    scores = scores.copy()
    # Not quite zero, so that two points in one place have tIoU 0 and not 0/0; any other union is unchanged by it
    lengths = np.maximum(ends - starts, np.finfo(np.float64).tiny)
    lows, highs = _overlap_slices(starts, ends, labels)
    picked, picked_scores = np.empty(limit, np.intp), np.empty(limit)
    count = 0
    with np.errstate(invalid="ignore"):  # 0 * _GONE, where a decay underflows, is NaN and stays gone below
        while count < limit:
            best = int(scores.argmax())
            score = scores[best]
            if score == _GONE:
                break
            ties = (scores == score).nonzero()[0]
            if len(ties) > 1:
                best = int(ties[rank[ties].argmin()])
            picked[count], picked_scores[count] = best, score
            count += 1
            scores[best] = _GONE

            near = slice(lows[best], highs[best])
            overlap = np.minimum(ends[near], ends[best])
            overlap -= np.maximum(starts[near], starts[best])
            np.maximum(overlap, 0.0, out=overlap)
            tiou = overlap / (lengths[near] + lengths[best] - overlap)
            weakened = scores[near]  # a view: changes go into `scores`
            if sigma is None:
                weakened[tiou > tiou_threshold] = _GONE
            else:
                decay = np.exp(tiou * tiou / -sigma)
                weakened *= decay if floors is None else np.where(tiou > floors[best], decay, 1.0)
                weakened[~(weakened >= min_score)] = _GONE
    return picked[:count], picked_scores[:count]


def _overlap_slices(
    starts: NDArray[np.float64], ends: NDArray[np.float64], labels: NDArray[np.intp]
) -> tuple[list[int], list[int]]:
    """For each segment the slice `[low, high)` of its class that holds every segment overlapping it.

    Columns are sorted by class, then start. Inside the slice some segments may still not overlap (short ones before a
    long one); outside it none does.
    """
    lows, highs = np.empty(len(starts), np.intp), np.empty(len(starts), np.intp)
    borders = np.flatnonzero(np.diff(labels)) + 1
    for first, last in zip([0, *borders], [*borders, len(starts)], strict=True):
        rows = slice(first, last)
        # the latest end so far is sorted even though the ends are not
        lows[rows] = first + np.searchsorted(np.maximum.accumulate(ends[rows]), starts[rows], side="right")
        highs[rows] = first + np.searchsorted(starts[rows], ends[rows], side="left")
    return lows.tolist(), highs.tolist()


def vote(
    starts: Floats, ends: Floats, scores: Floats, labels: NDArray[np.intp], kept: NDArray[np.intp], threshold: float
) -> tuple[Floats, Floats]:
    """Starts and ends of the selected segments, (M,) each: means over the candidates of their class that overlap them.

    starts, ends, scores, labels: (N,), all candidates before suppression; kept: (M,) indices of the selected ones. A
    candidate with at least `threshold` tIoU votes with the weight score * tIoU; so does the segment itself.
    """
    overlap = tiou(starts[kept], ends[kept], starts, ends)
    weight = overlap * scores * (overlap >= threshold) * (labels[kept][:, None] == labels)
    weight[np.arange(len(kept)), kept] = np.maximum(scores[kept], np.finfo(np.float64).tiny)
    total = weight.sum(axis=1)
    return (weight @ starts) / total, (weight @ ends) / total
