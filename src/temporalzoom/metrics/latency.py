"""How long things take: several systems in turn in one process, so that a busy machine is equally unkind to all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn


@dataclass(frozen=True)
class LatencyResult:
    """seconds: one run of the system per round, in order."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.percentile(self.seconds, (25, 75))
        return float(low), float(high)


@dataclass(frozen=True)
class LatencyRatio:
    """The median of the ratios of each round, and its 95 % bootstrap interval."""

    median: float
    low: float
    high: float


def measure_latency(
    systems: Mapping[str, Callable[[], object]],
    repeats: int = 20,
    warmup: int = 3,
    watch: Callable[[range], Iterable[int]] = iter,
) -> dict[str, LatencyResult]:
    """Seconds of every system in each of `repeats` rounds, after `warmup` rounds that do not count.

    Every round runs each system once, and the first of a round is another one each time. watch: wraps the rounds, such
    as to show progress between them.
    """
    names = list(systems)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in watch(range(warmup + repeats)):
        first = turn % max(len(names), 1)
        for name in names[first:] + names[:first]:
            began = time.perf_counter()
            systems[name]()
            elapsed = time.perf_counter() - began
            if turn >= warmup:
                seconds[name].append(elapsed)
    return {name: LatencyResult(tuple(values)) for name, values in seconds.items()}


def latency_ratio(system: LatencyResult, baseline: LatencyResult, resamples: int = 2000, seed: int = 0) -> LatencyRatio:
    """How long `system` takes relative to `baseline`, both from one `measure_latency`.

    The ratio is taken round by round: what disturbs a whole round disturbs both and cancels.
    """
    if len(system.seconds) != len(baseline.seconds) or not system.seconds:
        raise ValueError(f"rounds do not pair up: {len(system.seconds)} and {len(baseline.seconds)}")
    ratios: NDArray[np.float64] = np.divide(system.seconds, baseline.seconds)
    rounds = np.random.default_rng(seed).integers(len(ratios), size=(resamples, len(ratios)))
    low, high = np.percentile(np.median(ratios[rounds], axis=1), (2.5, 97.5))
    return LatencyRatio(float(np.median(ratios)), float(low), float(high))


def time_parts(model: nn.Module, run: Callable[[], object], repeats: int = 20, warmup: int = 3) -> dict[str, float]:
    """Median seconds that `run()` spends in each direct child of `model`, and in `other`: everything outside of them.

    A child counts however it is entered: a network may call `self.deep.layers[3]` and never `self.deep`.
    """
    rounds = []
    entries = _entries(model, run)
    for _ in range(warmup + repeats):
        spent = dict.fromkeys((name for name, _ in model.named_children()), 0.0)
        with _stopwatch(entries, spent):
            began = time.perf_counter()
            run()
            whole = time.perf_counter() - began
        rounds.append(spent | {"other": whole - sum(spent.values())})
    return {part: float(np.median([values[part] for values in rounds[warmup:]])) for part in rounds[-1]}


def _entries(model: nn.Module, run: Callable[[], object]) -> dict[nn.Module, str]:
    """The modules through which `run()` enters the direct children of `model`, with the child's name.

    Found in a run of its own: a stopwatch on every module would slow down what it times.
    """
    everywhere = {module: part for part, child in model.named_children() for module in child.modules()}
    outermost: dict[nn.Module, str] = {}
    with _stopwatch(everywhere, dict.fromkeys(everywhere.values(), 0.0), outermost):
        run()
    return outermost


@contextmanager
def _stopwatch(
    watched: Mapping[nn.Module, str], spent: dict[str, float], outermost: dict[nn.Module, str] | None = None
) -> Iterator[None]:
    """Adds the seconds inside watched modules to `spent`, by part; a call inside a watched call is not counted twice.

    outermost: collects the modules that were called from outside of every watched one.
    """
    began: list[float] = []

    def enter(module: nn.Module, *_: object) -> None:
        if not began and outermost is not None:
            outermost[module] = watched[module]
        began.append(time.perf_counter())

    def leave(module: nn.Module, *_: object) -> None:
        elapsed = time.perf_counter() - began.pop()
        if not began:
            spent[watched[module]] += elapsed

    handles = [module.register_forward_pre_hook(enter) for module in watched]
    handles += [module.register_forward_hook(leave) for module in watched]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def threads(count: int) -> Iterator[None]:
    """PyTorch works with `count` threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
