"""Sequences of any length through a network, in bounded memory: overlapping windows whose middles are kept."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from temporalzoom.config import Precision
from temporalzoom.models import Outputs
from temporalzoom.models.runtime import check_precision, denormals_as_zero, device_of, keep_freed_memory, products_in


def plan_windows(length: int, window: int, margin: int) -> Iterator[tuple[int, int, int, int]]:
    """Windows `(first, last, keep_first, keep_last)` over `length` positions, half-open.

    The kept parts tile the sequence. Inside it, a kept position has at least `margin` positions of its window to either
    side: with a margin of the network's receptive field, windows give exactly what one pass would give.
    """
    if length <= window:
        yield 0, length, 0, length
        return
    margin = min(margin, (window - 1) // 2)
    kept = 0
    while kept < length:
        first = min(max(kept - margin, 0), length - window)
        last = first + window
        keep_last = length if last == length else last - margin
        yield first, last, kept, keep_last
        kept = keep_last


@torch.inference_mode()
@denormals_as_zero()
def run_network(
    model: nn.Module,
    features: NDArray[np.float32],
    window: int,
    boundaries: Tensor | None = None,
    precision: Precision = "float32",
) -> Outputs:
    """Raw outputs of one sequence. features: (T, F), T >= 1 -> Outputs with float32 tensors of (T, ...), on the
    processor wherever the network is.

    boundaries: (T,) boolean, true positions to protect from pruning, for the oracle ablation of `tzn`. precision: of
    the products inside the network.
    """
    keep_freed_memory()
    field = getattr(model, "receptive_field", None)
    margin = window // 4 if field is None else field
    device = device_of(model)
    check_precision(precision, device.type, "inference.precision")
    parts: list[Outputs] = []
    for first, last, keep_first, keep_last in plan_windows(len(features), window, margin):
        piece = torch.tensor(np.ascontiguousarray(features[first:last], np.float32), device=device)[None]
        mask = torch.ones(1, last - first, dtype=torch.bool, device=device)
        truth = {} if boundaries is None else {"boundaries": boundaries[None, first:last].to(device)}
        with products_in(precision, device.type):
            outputs: Outputs = model(piece, mask, **truth)
        outputs = outputs.map(lambda x: x.cpu()).as_float32()
        parts.append(outputs.part(keep_first - first, keep_last - first, first))
    return Outputs.concatenate(parts)
