"""Outputs of a whole batch, in each of the processes that ran parts of it.

Losses look at a batch as a whole: they are divided by its positives, compare positions with quantiles over all of them,
match instances one to one. So it is not losses that are added up over processes, but the outputs that are gathered: the
loss of the whole batch is computed in each, and no loss need know of processes. That is small beside the network.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from temporalzoom import processes
from temporalzoom.models.outputs import Outputs, Points, Routing


def gather_outputs(outputs: Outputs) -> Outputs:
    """The outputs of all rows from those of the own ones, inside of `processes.running`; alone: the same outputs.

    Gradients pass through the own rows; of what all processes have alike, each has its share.
    """
    if processes.count() == 1:
        return outputs
    tensors: list[Tensor] = []
    _visit(outputs, lambda x: tensors.append(x) or x)  # type: ignore[func-returns-value]
    whole = iter(_gathered(tensors))
    return _visit(outputs, lambda x: next(whole))


def _visit(record: Any, take: Any) -> Any:
    """The record with `take` applied to every tensor of rows, always in the same order."""
    if record is None:
        return None
    if isinstance(record, Tensor):
        return take(record)
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, Points):  # only `valid` has rows; the others are of every batch
        return Points(**values | {"valid": take(record.valid)})
    if isinstance(record, Routing):
        found = {"logits": take(record.logits), "chosen": take(record.chosen), "exits": None}
        if record.exits is not None:  # the rows of each depth one after the other
            found["exits"] = Outputs.concatenate([_visit(path, take) for path in record.paths()])
        shared = record.temperatures
        if shared is not None:  # a parameter: each process would have the whole gradient
            shared = shared.detach() + (shared - shared.detach()) / processes.count()
        return Routing(**found, temperatures=shared)
    return type(record)(**{name: _visit(value, take) for name, value in values.items()})


def _gathered(tensors: list[Tensor]) -> list[Tensor]:
    """All at once: (b, ...) each -> (B, ...) each. Masks stay masks."""
    rows = len(tensors[0])
    packed = processes.whole_batch(torch.cat([x.reshape(rows, -1).float() for x in tensors], 1))
    parts = packed.split([x[0].numel() for x in tensors], 1)
    return [part.reshape(-1, *x.shape[1:]).to(x.dtype) for part, x in zip(parts, tensors, strict=True)]
