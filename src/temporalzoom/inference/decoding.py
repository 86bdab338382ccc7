"""Raw outputs of one sequence -> segments: candidates, refinement, suppression, seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporalzoom.bdr import assumed_box_variance, refine_segments
from temporalzoom.config import InferenceConfig
from temporalzoom.inference.candidates import Candidates, Fields, Rows, joined, step_by_step
from temporalzoom.inference.fields import FieldWindow, as_distances
from temporalzoom.inference.nms import suppress_in_time, vote
from temporalzoom.inference.settling import Boxes, ReachesBack, Settling, joined_boxes
from temporalzoom.models import Outputs
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

# Where the first order says nothing any more: of segments shorter than this many positions, and of hopeless ones.
SHORTEST, LEAST_OVERLAP = 0.5, 0.05
SLICE = 2**15  # candidates that are refined at once
HORIZON = 4096  # positions; most segments reach back less
FARTHER = 8
EVERY = 4  # horizons: what waits is looked at again each time


class Decoded(NamedTuple):
    """segments: in seconds, highest score first; cut: the highest score that a limit left out, -inf if none did."""

    segments: Segments
    cut: float


def refine(candidates: Candidates, fields: Fields | None, options: InferenceConfig, first: int = 0) -> Candidates:
    """Starts and ends moved to the zeros of the distance fields; as they are, without BDR.

    An end that is moved has the variance of the field, fused with that of its box in mode `fuse`; an end for which no
    zero was found keeps that of its box. first: the position at which the fields begin.
    """
    if fields is None or options.refine == "none":
        return candidates
    distances = fields.distances.astype(np.float64, copy=False)
    # NaN, where features are so large that a network overflows, is as uncertain as can be.
    variances = np.nan_to_num(fields.log_variance[:, [0, -1]].astype(np.float64), copy=False, nan=8.0)
    np.exp(variances.clip(-8, 8, out=variances), out=variances)
    box = candidates.variances
    if box is None:
        box = assumed_box_variance(candidates.starts, candidates.ends, options.max_move)[:, None].repeat(2, 1)
    starts, ends, taken = refine_segments(
        candidates.starts,
        candidates.ends,
        distances[:, 0],
        distances[:, -1],  # of a joint field, the same
        mode=options.refine,
        max_move=options.max_move,
        min_slope=options.min_slope,
        window=options.boundary_window,
        box_variance=box,
        start_variance=variances[:, 0],
        end_variance=variances[:, 1],
        return_taken=True,
        first=first,
    )
    positions = np.arange(first, first + len(variances))
    known = np.stack([np.interp(at, positions, variances[:, side]) for side, at in enumerate((starts, ends))], 1)
    if options.refine == "fuse":
        known = 1 / (1 / known + 1 / box)
    known = np.where(taken, known, box)
    return replace(candidates, starts=starts, ends=ends, variances=known)


def certainty_of(candidates: Candidates, power: float) -> NDArray[np.float64] | float:
    """The expected tIoU to a power, (N,), by which scores are multiplied; 1 where no variances are predicted."""
    if not power or candidates.variances is None:
        return 1.0
    return expected_tiou(candidates.ends - candidates.starts, np.sqrt(candidates.variances)) ** power


def expected_tiou(lengths: NDArray[np.float64], deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is left of the overlap of segments whose ends are off by Gaussian errors, to first order.

    lengths: (N,), deviations: (N, 2) of start and end -> (N,). The mean size of a Gaussian error is sqrt(2 / pi) of its
    deviation.
    """
    lost = np.sqrt(2 / np.pi) * deviations.sum(axis=1)
    return np.clip(1 - lost / np.maximum(lengths, SHORTEST), LEAST_OVERLAP, 1.0)


def decode(
    outputs: Outputs, classes: Sequence[str], grid: TimeGrid, duration: float, options: InferenceConfig
) -> Segments:
    """Segments in seconds, highest score first. outputs: tensors of (T, ...)."""
    return decode_parts([outputs], classes, grid, duration, options).segments


def decode_parts(
    parts: Iterable[Outputs],
    classes: Sequence[str],
    grid: TimeGrid,
    duration: float,
    options: InferenceConfig,
    horizon: float = HORIZON,
) -> Decoded:
    """Of a recording whose outputs come in parts, in order of time: none of them is kept.

    horizon: how many positions a segment is expected to reach back at most. What lies farther back is decided and
    forgotten; where a segment then turns out to reach farther, the parts are asked for again, and more of them is kept.
    With parts that come only once (an iterator), everything is kept to the end.
    """
    if iter(parts) is parts:
        horizon = np.inf
    while True:
        try:
            starts, ends, numbers, scores, cut = _decoded(parts, grid, duration, options, horizon)
        except ReachesBack:
            horizon *= FARTHER
            continue
        labels = [classes[label] for label in numbers.tolist()]
        return Decoded(Segments(starts, ends, labels, scores, classes=classes), cut)


