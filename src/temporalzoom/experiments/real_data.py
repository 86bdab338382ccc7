"""Benchmarks: the recipe of each data set, the systems, and what a table of them says.

A benchmark is a sweep (systems x seeds), then statistics over its predictions: intervals by blocked bootstrap over
recordings and seeds, differences paired by recording, Holm's correction over all differences of the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, load_config
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.experiments.retrofit import added_lines
from temporalzoom.formats.annotations import read_predictions
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
from temporalzoom.metrics.significance import holm
from temporalzoom.models.runtime import keep_freed_memory
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.segments import Segments
from temporalzoom.workflows.recipes import DETECTORS, OURS, RECIPES, RETROFIT, SYSTEMS, ZOOMS, Benchmark
from temporalzoom.workflows.sweep import PREDICTIONS, Member, run_sweep

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
AVERAGED = (0.3, 0.4, 0.5, 0.6, 0.7)
RESAMPLES = 10_000

Predictions = dict[str, Segments]


def bench_config(data_set: str, system: str, seed: int, root: Path | None, overrides: Sequence[str] = ()) -> Config:
    """The configuration of one training. overrides: for all systems alike, after their own."""
    if data_set not in RECIPES:
        raise InputError(f"bench: no recipe for data set {data_set!r}; there are {', '.join(RECIPES)}")
    if root is None and any("{root}" in setting for setting in RECIPES[data_set]):
        raise InputError(f"bench: {data_set} needs --root, the data set's folder")
    recipe = [setting.replace("{root}", str(root)) for setting in RECIPES[data_set]]
    zooms = ZOOMS.get(data_set, ()) if system.startswith("tzn") else ()
    return load_config(None, (*recipe, *SYSTEMS[system], *zooms, f"seed={seed}", *overrides))


def run_bench(
    data_set: str,
    root: Path | None,
    out: Path,
    *,
    benchmark: Benchmark = OURS,
    seeds: Sequence[int] = (0, 1, 2),
    systems: Sequence[str] | None = None,
    folds: int | None = None,
    overrides: Sequence[str] = (),
    workers: int | None = None,
    resamples: int = RESAMPLES,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train what is not trained yet, score it, write the benchmark's `results_file`. Returns what that holds.

    systems: of those of the benchmark, default all. folds: cross-validate; every recording is then scored, by a network
    that has not seen its subject, and a system has one training per seed and fold.
    """
    systems = systems or benchmark.systems
    unknown = [system for system in systems if system not in benchmark.systems]
    if unknown:
        raise InputError(f"bench: no system {unknown[0]!r}; there are {', '.join(benchmark.systems)}")
    parts = (
        {"": ()} if folds is None else {f"/fold-{k}": (f"data.folds={folds}", f"data.fold={k}") for k in range(folds)}
    )

    def member(system: str, seed: int, part: str) -> Member:
        settings = (*overrides, *parts[part])
        return Member(f"{system}/seed-{seed}{part}", bench_config(data_set, system, seed, root, settings))

    members = {(system, seed): [member(system, seed, part) for part in parts] for seed in seeds for system in systems}
    truth: Predictions = {}
    for one in next(iter(members.values())):
        data = load_data(one.config.data, one.config.seed, train=False)  # also: errors before hours of training
        assert data.test is not None
        truth |= data.test.truth()
    everyone = [one for several in members.values() for one in several]
    sweep = run_sweep(everyone, out, workers=workers, thresholds=THRESHOLDS, console=console)
    if sweep.failed:
        name, reason = next(iter(sweep.failed.items()))
        raise InputError(f"bench {data_set}: {len(sweep.failed)} trainings failed, the first {name}: {reason}")
    predictions: dict[str, list[Predictions]] = {system: [] for system in systems}
    runs: dict[str, list[Mapping[str, Any]]] = {system: [] for system in systems}
    for (system, _), several in members.items():
        found = [read_predictions(out / one.name / PREDICTIONS) for one in several]
        predictions[system].append({name: segments for part in found for name, segments in part.items()})
        runs[system].append(pooled([sweep.done[one.name] for one in several]))
    latencies = measure_latencies({s: out / members[s, seeds[0]][0].name for s in systems}, benchmark.baseline)
    results: dict[str, Any] = {
        "data_set": data_set,
        "benchmark": benchmark.name,
        "seeds": list(seeds),
        "folds": folds,
        "overrides": list(overrides),
        "test_recordings": len(truth),
        "test_instances": sum(map(len, truth.values())),
        "resamples": resamples,
        "systems": {
            system: levels(truth, predictions[system], resamples)
            | costs(runs[system], runs.get(benchmark.baseline))
            | latencies[system]
            for system in systems
        },
        "differences": differences(truth, predictions, benchmark.comparisons, resamples),
    }
    if benchmark is RETROFIT:
        for detector in DETECTORS:
            if f"{detector}+bdr" in results["systems"]:
                results["systems"][f"{detector}+bdr"]["added_lines"] = added_lines(detector)
    with replacing(out / results_file(benchmark, folds)) as file:
        json.dump(results, file, indent=1)
    return results


