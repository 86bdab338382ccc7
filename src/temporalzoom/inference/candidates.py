"""Raw outputs, as they come, -> the candidates for segments: the highest scores of every neighbourhood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    """The distance fields of a whole recording and their log variances, (T, K) each; of a network that classifies
    boundaries also their logits, (T, K). One that does nothing else has distances of (T, 0)."""

    distances: NDArray[np.floating]
    log_variance: NDArray[np.floating]
    boundary_logits: NDArray[np.floating] | None = None

    def map(self, function: Callable[[NDArray[np.floating]], NDArray[np.floating]]) -> Fields:
        return Fields(*(None if column is None else function(column) for column in self))  # type: ignore[arg-type]

    @staticmethod
    def joined(parts: Sequence[Fields]) -> Fields:
        columns = zip(*parts, strict=True)
        return Fields(*(None if column[0] is None else np.concatenate(column) for column in columns))  # type: ignore[arg-type]


class Rows(NamedTuple):
    """Scores that are high enough and where they stand, (N,) or (N, 2) each, as small as can be: a day has many.

    log_variances: of the offsets, (N, 0) if the network predicts none; order: numbers that rise as the rows came.
    """

    positions: Floats
    labels: NDArray[np.int32]
    scores: Singles
    offsets: Singles
    log_variances: Singles
    order: NDArray[np.int64]

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Rows:
        return Rows(*(column[rows] for column in self))  # type: ignore[arg-type]

    def candidates(self, first: int = 0, last: int | None = None) -> Candidates:
        """Some of the rows as segments."""
        positions, labels, scores, offsets, spread, _ = self.take(np.arange(len(self.scores))[first:last])
        variances = np.exp(spread.astype(np.float64).clip(-8, 8)) if spread.shape[1] else None
        starts, ends = positions - offsets[:, 0].astype(np.float64), positions + offsets[:, 1].astype(np.float64)
        return Candidates(starts, ends, labels.astype(np.intp), scores.astype(np.float64), variances, positions)


def find_candidates(outputs: Outputs, options: InferenceConfig) -> Candidates:
    """The highest class scores and the boxes of their positions. outputs: tensors of (N, ...)."""
    return collect_rows([outputs], options)[0].candidates()


class Step(NamedTuple):
    """What is known after one more part of a recording.

    rows: those that stay, beside the ones of the steps before, in order. Without a span they may still give way to
    better ones; alive: then the `order` of all that have not yet, else None. decided: rows of later steps stand here or
    later. length: positions so far. fields: of this part, None without BDR. cut: the highest score that did not stay so
    far, -inf if all did. is_last: no more is to come.
    """

    rows: Rows
    alive: NDArray[np.int64] | None
    decided: float
    length: int
    fields: Fields | None
    cut: float
    is_last: bool = False


def step_by_step(parts: Iterable[Outputs], options: InferenceConfig) -> Iterator[Step]:
    """What of a recording may become segments; its raw outputs come in parts, in order of time, each forgotten before
    the next.

    Of the scores from `min_score` on, `candidates` stay within `limit_span` positions to either side. The last step has
    no part of its own.
    """
    span, limit = options.limit_span, options.candidates
    buffer: Rows | None = None
    cut, length, decided, count = -np.inf, 0, 0.0, 0
    for part in parts:
        rows = _rows(part, length, options.min_score)
        length += _length(part)
        fields = None
        # Copies: a view would keep all of the window that it was cut from.
        logits = None if part.boundary_logits is None else part.boundary_logits.numpy().copy()
        if part.distances is not None and part.distance_log_variance is not None:
            fields = Fields(part.distances.numpy().copy(), part.distance_log_variance.numpy().copy(), logits)
        elif logits is not None:
            fields = Fields(logits[:, :0], logits[:, :0], logits)
        new = rows = rows._replace(order=np.arange(count, count + len(rows.scores)))
        buffer = rows if buffer is None else joined([buffer, rows])
        if span is None:
            count += len(rows.scores)
            best = np.sort(_best_first(buffer)[:limit])
            cut = max(cut, _highest_but(buffer.scores, best))
            buffer = buffer.take(best)
            new = buffer.take(buffer.order >= count - len(rows.scores))
            yield Step(new, buffer.order, float(length), length, fields, cut)
            continue
        chosen = rows.take(np.zeros(len(rows.scores), bool))
        if length - span - decided >= span:  # what is farther back than the span has all its neighbours
            chosen, lost = _decide(buffer, decided, length - span, limit, span)
            cut, decided = max(cut, lost), float(length - span)
            chosen, count = _numbered(chosen, count)
            buffer = buffer.take(buffer.positions >= decided - span)
        yield Step(chosen, None, decided, length, fields, cut)
    assert buffer is not None, "a recording has at least one part"
    if span is None:
        yield Step(buffer.take(np.zeros(len(buffer.scores), bool)), buffer.order, np.inf, length, None, cut, True)
        return
    chosen, lost = _decide(buffer, decided, np.inf, limit, span)
    yield Step(_numbered(chosen, count)[0], None, np.inf, length, None, max(cut, lost), True)


def collect_rows(parts: Iterable[Outputs], options: InferenceConfig) -> tuple[Rows, Fields | None, float]:
    """All steps together: the rows that stay, best first, the distance fields, None without BDR, and the highest score
    that did not stay, -inf if all did."""
    steps = list(step_by_step(parts, options))
    found, fields = joined([step.rows for step in steps]), [step.fields for step in steps if step.fields is not None]
    if steps[-1].alive is not None:
        found = found.take(np.isin(found.order, steps[-1].alive))
    together = Fields.joined(fields) if fields else None
    return found.take(_best_first(found)), together, steps[-1].cut


def _numbered(rows: Rows, count: int) -> tuple[Rows, int]:
    after = count + len(rows.scores)
    return rows._replace(order=np.arange(count, after)), after


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
        np.zeros(len(row), np.int64),
    )


def joined(parts: list[Rows]) -> Rows:
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
