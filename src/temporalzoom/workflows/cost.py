"""`tzoom cost`: two networks side by side on the same recordings, counted and timed on what they really run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import Tensor, nn

from temporalzoom.config import Config, adaptive_depth, changed, load_config
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.inference.windows import run_network
from temporalzoom.metrics.cost import (
    FlopCount,
    TauStatistics,
    count_flops,
    count_parameters,
    count_run,
    end_to_end,
    paper_formula,
    peak_memory,
    tau_statistics,
)
from temporalzoom.metrics.latency import (
    LatencyRatio,
    LatencyResult,
    latency_ratio,
    measure_latency,
    threads,
    time_parts,
)
from temporalzoom.models import AdaptiveDepth, RoutedZoom
from temporalzoom.models.layers import TokenLayout, TransformerLayer
from temporalzoom.models.runtime import products_in
from temporalzoom.progress import track
from temporalzoom.runs.checkpoint import BEST, find_checkpoint, load_weights, read_info
from temporalzoom.runs.network import model_from_config, oracle_reach

BASELINE = "uniform-6"
RECORDINGS = 8
DEEP = "deep"  # the part that sees active tokens only
# What deciding where to zoom adds to a network of two paths: all that is not one of these.
PATHS = ("projection", "shallow", "levels", "trunk", DEEP, "heads")
# A batch, where time goes into what is computed more than into starting it: this many sequences of at most this length.
AT_ONCE, AT_ONCE_LENGTH = 16, 1024


@dataclass(frozen=True)
class System:
    """A network and how it came to be."""

    name: str
    model: nn.Module
    config: Config
    weights: str  # where they come from
    note: str | None = None


@dataclass(frozen=True)
class Overhead:
    """What deciding where to zoom costs, relative to one transformer layer of the same width (expansion 4)."""

    flops: float  # local context, depth, importance, and keys and values of what active tokens look at
    time: float  # everything outside of projection, paths and heads: gathering and hysteresis too
    time_at_once: float  # the same of AT_ONCE sequences in one batch


@dataclass(frozen=True)
class DepthCost:
    """What adaptive depth did. kept, active: shares of positions; stability: by hysteresis, FLOPs beside each."""

    kept: float
    active: float
    formula: float
    stability: dict[str, TauStatistics]
    stability_flops: dict[str, int]
    overhead: Overhead


@dataclass(frozen=True)
class SystemCost:
    """flops and latency: of all recordings together; memory: peak bytes on the longest of them."""

    name: str
    weights: str
    parameters: int
    flops: FlopCount
    latency: LatencyResult
    memory: int
    depth: DepthCost | None
    note: str | None

    def summary(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "weights": self.weights,
            "note": self.note,
            "flops": asdict(self.flops),
            "latency": {"median": self.latency.median, "quartiles": self.latency.quartiles},
            "peak_memory": self.memory,
            "parameters": self.parameters,
            "depth": None if self.depth is None else asdict(self.depth),
        }


@dataclass(frozen=True)
class CostComparison:
    """Two systems on the same recordings."""

    system: SystemCost
    baseline: SystemCost
    latency_ratio: LatencyRatio
    recordings: int
    positions: int
    threads: int

    def summary(self) -> dict[str, Any]:
        """Ready for JSON. Times in seconds, memory in bytes."""
        return {
            "recordings": self.recordings,
            "positions": self.positions,
            "threads": self.threads,
            "system": self.system.summary(),
            "baseline": self.baseline.summary(),
            "ratio": {
                "flops": self.system.flops.total / self.baseline.flops.total,
                "latency": asdict(self.latency_ratio),
                "peak_memory": self.system.memory / self.baseline.memory,
                "parameters": self.system.parameters / self.baseline.parameters,
            },
        }


def compare_cost(
    config: str | Path | None = None,
    overrides: Sequence[str] = (),
    *,
    model: Path | None = None,
    baseline: str | Path | None = None,
    baseline_model: Path | None = None,
    threads_used: int = 1,
    repeats: int = 20,
    console: Console | None = None,
) -> CostComparison:
    """The network of a configuration, with random weights, or of a trained run, beside a baseline of either kind.

    Without a baseline: `uniform-6` of the same configuration. Recordings: the first of the system's test subset.
    """
    if (config is None) == (model is None):
        raise InputError("give either a configuration file or --model")
    if baseline is not None and baseline_model is not None:
        raise InputError("give either --baseline or --baseline-model")
    settings = _settings(config, model, overrides)
    split = load_data(settings.data, settings.seed, train=False).test
    if split is None:
        raise InputError(f"data.test_subset: no recording of {settings.data.test_subset!r} to measure on")
    system = _system(settings, split, model)
    if baseline is None and baseline_model is None:
        opponent = changed(settings, [f"model.name={BASELINE}"])
    else:
        opponent = _settings(baseline, baseline_model, ())
    with threads(threads_used):
        return _compare(system, _system(opponent, split, baseline_model), split.samples[:RECORDINGS], repeats, console)


def _settings(config: str | Path | None, run: Path | None, overrides: Sequence[str]) -> Config:
    if run is None:
        return load_config(config, overrides)
    checkpoint = find_checkpoint(run)
    folder = checkpoint.parent if checkpoint.name == BEST else checkpoint.parents[1]
    return load_config(folder / "config.yaml", overrides) if overrides else read_info(checkpoint).config


def _system(config: Config, split: Split, run: Path | None) -> System:
    """The network of `config`, with the weights of `run`, or with random ones."""
    if oracle_reach(config, split.samples[0].grid.stride) is not None:
        raise InputError(
            "model.paper.protection, model.paper.allocation: what an oracle costs says nothing about a system without "
            "one; add model.paper.protection=predicted, or model.paper.allocation=tau"
        )
    note = None
    if run is None:
        input_width, classes, grid = split.input_width, len(split.classes), split.samples[0].grid
        zoom = adaptive_depth(config.model)
        if zoom is not None and zoom.paper.tau_min is None and zoom.budget is None:
            # An untrained threshold lets everything pass.
            config = config.model_copy(update={"model": config.model.model_copy(update={"budget": zoom.share})})
            note = f"no threshold learned yet: model.share {zoom.share:g} taken as the budget"
    else:
        info = read_info(find_checkpoint(run))
        input_width, classes, grid = info.input_width, len(info.classes), info.grid
        if input_width != split.input_width:
            raise InputError(f"{run}: trained on {input_width} channels, the recordings have {split.input_width}")
    torch.manual_seed(config.seed)
    model = model_from_config(config, input_width, classes, grid).eval()
    if run is not None:
        load_weights(find_checkpoint(run), model)
    adaptive = isinstance(model, AdaptiveDepth) and model.depth is not None
    return System(config.model.name, model, config, str(run or "random weights"), note if adaptive else None)


def _compare(
    system: System, baseline: System, samples: Sequence[Sample], repeats: int, console: Console | None
) -> CostComparison:
    runs = {"system": _runner(system, samples), "baseline": _runner(baseline, samples)}
    latency = measure_latency(runs, repeats, watch=lambda turns: track(turns, "timing", console, "rounds"))
    return CostComparison(
        _measure(system, samples, latency["system"], repeats),
        _measure(baseline, samples, latency["baseline"], repeats),
        latency_ratio(latency["system"], latency["baseline"]),
        len(samples),
        sum(map(len, samples)),
        torch.get_num_threads(),
    )


def _runner(system: System, samples: Sequence[Sample]) -> Callable[[], object]:
    """All samples one after another, exactly as inference runs them: long ones in overlapping windows."""
    options = system.config.inference
    arrays = [sample.features for sample in samples]  # cut from raw signals once: it is the network that is measured
    return lambda: [run_network(system.model, array, options.max_length, None, options.precision) for array in arrays]


def _measure(system: System, samples: Sequence[Sample], latency: LatencyResult, repeats: int) -> SystemCost:
    flops = count_run(system.model, _runner(system, samples))
    model = system.model
    adaptive = isinstance(model, AdaptiveDepth) and not isinstance(model, RoutedZoom) and model.allocation == "tau"
    return SystemCost(
        system.name,
        system.weights,
        count_parameters(system.model),
        flops,
        latency,
        peak_memory(_runner(system, [max(samples, key=len)])),
        _depth_cost(system, samples, flops, repeats) if adaptive else None,
        system.note,
    )


def _depth_cost(system: System, samples: Sequence[Sample], flops: FlopCount, repeats: int) -> DepthCost:
    decisions = _decisions(system, samples)
    free = _changed(system, hysteresis="none")
    stability = {"none": tau_statistics(*end_to_end(_decisions(free, samples)["tau"]))}
    stability_flops = {"none": count_run(free.model, _runner(free, samples)).total}
    assert isinstance(system.model, AdaptiveDepth)
    hysteresis = system.model.hysteresis
    stability[hysteresis] = tau_statistics(*end_to_end(decisions["tau"]))
    stability_flops[hysteresis] = flops.total
    shares = {name: float(np.concatenate(rows).mean()) for name, rows in decisions.items()}
    # Gated layers may end early even where every token is run; a blend never does.
    everything = _changed(system, execution="sparse", combine="residual", budget=1.0, keep=1.0)
    full = count_run(everything.model, _runner(everything, samples))
    deep = full.parts[DEEP]
    # With every position active the heads run again at each; the paper counts them once.
    shallow = _without_depth(system)
    once = count_run(shallow.model, _runner(shallow, samples)).parts["heads"]
    everywhere = full.total - deep - full.parts["heads"] + once
    formula = paper_formula(everywhere, deep, shares["tau"], shares["kept"])
    overhead = _overhead(system, max(samples, key=len), repeats)
    return DepthCost(shares["kept"], shares["active"], formula, stability, stability_flops, overhead)


def _changed(system: System, **settings: str | float) -> System:
    """The same weights, other settings."""
    model = copy.copy(system.model)
    for name, value in settings.items():
        if not isinstance(getattr(model, name), str | float | None):
            raise ValueError(f"{type(model).__name__}.{name} is no setting")
        setattr(model, name, value)
    return replace(system, model=model)


def _without_depth(system: System) -> System:
    """The same weights, no deep layer."""
    model = copy.copy(system.model)
    model._modules = {**model._modules, DEEP: nn.ModuleList()}  # the copy shares the parts with its original
    return replace(system, model=model)


def _decisions(system: System, samples: Sequence[Sample]) -> dict[str, list[NDArray[np.floating]]]:
    """tau, kept and active of each sample, (T,) each."""
    found: dict[str, list[NDArray[np.floating]]] = {"tau": [], "kept": [], "active": []}
    options = system.config.inference
    for sample in samples:
        depth = run_network(system.model, sample.features, options.max_length, None, options.precision).depth
        assert depth is not None
        for name, rows in found.items():
            rows.append(getattr(depth, name).float().numpy())
    return found


def _overhead(system: System, sample: Sample, repeats: int) -> Overhead:
    """On one pass over a sample, cut to what inference passes at once; and on a batch of shorter ones."""
    features = sample.features[: system.config.inference.max_length]
    one = torch.tensor(features)[None]
    several = one[:, :AT_ONCE_LENGTH].repeat(AT_ONCE, 1, 1)
    flops, layer_flops = count_flops(system.model, features), count_run(*_one_layer(system, one)).total
    return Overhead(
        sum(count for name, count in flops.parts.items() if name not in PATHS) / layer_flops,
        _deciding_time(system, one, repeats),
        _deciding_time(system, several, repeats),
    )


def _one_layer(system: System, batch: Tensor) -> tuple[TransformerLayer, Callable[[], Tensor]]:
    """A layer of the network's width, and a pass of it over as many random tokens as (B, T, F) has positions."""
    options = adaptive_depth(system.config.model)
    assert options is not None
    layer = TransformerLayer(options.width, options.heads, options.window).eval()
    tokens = torch.randn(*batch.shape[:2], options.width)
    layout = TokenLayout.build(torch.ones(batch.shape[:2], dtype=torch.bool), options.window)
    return layer, lambda: layer(tokens, layout)


def _deciding_time(system: System, batch: Tensor, repeats: int) -> float:
    """Time outside of projection, paths and heads, relative to one layer. batch: (B, T, F)."""
    layer, run_layer = _one_layer(system, batch)
    mask = torch.ones(batch.shape[:2], dtype=torch.bool)

    @torch.inference_mode()
    def run() -> None:
        with products_in(system.config.inference.precision):
            system.model(batch, mask)
            run_layer()

    # The parts of the network and the layer under one roof, so that each round times both.
    roof = nn.Module()
    for name, part in (*system.model.named_children(), ("layer", layer)):
        roof.add_module(name, part)
    seconds = time_parts(roof, run, repeats)
    return sum(spent for name, spent in seconds.items() if name not in (*PATHS, "layer")) / seconds["layer"]
