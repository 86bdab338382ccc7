"""Sequences of any length through a network, in bounded memory: overlapping windows whose middles are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from temporalzoom.config import Precision
from temporalzoom.errors import InputError
from temporalzoom.models import Outputs
from temporalzoom.models.runtime import check_precision, denormals_as_zero, device_of, keep_freed_memory, products_in
from temporalzoom.signals.feature_rows import FeatureRows


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


def run_network(
    model: nn.Module,
    features: NDArray[np.floating] | FeatureRows,
    window: int,
    boundaries: Tensor | None = None,
    precision: Precision = "float32",
) -> Outputs:
    """Raw outputs of one sequence: those of all its windows together, see `run_windows`."""
    return Outputs.concatenate(list(run_windows(model, features, window, boundaries, precision)))


@dataclass(frozen=True)
class Windows:
    """`run_windows` with these arguments, as often as it is asked for."""

    model: nn.Module
    features: NDArray[np.floating] | FeatureRows
    window: int
    precision: Precision = "float32"

    def __iter__(self) -> Iterator[Outputs]:
        return run_windows(self.model, self.features, self.window, precision=self.precision)


def run_windows(
    model: nn.Module,
    features: NDArray[np.floating] | FeatureRows,
    window: int,
    boundaries: Tensor | None = None,
    precision: Precision = "float32",
) -> Iterator[Outputs]:
    """Raw outputs of one sequence, window by window. features: (T, F) numbers of any type, T >= 1 -> Outputs with
    float32 tensors of (T', ...), on the processor wherever the network is; together the windows have T positions.

    boundaries: (T,) boolean, true positions to protect from pruning, for the oracle ablation of `tzn`. precision: of
    the products inside the network.
    """
    keep_freed_memory()
    field = getattr(model, "receptive_field", None)
    margin = window // 4 if field is None else field
    device = device_of(model)
    check_precision(precision, device.type, "inference.precision")
    for first, last, keep_first, keep_last in plan_windows(len(features), window, margin):
        truth = {} if boundaries is None else {"boundaries": boundaries[None, first:last].to(device)}
        # Inside of the loop: what a generator switches on would stay so for its caller.
        with torch.inference_mode(), denormals_as_zero(), products_in(precision, device.type):
            piece = torch.tensor(np.ascontiguousarray(features[first:last], np.float32), device=device)[None]
            mask = torch.ones(1, last - first, dtype=torch.bool, device=device)
            outputs: Outputs = model(piece, mask, **truth)
            outputs = outputs.map(lambda x: x.cpu()).as_float32().part(keep_first - first, keep_last - first, first)
        if outputs.logits.isnan().any() or outputs.offsets.isnan().any():
            raise InputError("the scores of the network are NaN: its weights are damaged, or its input is too large")
        yield outputs
