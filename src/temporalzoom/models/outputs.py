"""The raw outputs of a detector at every position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def _map(record: T, function: Callable[[Tensor], Tensor]) -> T:
    """The same record with `function` applied to every tensor in it, records inside included."""

    def apply(value: Any) -> Any:
        if value is None:
            return None
        return function(value) if isinstance(value, Tensor) else _map(value, function)

    return type(record)(**{field.name: apply(getattr(record, field.name)) for field in fields(record)})  # type: ignore


def _concatenate(records: Sequence[T]) -> T:
    """Tensor by tensor along the first dimension, records inside included."""

    def join(values: list[Any]) -> Any:
        if values[0] is None:
            return None
        return torch.cat(values) if isinstance(values[0], Tensor) else _concatenate(values)

    names = [field.name for field in fields(records[0])]  # type: ignore[arg-type]
    return type(records[0])(**{name: join([getattr(record, name) for record in records]) for name in names})


def _widened(column: Tensor, like: Tensor) -> Tensor:
    """A value per row, (B, N, 1), for rows that may be matrices: (B, N, 1, 1) where `like` is (B, N, C, 2)."""
    return column if column.ndim == like.ndim else column.unsqueeze(-1)


@dataclass
class Routing:
    """Of a network that gives each position one of K depths, in training. logits: (B, T, K), of the choice; chosen:
    (B, T, K), one-hot; exits: outputs of each depth everywhere, (K * B, T, ...); temperatures: (K,), of exits."""

    logits: Tensor
    chosen: Tensor
    exits: Outputs | None = None
    temperatures: Tensor | None = None

    def paths(self) -> list[Outputs]:
        """The outputs of each depth."""
        assert self.exits is not None
        rows = len(self.chosen)
        return [
            self.exits.map(lambda x, k=k: x[k * rows : (k + 1) * rows])  # type: ignore[misc]
            for k in range(self.chosen.shape[-1])
        ]


@dataclass
class Depth:
    """What adaptive depth decided. All (B, T).

    logits: of the depth predictor; tau: after hysteresis; importance: of the pruner; log_variance: log sigma^2;
    kept: survived pruning; active: gets the deep path; tried: entered it, in training also others, to learn its value.
    Only in training: the outputs of each path on its own; routing: of networks with several depths.
    """

    logits: Tensor
    tau: Tensor
    importance: Tensor
    log_variance: Tensor
    kept: Tensor
    active: Tensor
    tried: Tensor
    shallow: Outputs | None = None
    deep: Outputs | None = None
    routing: Routing | None = None


@dataclass
class Points:
    """Where the rows of a detector's outputs stand in time, if not at one position each. (N,) unless a shape is given.

    positions: in grid units; strides: of the level; shortest, longest: the offsets (the longer of the two) that a point
    is trained to predict; valid: (B, N), False in the padding.
    """

    positions: Tensor
    strides: Tensor
    shortest: Tensor
    longest: Tensor
    valid: Tensor


@dataclass
class BoundaryMaps:
    """What `bmn` is trained on, all logits. starts, ends: (B, T); confidence: (B, 2, D, T), the one trained as a
    classifier and the one trained as a regressor, of the segment that begins at t and lasts d + 1 positions."""

    starts: Tensor
    ends: Tensor
    confidence: Tensor


@dataclass
class Outputs:
    """Raw outputs of a detector, in grid units, one row per position; with `points`, one row per point.

    logits: (B, N, C); offsets: (B, N, 2), distances from the point back to the start and on to the end, >= 0, or
    (B, N, C, 2) where they depend on the class; offset_log_variance: (B, N, 2), None where it is not predicted;
    distances and distance_log_variance: (B, T, K), one row per position whatever the points, None without BDR; depth:
    None where every position gets the same. Only in training: level_distances (B, N, K), at all points, in strides of
    their levels; maps, what `bmn` learns from. boundary_logits: (B, T, K), that a boundary is there, of networks that
    classify boundaries.
    """

    logits: Tensor
    offsets: Tensor
    offset_log_variance: Tensor | None = None
    distances: Tensor | None = None
    distance_log_variance: Tensor | None = None
    depth: Depth | None = None
    points: Points | None = None
    level_distances: Tensor | None = None
    maps: BoundaryMaps | None = None
    boundary_logits: Tensor | None = None

    def boxes(self, sequence: Tensor, row: Tensor, labels: Tensor) -> Tensor:
        """The offsets of single rows, each as its class has them: (P,) indices and labels -> (P, 2)."""
        chosen = self.offsets[sequence, row]
        return chosen if chosen.ndim == 2 else chosen[torch.arange(len(row), device=row.device), labels]

    def map(self, function: Callable[[Tensor], Tensor]) -> Outputs:
        """The same outputs with `function` applied to every tensor."""
        return _map(self, function)

    def as_float32(self) -> Outputs:
        """Half precision becomes float32; masks stay masks."""
        return self.map(lambda x: x.float() if x.is_floating_point() else x)

    def part(self, low: int, high: int, shift: int) -> Outputs:
        """Of a single sequence, the rows that stand in [low, high) of it, without the batch dimension.

        shift: what to add to their positions, where the sequence is a window of a longer one.
        """
        if self.points is None:
            return self.map(lambda x: x[0, low:high])
        points = self.points
        rows = (points.positions >= low) & (points.positions < high) & points.valid[0]
        columns = {n: v[rows] for n, v in vars(points).items() if n != "valid"}
        columns["positions"] = columns["positions"] + shift
        return Outputs(
            self.logits[0, rows],
            self.offsets[0, rows],
            None if self.offset_log_variance is None else self.offset_log_variance[0, rows],
            None if self.distances is None else self.distances[0, low:high],
            None if self.distance_log_variance is None else self.distance_log_variance[0, low:high],
            None if self.depth is None else _map(self.depth, lambda x: x[0, low:high]),
            Points(**columns, valid=points.valid[0, rows]),
            boundary_logits=None if self.boundary_logits is None else self.boundary_logits[0, low:high],
        )

    def blend(self, other: Outputs, weight: Tensor) -> Outputs:
        """`self + weight * (other - self)`, tensor by tensor. weight: (..., 1)."""

        def mixed(before: Tensor, after: Tensor) -> Tensor:  # in half precision they need not be of one type
            return torch.lerp(before, after.to(before), _widened(weight, before).to(before))

        both = {n: mixed(v, getattr(other, n)) for n, v in vars(self).items() if isinstance(v, Tensor)}
        return Outputs(**both)  # type: ignore[arg-type]

    def replaced(self, other: Outputs, where: Tensor) -> Outputs:
        """`other` where `where`, (..., 1), and `self` elsewhere, but there with the gradient of `other`."""

        def chosen(before: Tensor, after: Tensor) -> Tensor:
            return torch.where(_widened(where, before), after, before.detach() + (after - after.detach()))

        both = {n: chosen(v, getattr(other, n)) for n, v in vars(self).items() if isinstance(v, Tensor)}
        return Outputs(**both)  # type: ignore[arg-type]

    @classmethod
    def concatenate(cls, parts: Sequence[Outputs]) -> Outputs:
        """Along the first dimension, tensor by tensor."""
        return _concatenate(parts)
