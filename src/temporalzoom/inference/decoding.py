"""Raw outputs of one sequence -> segments: candidates, refinement, suppression, seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporalzoom.bdr import assumed_box_variance, refine_segments
from temporalzoom.config import InferenceConfig
from temporalzoom.inference.candidates import Candidates, Fields, Rows, collect_rows
from temporalzoom.inference.nms import suppress_in_time, vote
from temporalzoom.models import Outputs
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

# Where the first order says nothing any more: of segments shorter than this many positions, and of hopeless ones.
SHORTEST, LEAST_OVERLAP = 0.5, 0.05
SLICE = 2**15  # candidates that are refined at once


class Decoded(NamedTuple):
    """segments: in seconds, highest score first; cut: the highest score that a limit left out, -inf if none did."""

    segments: Segments
    cut: float


def refine(candidates: Candidates, fields: Fields | None, options: InferenceConfig) -> Candidates:
    """Starts and ends moved to the zeros of the distance fields; as they are, without BDR.

    An end that is moved has the variance of the field, fused with that of its box in mode `fuse`; an end for which no
    zero was found keeps that of its box.
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
    )
    positions = np.arange(len(variances))
    known = np.stack([np.interp(at, positions, variances[:, side]) for side, at in enumerate((starts, ends))], 1)
    if options.refine == "fuse":
        known = 1 / (1 / known + 1 / box)
    known = np.where(taken, known, box)
    return replace(candidates, starts=starts, ends=ends, variances=known)


def weigh_by_certainty(candidates: Candidates, power: float) -> Candidates:
    """Scores times the expected tIoU to a power, best first again; as they are where no variances are predicted."""
    if not power or candidates.variances is None:
        return candidates
    deviations = np.sqrt(candidates.variances)
    scores = candidates.scores * expected_tiou(candidates.ends - candidates.starts, deviations) ** power
    return replace(candidates, scores=scores)[np.argsort(-scores, kind="stable")]


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
    parts: Iterable[Outputs], classes: Sequence[str], grid: TimeGrid, duration: float, options: InferenceConfig
) -> Decoded:
    """Of a recording whose outputs come in parts, in order of time: none of them is kept."""
    rows, fields, cut = collect_rows(parts, options)
    boxes = _boxes(rows, fields, grid, duration, options)
    del rows, fields
    kept, scores, lost = suppress_in_time(
        *boxes,
        method=options.suppression,
        sigma=options.sigma,
        tiou_threshold=options.tiou_threshold,
        min_score=options.min_score,
        max_segments=options.max_segments,
        duration=duration,
        span=options.limit_span,
    )
    if options.voting is not None:
        starts, ends = vote(boxes.starts, boxes.ends, boxes.scores, boxes.labels.astype(np.intp), kept, options.voting)
    else:
        starts, ends = boxes.starts[kept], boxes.ends[kept]
    labels = [classes[label] for label in boxes.labels[kept].tolist()]
    return Decoded(Segments(starts, ends, labels, scores, classes=classes), max(cut, lost))


class _Boxes(NamedTuple):
    """Segments in seconds before suppression, (N,) each."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    scores: NDArray[np.float64]
    labels: NDArray[np.int32]
    positions: NDArray[np.float64]


def _boxes(rows: Rows, fields: Fields | None, grid: TimeGrid, duration: float, options: InferenceConfig) -> _Boxes:
    """Refined and weighed, best first; slice by slice, as what is computed on the way takes several times the room."""
    if fields is not None and options.refine != "none":
        fields = Fields(*(column.astype(np.float64) for column in fields))
    parts = []
    for first in range(0, max(len(rows.scores), 1), SLICE):
        found = refine(rows.candidates(first, first + SLICE), fields, options)
        found = weigh_by_certainty(found, options.certainty)
        starts, ends = grid.to_seconds(found.starts, duration), grid.to_seconds(found.ends, duration)
        real = ends > starts  # a box wholly outside the recording is clipped to nothing
        if options.voting is None:  # in a vote all take part
            real &= found.scores >= options.min_score
        found = found[real]
        parts.append(_Boxes(starts[real], ends[real], found.scores, found.labels.astype(np.int32), found.positions))
    if len(parts) == 1:
        return parts[0]
    boxes = _Boxes(*map(np.concatenate, zip(*parts, strict=True)))
    del parts
    order = np.argsort(-boxes.scores, kind="stable")
    return _Boxes(*(column[order] for column in boxes))  # type: ignore[arg-type]
