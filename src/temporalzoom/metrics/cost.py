"""What a network costs, counted: executed FLOPs by part, peak memory, how depth is spent. Timing is in `latency`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

OTHER = "other"
BINS = 10


@dataclass(frozen=True)
class FlopCount:
    """FLOPs that ran (a multiplication and an addition are two), and their split by direct child of the network.

    Products of matrices, convolutions and attention count; element-wise work, sorting and gathering do not.
    """

    total: int
    parts: dict[str, int]


def count_flops(model: nn.Module, features: ArrayLike) -> FlopCount:
    """One pass of `model`, which takes features (B, T, F) and a mask (B, T). features: (T, F)."""
    tokens = torch.as_tensor(np.asarray(features, np.float32))[None]
    mask = torch.ones(tokens.shape[:2], dtype=torch.bool)
    return count_run(model, lambda: model(tokens, mask))


def count_run(model: nn.Module, run: Callable[[], object]) -> FlopCount:
    """All FLOPs of `run()`, which calls `model` once or several times.

    A part that never ran has 0. What the network computes outside of its parts is the part `other`, if there is any.
    """
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        run()
    root = type(model).__name__
    counts = {name: sum(by_operation.values()) for name, by_operation in counter.get_flop_counts().items()}
    total = counter.get_total_flops()
    parts = {name: 0 for name, _ in model.named_children()}
    for name in _entry_names(counts, root):
        parts[name.split(".")[1]] += counts[name]
    rest = total - sum(parts.values())
    return FlopCount(total, parts | ({OTHER: rest} if rest else {}))


def count_total(run: Callable[[], object]) -> int:
    """What `count_run` counts, without its split by parts: several times as fast, for searches."""
    with _Total() as counter, torch.inference_mode():
        run()
    return counter.flops


_COMPOSITE = {
    getattr(torch.ops.aten, name)
    for name in (
        "linear",
        "matmul",
        "einsum",
        "embedding_bag",
        "tensordot",
        "conv1d",
        "conv2d",
        "conv3d",
        "scaled_dot_product_attention",
    )
}


class _Total(TorchDispatchMode):
    """Adds up what operators cost, by PyTorch's own formulas."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, formula = kwargs or {}, flop_registry.get(func._overloadpacket)
        if func._overloadpacket in _COMPOSITE:  # in inference mode they come whole: a linear layer, not its product
            with self:
                return func.decompose(*args, **kwargs)
        if formula is None:
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        self.flops += formula(*args, **kwargs, out_val=result)
        return result


def _entry_names(names: Mapping[str, object], root: str) -> list[str]:
    """Of dotted names below `root` those without an ancestor among them.

    A network may call `self.deep.layers[3]` without ever calling `self.deep`: then only the layer has a count.
    """
    below = {name for name in names if name.startswith(f"{root}.")}

    def ancestors(name: str) -> set[str]:
        words = name.split(".")
        return {".".join(words[:stop]) for stop in range(2, len(words))}

    return sorted(name for name in below if not ancestors(name) & below)


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def paper_formula(everywhere: float, deep: float, mean_tau: float, kept: float) -> float:
    """The paper's estimate (its FLOPs breakdown): `everywhere + E[tau] * kept * deep`. A formula, not a measurement.

    everywhere: FLOPs of all that runs at every position; deep: of the deep path, were it run at every position; kept:
    share of positions that pruning keeps, to which the deep path is proportional, since attention is local. Where
    outputs are blended, a position with tau > 0 costs a whole deep path, not tau of one: see `count_run`.
    """
    return everywhere + mean_tau * kept * deep


def peak_memory(run: Callable[[], object]) -> int:
    """Bytes of tensors alive at once, at most, that were allocated during `run()`, beside those alive before it.

    Read from PyTorch's own record of CPU allocations, so that it comes out the same each time. The process grows by
    more, scratch space inside kernels and gaps in the heap, but by how much depends on what ran before.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # or the profiler announces itself on standard error
    with torch.autograd.profiler.profile(profile_memory=True) as profile, torch.inference_mode():
        run()
    assert profile.kineto_results is not None
    events = [event for event in profile.kineto_results.events() if event.name() == "[memory]"]
    changes = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return int(np.cumsum([0, *changes]).max())


@dataclass(frozen=True)
class TauStatistics:
    """How depth is spent. histogram: share of positions in ten equal bins of [0, 1].

    flip_rate: the paper's `Pr[sign(tau_t - 1/2) != sign(tau_{t-1} - 1/2)]`, with two signs: a tau of exactly 1/2 has
    none of its own and keeps the one before it. As a third sign it would turn the paper's dead zone, which is meant to
    prevent flips, into a cause of them. entropy: the paper's H(tau), which it does not define: here the Shannon
    entropy of the histogram in bits, 0 where tau has collapsed, log2(10) where it is even.
    """

    mean: float
    histogram: tuple[float, ...]
    flip_rate: float
    entropy: float


def tau_statistics(tau: ArrayLike, valid: ArrayLike | None = None) -> TauStatistics:
    """tau, valid: (T,). Flips are counted between neighbours that are both valid: an invalid position between two
    recordings keeps them apart. Values are NaN where nothing is valid."""
    values = np.asarray(tau, np.float64)
    mask = np.ones(values.shape, bool) if valid is None else np.asarray(valid, bool)
    if values.ndim != 1 or mask.shape != values.shape:
        raise ValueError(f"tau and valid must be vectors of one length, got shapes {values.shape} and {mask.shape}")
    if not mask.any():
        return TauStatistics(np.nan, (np.nan,) * BINS, np.nan, np.nan)
    signed = np.flatnonzero(mask & (values != 0.5))
    above, recording = values[signed] > 0.5, np.cumsum(~mask)[signed]
    flips = int(((above[1:] != above[:-1]) & (recording[1:] == recording[:-1])).sum())
    neighbours = int((mask[1:] & mask[:-1]).sum())
    shares = np.histogram(values[mask], BINS, (0.0, 1.0))[0] / mask.sum()
    present = shares[shares > 0]
    entropy = float(np.abs((present * np.log2(present)).sum()))
    flip_rate = flips / neighbours if neighbours else 0.0
    return TauStatistics(float(values[mask].mean()), tuple(shares.tolist()), flip_rate, entropy)


def end_to_end(sequences: list[NDArray[np.floating]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Sequences (T_i,) as one, with an invalid position between two of them: values (T,) and valid (T,)."""
    if not sequences:
        return np.zeros(0), np.zeros(0, bool)
    spaced = [np.append(np.asarray(sequence, np.float64), np.nan) for sequence in sequences]
    values = np.concatenate(spaced)[:-1]
    return values, ~np.isnan(values)
