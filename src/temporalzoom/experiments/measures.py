"""What is measured of trained systems: mAP with intervals, costs, latencies, paired differences.

Intervals by blocked bootstrap over recordings and seeds, differences paired by recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from temporalzoom.config import BMNSection, Config
from temporalzoom.datasets.samples import Sample
from temporalzoom.datasets.sources import load_data
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.bootstrap import (
    BootstrapResult,
    bootstrap_interval,
    bootstrap_map,
    draw_recordings,
    draw_seeds,
    mean_over_seeds,
    paired_difference,
)
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.models.runtime import keep_freed_memory
from temporalzoom.progress import track
from temporalzoom.segments import Segments
from temporalzoom.training.batches import near_boundaries
from temporalzoom.workflows.cost import AT_ONCE_LENGTH

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
AVERAGED = (0.3, 0.4, 0.5, 0.6, 0.7)

Predictions = dict[str, Segments]
Run = Mapping[str, Any]


@dataclass(frozen=True)
class Bench:
    """The trained systems of a table, by name.

    configs, folders: of the first seed (and fold); predictions, runs: one per seed, those of folds put together. runs:
    what `result.json` of a training holds. parts: the folders of all trainings, by seed and fold.
    """

    data_set: str
    truth: Predictions
    configs: Mapping[str, Config]
    folders: Mapping[str, Path]
    predictions: Mapping[str, Sequence[Predictions]]
    runs: Mapping[str, Sequence[Run]]
    resamples: int
    _samples: dict[str, tuple[Sample, ...]] = field(default_factory=dict)
    console: Console | None = None  # for progress
    parts: Mapping[str, Sequence[Sequence[Path]]] = field(default_factory=dict)

    def samples(self, system: str) -> tuple[Sample, ...]:
        """The test subset as a system reads it, of the first fold where there are folds."""
        config = self.configs[system]
        key = config.data.model_dump_json()
        if key not in self._samples:
            test = load_data(config.data, config.seed, train=False).test
            assert test is not None
            self._samples[key] = test.samples
        return self._samples[key]


def compared(bench: Bench, comparisons: Sequence[tuple[str, str]], baseline: str) -> dict[str, Any]:
    """What most tables store: levels and costs of every system, and differences of pairs of them.

    baseline: the system whose costs are 1; where it was not asked for, the first that was.
    """
    if baseline not in bench.predictions:
        baseline = next(iter(bench.predictions))
    latencies = measure_latencies(bench, baseline)
    systems: dict[str, Any] = {}
    for name, predictions in track(bench.predictions.items(), "intervals", bench.console, "systems"):
        systems[name] = levels(bench.truth, predictions, bench.resamples)
        systems[name] |= costs(bench.runs[name], bench.runs.get(baseline)) | latencies[name]
        if isinstance(bench.configs[name].model, BMNSection):
            systems[name]["map"] = map_reach(bench, name, baseline)
    found = differences(bench.truth, bench.predictions, comparisons, bench.resamples, bench.console)
    return {"baseline": baseline, "systems": systems, "differences": found}


def pooled(parts: Sequence[Run]) -> dict[str, Any]:
    """The results of the folds of one system and seed as one: what all recordings cost, what one training takes."""
    return {
        **parts[0],
        "flops": sum(part["flops"] for part in parts),
        "training_seconds": float(np.mean([part["training_seconds"] for part in parts])),
        "localization_seconds": sum(part["localization_seconds"] for part in parts),
    }


def levels(truth: Predictions, seeds: Sequence[Predictions], resamples: int) -> dict[str, Any]:
    """Mean over seeds and interval of mAP, in percent: `{"mAP": {"0.7": [mean, low, high]}, "average": [...], ...}`."""
    draws = draw_recordings(len(truth), resamples)
    each = [bootstrap_map(truth, predictions, THRESHOLDS, draws=draws) for predictions in seeds]
    mean = mean_over_seeds(each, draw_seeds(len(each), resamples) if len(each) > 1 else None)
    return {
        "mAP": {f"{t:g}": _level(mean, [t]) for t in THRESHOLDS},
        "average": _level(mean, AVERAGED),
        "each_seed": [
            {f"{t:g}": 100 * value for t, value in zip(THRESHOLDS, run.point.tolist(), strict=True)} for run in each
        ],
    }


def _level(result: BootstrapResult, thresholds: Sequence[float]) -> list[float]:
    point, samples = result.over(thresholds)
    low, high = bootstrap_interval(samples)
    return [100 * point, 100 * low, 100 * high]


def costs(runs: Sequence[Run], baseline: Sequence[Run] | None) -> dict[str, Any]:
    """Executed FLOPs on the whole test subset, also as a share of the baseline's; parameters; seconds."""
    flops = [run["flops"] for run in runs]
    ratios = [a / b["flops"] for a, b in zip(flops, baseline, strict=True)] if baseline is not None else []
    return {
        "gflops": float(np.mean(flops)) / 1e9,
        "flops_ratio": [float(np.mean(ratios)), min(ratios), max(ratios)] if ratios else None,
        "parameters": runs[0]["parameters"],
        "training_seconds": float(np.mean([run["training_seconds"] for run in runs])),
        "localization_seconds": float(np.mean([run["localization_seconds"] for run in runs])),
    }


