"""Actions by their length: counts, both systems, their difference, and how much depth tzn gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.measures import Bench, Predictions, compared
from temporalzoom.experiments.per_recording import summarized
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Cell, Grid, Interval
from temporalzoom.experiments.rereading import Way, read_again
from temporalzoom.experiments.systems import BASELINE, chosen
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.bootstrap import (
    BootstrapResult,
    bootstrap_interval,
    bootstrap_map_by_length,
    bootstrap_p_value,
    draw_recordings,
    draw_seeds,
    mean_over_seeds,
)
from temporalzoom.metrics.lengths import length_bins
from temporalzoom.metrics.significance import holm
from temporalzoom.models import Outputs

SUMMARY = "uniform-6 and tzn by the length of actions: mAP@0.7, difference, mean tau"
TZN = "tzn"
COMPARISONS = ((TZN, BASELINE),)
EDGES = (0.0, 2.0, 5.0, 10.0, math.inf)
BINS = ("< 2 s", "2-5 s", "5-10 s", "> 10 s")
THRESHOLD = 0.7
NOTES = (
    "In a bin its own instances are the positives; detections of others do not count, and those of nothing count as "
    "wrong in every bin. Depth: share of the positions within an instance that run deep; tau and depth are means over "
    "instances, then over recordings.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return chosen(BASELINE, TZN)


def depth_by_length(localizer: Localizer, sample: Sample, outputs: Outputs) -> dict[str, float]:
    """Of one recording: mean tau, and share of active positions, within the instances of each bin."""
    if outputs.depth is None:
        return {}
    tau, active = outputs.depth.tau.double().numpy(), outputs.depth.active.double().numpy()
    starts, ends = (sample.grid.to_grid(times) for times in (sample.segments.starts, sample.segments.ends))
    bins = length_bins(sample.segments.ends - sample.segments.starts, EDGES)
    positions = np.arange(len(tau))
    found: dict[str, float] = {}
    for index in range(len(BINS)):
        inside = [(positions >= s) & (positions <= e) for s, e in zip(starts, ends, strict=True)]
        own = [rows for rows, b in zip(inside, bins, strict=True) if b == index and rows.any()]
        found[f"tau {index}"] = float(np.mean([tau[rows].mean() for rows in own])) if own else np.nan
        found[f"depth {index}"] = 100 * float(np.mean([active[rows].mean() for rows in own])) if own else np.nan
    return found


def measure(bench: Bench) -> dict[str, Any]:
    means = {
        name: _by_length(bench.truth, seeds, bench.resamples, side)
        for side, (name, seeds) in enumerate(bench.predictions.items())
    }
    read = read_again(bench, {TZN: Way(TZN)}, depth_by_length, decode=False)
    depth = {key: {TZN: table} for found in read.values() for key, table in found.observed.items()}
    lengths = np.concatenate([s.ends - s.starts for s in bench.truth.values()])
    counts = np.bincount(length_bins(lengths, EDGES).clip(0), minlength=len(BINS)).tolist()
    both = set(means) == {TZN, BASELINE}
    return {
        **compared(bench, COMPARISONS, BASELINE),
        "lengths": {
            "instances": dict(zip(BINS, counts, strict=True)),
            "mAP": {name: [_level(one) for one in bins] for name, bins in means.items()},
            "difference": [
                _difference(a, b) for a, b in zip(means[TZN], means[BASELINE], strict=True)
            ] if both else [None] * len(BINS),
            "depth": {key: found["levels"][TZN] for key, found in summarized(depth, (), bench.resamples).items()},
        },
    }  # fmt: skip


def _by_length(truth: Predictions, seeds: Sequence[Predictions], resamples: int, side: int) -> list[BootstrapResult]:
    draws = draw_recordings(len(truth), resamples)
    each = [bootstrap_map_by_length(truth, found, THRESHOLD, EDGES, draws) for found in seeds]
    models = draw_seeds(len(each), resamples, side)
    return [mean_over_seeds(bins, models) for bins in zip(*each, strict=True)]


def _level(result: BootstrapResult) -> list[float] | None:
    if np.isnan(result.point).any():
        return None
    low, high = bootstrap_interval(result.samples[:, 0])
    return [100 * float(result.point[0]), 100 * low, 100 * high]


def _difference(first: BootstrapResult, second: BootstrapResult) -> dict[str, float] | None:
    if np.isnan(first.point).any():
        return None
    samples = np.round(first.samples[:, 0] - second.samples[:, 0], 12)
    low, high = bootstrap_interval(samples)
    value = 100 * float(first.point[0] - second.point[0])
    return {"value": value, "low": 100 * low, "high": 100 * high, "p": bootstrap_p_value(samples)}


def read(results: Mapping[str, Any]) -> list[Grid]:
    found = results["lengths"]
    known = [cell for cell in found["difference"] if cell is not None]
    adjusted = iter(holm([cell["p"] for cell in known]).adjusted.tolist() if known else [])
    rows: list[list[Cell]] = []
    for index, (name, count) in enumerate(found["instances"].items()):
        row: list[Cell] = [name, str(count)]
        for system in (BASELINE, TZN):
            level = found["mAP"][system][index] if system in found["mAP"] else None
            row.append("-" if level is None else Interval(*level))
        cell = found["difference"][index]
        row.append("-" if cell is None else Interval(cell["value"], cell["low"], cell["high"], next(adjusted)))
        for key, digits in (("tau", 3), ("depth", 1)):
            level = found["depth"].get(f"{key} {index}")
            row.append("-" if level is None else Interval(level[0], level[1], level[2], digits=digits))
        rows.append(row)
    columns = ("length", "instances", BASELINE, TZN, "difference", "tau", "depth, %")
    title = f"By length of the instances, mAP@{THRESHOLD:g}; * significant (Holm over these {len(known)}, 5 %)"
    return [Grid(title, columns, rows, NOTES), *compared_systems(results)]