def results_file(benchmark: Benchmark, folds: int | None) -> str:
    """Where the results of a benchmark stand in its folder."""
    return benchmark.results_file if folds is None else f"folds-{folds}-{benchmark.results_file}"


def pooled(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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


def costs(runs: Sequence[Mapping[str, Any]], baseline: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
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
def measure_latencies(runs: Mapping[str, Path], baseline: str, rounds: int = 30) -> dict[str, dict[str, Any]]:
    """One forward pass over the recording of median length, one thread, all systems in turn in this process.

    The recording comes as each run's own configuration reads it.
    """
    keep_freed_memory()  # as inference does
    calls, positions = {}, {}
    subsets: dict[str, Split] = {}
    for name, run in runs.items():
        localizer, config = Localizer.load(run), read_info(find_checkpoint(run)).config
        key = config.data.model_dump_json()
        if key not in subsets:
            test = load_data(config.data, config.seed, train=False).test
            assert test is not None
            subsets[key] = test
        samples = sorted(subsets[key].samples, key=len)
        features = torch.from_numpy(samples[len(samples) // 2].features[: localizer.options.max_length].copy())[None]
        mask = torch.ones(features.shape[:2], dtype=torch.bool)
        calls[name], positions[name] = partial(localizer.model, features, mask), features.shape[1]
    with threads(1):
        times = measure_latency(calls, rounds)
    result: dict[str, dict[str, Any]] = {}
    for name in runs:
        result[name] = {"latency_ms": 1000 * times[name].median, "latency_positions": positions[name]}
        if baseline in times:
            ratio = latency_ratio(times[name], times[baseline])
            result[name]["latency_ratio"] = [ratio.median, ratio.low, ratio.high]
    return result


def differences(
    truth: Predictions,
    predictions: Mapping[str, Sequence[Predictions]],
    comparisons: Sequence[tuple[str, str]],
    resamples: int,
) -> dict[str, Any]:
    """`{"tzn - uniform-6": {"0.7": {"value", "low", "high", "p", "p_holm"}}}`, in percent; Holm over the table."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for first, second in comparisons:
        if first not in predictions or second not in predictions:
            continue
        found = paired_difference(truth, predictions[first], predictions[second], THRESHOLDS, resamples)
        rows = {f"{t:g}": found.by_threshold[t] for t in THRESHOLDS}
        if found.average is not None:
            rows["average"] = found.average
        table[f"{first} - {second}"] = {
            key: {"value": 100 * d.value, "low": 100 * d.low, "high": 100 * d.high, "p": d.p} for key, d in rows.items()
        }
    cells = [cell for rows in table.values() for cell in rows.values()]
    for cell, adjusted in zip(
        cells, holm([cell["p"] for cell in cells]).adjusted.tolist() if cells else [], strict=True
    ):
        cell["p_holm"] = adjusted
    return table