class _Selected(NamedTuple):
    """(M,) each, best first; cut: as in Decoded."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    labels: NDArray[np.int32]
    scores: NDArray[np.float64]
    cut: float


def _decoded(
    parts: Iterable[Outputs], grid: TimeGrid, duration: float, options: InferenceConfig, horizon: float
) -> _Selected:
    """Every few horizons, what can be decided is."""
    fields, settling = FieldWindow(options), None
    rows: Rows | None = None  # that are not boxes yet
    boxes: list[Boxes] = []  # that do not take part in suppression yet
    done = 0
    for step in step_by_step(parts, options):
        if options.refine != "none":
            fields.add(step.fields)
            if step.fields is not None and step.fields.boundary_logits is not None:
                horizon = np.inf  # as with `snap`, any peak may be the nearest
        rows = step.rows if rows is None else joined([rows, step.rows])
        if step.alive is not None:
            rows = rows.take(np.isin(rows.order, step.alive))
            boxes = [part.take(np.isin(part.order, step.alive)) for part in boxes]
        if step.is_last:
            fields.check(rows.candidates())
            boxes.append(_boxes(rows, fields, grid, duration, options))
            return _selected(boxes, settling, duration, options, step.cut)
        if step.length - done < EVERY * horizon:
            continue
        done = step.length
        new, rows = _ready(rows, fields)
        boxes.append(_boxes(new, fields, grid, duration, options))
        fields.forget(max(int(step.decided - 2 * horizon), 0))
        if options.limit_span is not None:
            settling = settling or Settling(options, duration)
            settling.add(joined_boxes(boxes))
            boxes = []
            waiting = rows.candidates()
            reach = waiting.starts - options.max_move * (waiting.ends - waiting.starts) - 1
            closed = reach.min(initial=step.decided - horizon)
            settling.settle(float(grid.to_seconds(closed, duration)), float(rows.positions.min(initial=step.decided)))
    raise AssertionError("the last step says that it is")


def _ready(rows: Rows, fields: FieldWindow) -> tuple[Rows, Rows]:
    """Those that can be refined by now, and the others."""
    if fields.whole() is None:
        return rows, rows.take(np.zeros(len(rows.scores), bool))
    ready = fields.ready(rows.candidates())
    return rows.take(ready), rows.take(~ready)


def _selected(
    boxes: list[Boxes], settling: Settling | None, duration: float, options: InferenceConfig, cut: float
) -> _Selected:
    """Of the last boxes, and all that were settled before."""
    last = joined_boxes(boxes)
    boxes.clear()
    if settling is not None:
        settling.add(last)
        found, scores, lost = settling.finish()
        return _Selected(found.starts, found.ends, found.labels, scores, max(cut, lost))
    last = last.take(last.best_first())
    kept, scores, lost = suppress_in_time(
        *last[:5],
        method=options.suppression,
        sigma=options.sigma,
        tiou_threshold=options.tiou_threshold,
        min_score=options.min_score,
        max_segments=options.max_segments,
        duration=duration,
        span=options.limit_span,
    )
    if options.voting is not None:
        starts, ends = vote(last.starts, last.ends, last.scores, last.labels.astype(np.intp), kept, options.voting)
    else:
        starts, ends = last.starts[kept], last.ends[kept]
    return _Selected(starts, ends, last.labels[kept], scores, max(cut, lost))


def _boxes(rows: Rows, window: FieldWindow, grid: TimeGrid, duration: float, options: InferenceConfig) -> Boxes:
    """Refined and weighed; slice by slice, as what is computed on the way takes several times the room."""
    fields = window.whole()
    if fields is not None and options.refine != "none":
        fields = as_distances(fields.map(lambda column: column.astype(np.float64)))
    parts = []
    for first in range(0, max(len(rows.scores), 1), SLICE):
        some = rows.take(np.arange(len(rows.scores))[first : first + SLICE])
        found = refine(some.candidates(), fields, options, window.first)
        scores = found.scores * certainty_of(found, options.certainty)
        starts, ends = grid.to_seconds(found.starts, duration), grid.to_seconds(found.ends, duration)
        real = ends > starts  # a box wholly outside the recording is clipped to nothing
        if options.voting is None:  # in a vote all take part
            real &= scores >= options.min_score
        parts.append(Boxes(starts, ends, scores, some.labels, found.positions, some.scores, some.order).take(real))
    return parts[0] if len(parts) == 1 else joined_boxes(parts)