@torch.inference_mode()
def measure_latencies(
    bench: Bench,
    baseline: str,
    rounds: int = 30,
    localizers: Mapping[str, Localizer] | None = None,
    at_once: int = 1,
) -> dict[str, dict[str, Any]]:
    """One forward pass over the recording of median length, one thread, all systems in turn in this process.

    The recording comes as each system's own configuration reads it. localizers: in the place of the trained ones.
    at_once: a batch of that many times the recording, each cut to AT_ONCE_LENGTH where there are several.
    """
    keep_freed_memory()  # as inference does
    calls, positions = {}, {}
    for name, folder in bench.folders.items():
        localizer = Localizer.load(folder, device="cpu") if localizers is None else localizers[name]
        samples = sorted(bench.samples(name), key=len)
        longest = min(bench.configs[name].inference.max_length, AT_ONCE_LENGTH if at_once > 1 else 2**30)
        middle = samples[len(samples) // 2]
        features = torch.from_numpy(middle.features[:longest].copy())[None].repeat(at_once, 1, 1)
        mask = torch.ones(features.shape[:2], dtype=torch.bool)
        told = told_boundaries(localizer, middle, mask)
        calls[name], positions[name] = partial(localizer.model, features, mask, **told), features.shape[1]
    with threads(1):
        times = measure_latency(calls, rounds, watch=lambda turns: track(turns, "timing", bench.console, "rounds"))
    result: dict[str, dict[str, Any]] = {}
    for name in bench.folders:
        result[name] = {"latency_ms": 1000 * times[name].median, "latency_positions": positions[name]}
        if baseline in times:
            ratio = latency_ratio(times[name], times[baseline])
            result[name]["latency_ratio"] = [ratio.median, ratio.low, ratio.high]
    return result


def told_boundaries(localizer: Localizer, sample: Sample, mask: Tensor) -> dict[str, Tensor]:
    """What an oracle is told of a sample in a batch of it with this mask (B, T), as arguments of its network."""
    reach = localizer.description.oracle_reach
    if reach is None:
        return {}
    starts, ends = (sample.grid.to_grid(times) for times in (sample.segments.starts, sample.segments.ends))
    return {"boundaries": near_boundaries(starts, ends, mask.shape[1], reach).expand(mask.shape)}


def differences(
    truth: Predictions,
    predictions: Mapping[str, Sequence[Predictions]],
    comparisons: Sequence[tuple[str, str]],
    resamples: int,
    console: Console | None = None,
    models: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """`{"tzn - uniform-6": {"0.7": {"value", "low", "high", "p"}}}`, in percent.

    p is that of one difference: what a table shows of them is corrected together, when it is read. models: whose
    networks each of them has; those of the same ones are paired by network too.
    """
    whose = models or {name: name for name in predictions}
    table: dict[str, dict[str, dict[str, float]]] = {}
    for first, second in track(comparisons, "differences", console, "pairs"):
        if first not in predictions or second not in predictions:
            continue
        same = whose[first] == whose[second]
        found = paired_difference(
            truth, predictions[first], predictions[second], THRESHOLDS, resamples, same_models=same
        )
        rows = {f"{t:g}": found.by_threshold[t] for t in THRESHOLDS}
        if found.average is not None:
            rows["average"] = found.average
        table[f"{first} - {second}"] = {
            key: {"value": 100 * d.value, "low": 100 * d.low, "high": 100 * d.high, "p": d.p} for key, d in rows.items()
        }
    return table


def map_reach(bench: Bench, system: str, baseline: str) -> dict[str, Any]:
    """How small `bmn` had to be, beside the baseline where that is there; longer: share of the test instances that its
    map of `durations` positions cannot hold."""
    config = bench.configs[system]
    assert isinstance(config.model, BMNSection)
    durations = config.model.durations
    lengths = [s.segments.ends - s.segments.starts for s in bench.samples(system)]
    steps = [sample.grid.step_seconds for sample in bench.samples(system)]
    positions = np.concatenate([length / step for length, step in zip(lengths, steps, strict=True)])
    return {
        "durations": durations,
        "longer": float(np.mean(positions > durations * (1 + 1e-9))) if len(positions) else 0.0,
        "trained": _size(config),
        baseline: _size(bench.configs[baseline]) if baseline in bench.configs else None,
    }


def _size(config: Config) -> dict[str, int]:
    return {
        "crops": config.training.batch_size,
        "length": config.training.length,
        "width": config.model.width,
    }
