"""Raw outputs, as they come, -> the candidates for segments: the highest scores of every neighbourhood."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from temporalzoom.config import InferenceConfig
from temporalzoom.inference.limits import within_limit
from temporalzoom.models import Outputs

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Candidates:
    """Unsuppressed segments in grid units, best first: (N,) each; variances (N, 2) of start and end, None if the
    network predicts none; positions: where the network stood that says so."""

    starts: Floats
    ends: Floats
    labels: NDArray[np.intp]
    scores: Floats
    variances: Floats | None
    positions: Floats

    def __getitem__(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Candidates:
        variances = None if self.variances is None else self.variances[rows]
        return Candidates(
            self.starts[rows], self.ends[rows], self.labels[rows], self.scores[rows], variances, self.positions[rows]
        )


class Fields(NamedTuple):
    """The distance fields of a whole recording and their log variances, (T, K) each."""

    distances: NDArray[np.floating]
    log_variance: NDArray[np.floating]


class Rows(NamedTuple):
    """Scores that are high enough and where they stand, (N,) or (N, 2) each, as small as can be: a day has many.

    log_variances: of the offsets, (N, 0) if the network predicts none.
    """

    positions: Floats
    labels: NDArray[np.int32]
    scores: Singles
    offsets: Singles
    log_variances: Singles

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Rows:
        return Rows(*(column[rows] for column in self))  # type: ignore[arg-type]

    def candidates(self, first: int = 0, last: int | None = None) -> Candidates:
        """Some of the rows as segments."""
        positions, labels, scores, offsets, spread = self.take(np.arange(len(self.scores))[first:last])
        variances = np.exp(spread.astype(np.float64).clip(-8, 8)) if spread.shape[1] else None
        starts, ends = positions - offsets[:, 0].astype(np.float64), positions + offsets[:, 1].astype(np.float64)
        return Candidates(starts, ends, labels.astype(np.intp), scores.astype(np.float64), variances, positions)


def find_candidates(outputs: Outputs, options: InferenceConfig) -> Candidates:
    """The highest class scores and the boxes of their positions. outputs: tensors of (N, ...)."""
    return collect_rows([outputs], options)[0].candidates()


def collect_rows(parts: Iterable[Outputs], options: InferenceConfig) -> tuple[Rows, Fields | None, float]:
    """What of a recording may become segments, best first; its raw outputs come in parts, in order of time, each
    forgotten before the next.

    Of the scores from `min_score` on, `candidates` stay within `limit_span` positions to either side.
    Returns them, the distance fields, None without BDR, and the highest score that did not stay, -inf if all did.
    """
    span, limit = options.limit_span, options.candidates
    buffer: Rows | None = None
    kept: list[Rows] = []
    cut = -np.inf
    length, decided = 0, 0.0
    fields: list[Fields] = []
    for part in parts:
        rows = _rows(part, length, options.min_score)
        length += _length(part)
        if part.distances is not None and part.distance_log_variance is not None:
            # Copies: a view would keep all of the window that it was cut from.
            fields.append(Fields(part.distances.numpy().copy(), part.distance_log_variance.numpy().copy()))
        buffer = rows if buffer is None else _joined([buffer, rows])
        if span is None:
            best = np.sort(_best_first(buffer)[:limit])
            cut = max(cut, _highest_but(buffer.scores, best))
            buffer = buffer.take(best)
        elif length - span - decided >= span:  # what is farther back than the span has all its neighbours
            chosen, lost = _decide(buffer, decided, length - span, limit, span)
            cut, decided = max(cut, lost), float(length - span)
            kept.append(chosen)
            buffer = buffer.take(buffer.positions >= decided - span)
    assert buffer is not None, "a recording has at least one part"
    chosen, lost = _decide(buffer, decided, np.inf, limit, span)
    found, cut = _joined([*kept, chosen]), max(cut, lost)
    del buffer, kept, chosen
    together = Fields(*map(np.concatenate, zip(*fields, strict=True))) if fields else None
    return found.take(_best_first(found)), together, cut


def _length(part: Outputs) -> int:
    """How many positions of the recording a part stands for."""
    if part.points is None:
        return len(part.logits)
    if part.distances is not None:
        return len(part.distances)
    return int((part.points.strides == part.points.strides.min()).sum()) if len(part.logits) else 0


def _rows(part: Outputs, first: int, min_score: float) -> Rows:
    """first: the position at which the part begins; points know theirs."""
    scores = torch.sigmoid(part.logits.float())
    row, label = torch.nonzero(scores >= min_score, as_tuple=True)
    position = row + first if part.points is None else part.points.positions[row]
    offsets = part.offsets[row] if part.offsets.ndim == 2 else part.offsets[row, label]
    spread = part.offset_log_variance
    return Rows(
        position.double().numpy(),
        label.int().numpy(),
        scores[row, label].numpy(),
        offsets.float().numpy(),
        np.empty((len(row), 0), np.float32) if spread is None else spread[row].float().numpy(),
    )


def _joined(parts: list[Rows]) -> Rows:
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def _best_first(rows: Rows) -> NDArray[np.intp]:
    return np.argsort(-rows.scores, kind="stable")


def _highest_but(scores: Singles, kept: NDArray[np.intp] | NDArray[np.bool_]) -> float:
    """The highest score that is not kept."""
    lost = np.ones(len(scores), bool)
    lost[kept] = False
    return float(scores[lost].max(initial=-np.inf))


def _decide(rows: Rows, first: float, last: float, limit: int, span: int | None) -> tuple[Rows, float]:
    """Those that stand from `first` to `last` and stay, in order, and the highest score of those that do not."""
    order = _best_first(rows)
    stays = np.empty(len(order), bool)
    stays[order] = within_limit(rows.positions[order], limit, span)
    asked = (rows.positions >= first) & (rows.positions < last)
    return rows.take(asked & stays), _highest_but(rows.scores[asked], stays[asked])
