"""Decoding of a whole recording at once, everything kept to its end: what decoding in steps is compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from temporalzoom.bdr import assumed_box_variance, refine_segments
from temporalzoom.inference.candidates import Fields, _length, _rows
from temporalzoom.inference.decoding import Decoded, expected_tiou
from temporalzoom.inference.limits import within_limit
from temporalzoom.inference.nms import suppress_in_time, vote
from temporalzoom.segments import Segments


class Whole(NamedTuple):
    positions: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray
    log_variances: np.ndarray

    def take(self, rows):
        return Whole(*(column[rows] for column in self))


def decode_whole(parts, classes, grid, duration, options):
    rows, fields, cut = collect(parts, options)
    starts, ends = rows.positions - rows.offsets[:, 0].astype(float), rows.positions + rows.offsets[:, 1].astype(float)
    variances = np.exp(rows.log_variances.astype(float).clip(-8, 8)) if rows.log_variances.shape[1] else None
    starts, ends, variances = refine(starts, ends, variances, fields, options)
    scores = rows.scores.astype(float)
    if options.certainty and variances is not None:
        scores = scores * expected_tiou(ends - starts, np.sqrt(variances)) ** options.certainty
    order = np.argsort(-scores, kind="stable")
    starts, ends = grid.to_seconds(starts, duration)[order], grid.to_seconds(ends, duration)[order]
    scores, labels, positions = scores[order], rows.labels[order].astype(np.intp), rows.positions[order]
    real = ends > starts
    if options.voting is None:
        real &= scores >= options.min_score
    starts, ends, scores, labels = (column[real] for column in (starts, ends, scores, labels))
    kept, left, lost = suppress_in_time(
        starts, ends, scores, labels, positions[real], method=options.suppression, sigma=options.sigma,
        tiou_threshold=options.tiou_threshold, min_score=options.min_score, max_segments=options.max_segments,
        duration=duration, span=options.limit_span,
    )  # fmt: skip
    names = [classes[label] for label in labels[kept].tolist()]
    moved = (starts[kept], ends[kept])
    if options.voting is not None:
        moved = vote(starts, ends, scores, labels, kept, options.voting)
    return Decoded(Segments(*moved, names, left, classes=classes), max(cut, lost))


def collect(parts, options):
    """The rows that stay, best first, the fields, and the highest score of the others; all kept to the end."""
    span, limit = options.limit_span, options.candidates
    buffer, kept, fields = None, [], []
    cut, length, decided = -np.inf, 0, 0.0
    for part in parts:
        rows = Whole(*_rows(part, length, options.min_score)[:5])
        length += _length(part)
        if part.distances is not None:
            fields.append(Fields(part.distances.numpy(), part.distance_log_variance.numpy()))
        buffer = rows if buffer is None else joined([buffer, rows])
        if span is not None and length - span - decided >= span:
            chosen, lost = decide(buffer, decided, length - span, limit, span)
            cut, decided = max(cut, lost), float(length - span)
            kept.append(chosen)
            buffer = buffer.take(buffer.positions >= decided - span)
    chosen, lost = decide(buffer, decided, np.inf, limit, span)
    found, cut = joined([*kept, chosen]), max(cut, lost)
    together = Fields.joined(fields) if fields else None
    return found.take(np.argsort(-found.scores, kind="stable")), together, cut


def joined(parts):
    return Whole(*map(np.concatenate, zip(*parts, strict=True)))


def decide(rows, first, last, limit, span):
    order = np.argsort(-rows.scores, kind="stable")
    stays = np.empty(len(order), bool)
    stays[order] = within_limit(rows.positions[order], limit, span)
    asked = (rows.positions >= first) & (rows.positions < last)
    return rows.take(asked & stays), float(rows.scores[asked & ~stays].max(initial=-np.inf))


def refine(starts, ends, box, fields, options):
    if fields is None or options.refine == "none":
        return starts, ends, box
    distances = fields.distances.astype(float)
    spread = np.exp(np.nan_to_num(fields.log_variance[:, [0, -1]].astype(float), nan=8.0).clip(-8, 8))
    if box is None:
        box = assumed_box_variance(starts, ends, options.max_move)[:, None].repeat(2, 1)
    new_starts, new_ends, taken = refine_segments(
        starts, ends, distances[:, 0], distances[:, -1], mode=options.refine, max_move=options.max_move,
        min_slope=options.min_slope, window=options.boundary_window, box_variance=box, start_variance=spread[:, 0],
        end_variance=spread[:, 1], return_taken=True,
    )  # fmt: skip
    at = np.arange(len(spread))
    known = np.stack([np.interp(x, at, spread[:, side]) for side, x in enumerate((new_starts, new_ends))], 1)
    if options.refine == "fuse":
        known = 1 / (1 / known + 1 / box)
    return new_starts, new_ends, np.where(taken, known, box)
