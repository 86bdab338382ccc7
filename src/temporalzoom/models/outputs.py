"""What a detector says about every position."""

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


@dataclass
class Depth:
    """What adaptive depth decided. All (B, T).

    logits: of the depth predictor; tau: after hysteresis; importance: of the pruner; log_variance: log sigma^2;
    kept: survived pruning; active: gets the deep path; tried: entered it, in training also others, to learn its value.
    Only in training: what each path said on its own.
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


@dataclass
class Outputs:
    """Raw outputs of a detector, in grid units, one row per position.

    logits: (B, T, C); offsets: (B, T, 2), distances from the position back to the start and on to the end, >= 0;
    offset_log_variance: (B, T, 2); distances and distance_log_variance: (B, T, K), None without BDR; depth: None where
    every position gets the same.
    """

    logits: Tensor
    offsets: Tensor
    offset_log_variance: Tensor
    distances: Tensor | None = None
    distance_log_variance: Tensor | None = None
    depth: Depth | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> Outputs:
        """The same outputs with `function` applied to every tensor."""
        return _map(self, function)

    def blend(self, other: Outputs, weight: Tensor) -> Outputs:
        """`self + weight * (other - self)`, tensor by tensor."""
        mixed = {n: torch.lerp(v, getattr(other, n), weight) for n, v in vars(self).items() if isinstance(v, Tensor)}
        return Outputs(**mixed)  # type: ignore[arg-type]

    @classmethod
    def concatenate(cls, parts: Sequence[Outputs]) -> Outputs:
        """Along the first dimension, tensor by tensor."""
        return _concatenate(parts)
