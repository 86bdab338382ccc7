"""Ways to allocate depth, each at the executed FLOPs of `tzn`: its combination modes, controls, and competitors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.experiments.measures import Bench, differences, levels, measure_latencies
from temporalzoom.experiments.operating import DataCache, Point, Trained, joined, learning
from temporalzoom.experiments.reading import LEVELS, SHOWN, describe, differences_grid
from temporalzoom.experiments.rendering import Grid, Interval
from temporalzoom.experiments.systems import COMPETITORS, CONTROLS, TZN
from temporalzoom.metrics.cost import count_parameters
from temporalzoom.progress import track
from temporalzoom.viewer.embed import figure_svg
from temporalzoom.viewer.pareto_plot import plot_pareto
from temporalzoom.workflows.cost import AT_ONCE

SUMMARY = "ways to allocate depth at the executed FLOPs of tzn: combinations, controls, competitors"
REFERENCE = "tzn"
MODES = {f"tzn-{mode}": (*TZN, f"model.paper.combine={mode}") for mode in ("logits", "features", "layers")}
SYSTEMS: dict[str, tuple[str, ...]] = {REFERENCE: TZN, **MODES, **CONTROLS, **COMPETITORS}
COMPARISONS = tuple((REFERENCE, name) for name in SYSTEMS if name != REFERENCE)
_TAU = ("share", "warm-up", "sharpness", "limit of gains", "loss weight")
# What was chosen for such a system alone, beside what all of them share (layers, learning rate ...): numbers in its
# settings and in its code.
HYPERPARAMETERS: dict[str, tuple[str, ...]] = {
    REFERENCE: _TAU,
    **{name: _TAU for name in MODES},
    "tzn-random": ("share",),
    "tzn-regular": ("share",),
    "tzn-oracle": ("share",),
    "tzn-none": (),
    "tzn-all": (),
    "discrete-3": ("share", "2 depths", "loss weight"),
    "discrete-4": ("share", "3 depths", "loss weight"),
    "gumbel": ("share", "2 depths", "first, last temperature", "cooling"),
    "reinforce": ("share", "2 depths", "loss weight"),
    "early-exit": ("3 exits", "confidence"),
    "early-exit+temp": ("3 exits", "confidence", "loss weight"),
    "mixture": ("share",),
    "pruning": ("keep", "penalty"),
}
_SEVERAL = {"2 depths": 2, "3 depths": 3, "3 exits": 3, "first, last temperature": 2}
# Points of the figure: what depth costs, in units of what it costs tzn.
BUDGETS = (0.5, 1.0, 2.0, 4.0)
DRAWN = ("0.7", "0.9")


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return SYSTEMS


def measure(bench: Bench) -> dict[str, Any]:
    """Every system at the cost of the reference, and at several others for the figure."""
    data = DataCache()
    points: dict[str, list[Point]] = {name: [] for name in bench.parts}
    budgets: dict[str, list[list[Point]]] = {name: [] for name in bench.parts}
    first: dict[str, Trained] = {}
    costs = reference_costs(bench, data)
    for name in track(bench.parts, "at equal cost", bench.console, "systems"):
        for folders, targets in zip(bench.parts[name], costs, strict=True):
            at_reference, at_budgets = [], []
            for folder, (target, without) in zip(folders, targets, strict=True):
                trained = Trained(folder, data)
                native = trained.at(None) if name == REFERENCE else trained.at(target)
                others = {b: trained.at(without + b * (target - without)) for b in BUDGETS if b != 1 and trained.knob}
                at_reference.append(native)
                at_budgets.append([others.get(budget, native) for budget in BUDGETS])
                trained.restore(native)
                first.setdefault(name, trained)
            points[name].append(joined(at_reference))
            budgets[name].append([joined(folds) for folds in zip(*at_budgets, strict=True)])
    predictions = {name: [point.predictions for point in found] for name, found in points.items()}
    return {
        "baseline": REFERENCE,
        "systems": _systems(bench, points, first),
        "differences": differences(bench.truth, predictions, COMPARISONS, bench.resamples, bench.console),
        "budgets": {name: _curve(bench, found) for name, found in budgets.items()},
    }


def reference_costs(bench: Bench, data: DataCache) -> list[list[tuple[float, float]]]:
    """By seed and fold: FLOPs of tzn on validation data, as trained, and of the same network without depth."""
    if REFERENCE not in bench.parts:
        raise InputError(f"--systems: table depth matches all others to {REFERENCE}; add it")

    def both(folder: Path) -> tuple[float, float]:
        trained = Trained(folder, data)
        spent = trained.cost()
        model: Any = trained.localizer.model
        model.allocation = "none"
        return spent, trained.cost()

    return [[both(folder) for folder in folds] for folds in bench.parts[REFERENCE]]


def _systems(bench: Bench, points: Mapping[str, list[Point]], first: Mapping[str, Trained]) -> dict[str, Any]:
    localizers = {name: trained.localizer for name, trained in first.items()}
    one = measure_latencies(bench, REFERENCE, localizers=localizers)
    several = measure_latencies(bench, REFERENCE, 10, localizers, AT_ONCE)
    systems: dict[str, Any] = {}
    for name, found in track(points.items(), "intervals", bench.console, "systems"):
        flops = [point.flops for point in found]
        ratios = [a / b.flops for a, b in zip(flops, points[REFERENCE], strict=True)]
        systems[name] = {
            **levels(bench.truth, [point.predictions for point in found], bench.resamples),
            "gflops": float(np.mean(flops)) / 1e9,
            "flops_ratio": [float(np.mean(ratios)), min(ratios), max(ratios)],
            "parameters": count_parameters(localizers[name].model),
            **one[name],
            "at_once": several[name],
            "mean_depth": float(np.mean([point.depth for point in found])),
            "hyperparameters": list(HYPERPARAMETERS[name]),
            "matched": [point.summary() for point in found],
            **learning([folder for folds in bench.parts[name] for folder in folds]),
        }
    return systems


def _curve(bench: Bench, seeds: list[list[Point]]) -> list[dict[str, Any]]:
    """Of every budget: mean FLOPs and mAP over the seeds. A system that cannot get as cheap, or as dear, has its
    nearest point once."""
    curve: list[dict[str, Any]] = []
    for found in zip(*seeds, strict=True):
        gflops = float(np.mean([point.flops for point in found])) / 1e9
        if any(abs(gflops / before["gflops"] - 1) < 1e-3 for before in curve):
            continue
        reached = levels(bench.truth, [point.predictions for point in found], 2)["mAP"]
        curve.append({"gflops": gflops, "mAP": {t: reached[t][0] for t in DRAWN}, "matched": found[0].summary()})
    return curve


def read(results: Mapping[str, Any]) -> list[Grid]:
    grids = [_levels(results), _learning(results), differences_grid(results)]
    return [grid for grid in grids if grid.rows]


def _levels(results: Mapping[str, Any]) -> Grid:
    rows = []
    for name, system in results["systems"].items():
        cells = [Interval(*system["mAP"][t]) for t in SHOWN] + [Interval(*system["average"])]
        missed = [one for one in system["matched"] if one["knob"] is not None and not one["within"]]
        matched = " !" if missed else ""
        flops = f"{system['flops_ratio'][0]:.2f}x{matched}"
        times = [_ratio(system), _ratio(system["at_once"])]
        rows.append([name, *cells, flops, *times, f"{system['mean_depth']:.2f}"])
    columns = ("system", *LEVELS, "FLOPs", "time", f"{AT_ONCE} at once", "depth")
    notes = (
        "Each at the value of its own knob that executes what tzn does on validation data, within 5 %; !: not reached, "
        "the nearest is shown. Depth: deep layers per position.",
        "tzn-oracle is told the true boundaries: an ablation, not a result.",
    )
    return Grid(describe(results), columns, rows, notes)


def _learning(results: Mapping[str, Any]) -> Grid:
    rows = []
    for name, system in results["systems"].items():
        steps, variance = system["steps_to_90"], system["depth_gradient_variance"]
        noise = system["depth_gradient_noise"]
        chosen = system["hyperparameters"]
        knob = system["matched"][0]
        rows.append(
            [
                name,
                f"{sum(_SEVERAL.get(what, 1) for what in chosen)}",
                "-" if knob["knob"] is None else f"{knob['knob']} {knob['values'][0]:.3g}",
                "-" if steps is None else f"{steps:.0f}",
                "-" if variance is None else f"{variance:.2g}",
                "-" if noise is None else f"{noise:.2f}",
            ]
        )
    columns = ("system", "to choose", "matched by", "steps to 90 %", "gradient variance", "its share")
    title = "What has to be chosen, and how it is learned"
    notes = (
        "Steps to 90 % of the last mAP on validation data. Variance over the steps of the gradient of what decides "
        "about depth, mean over its parameters; its share of the mean square does not depend on the weight of a loss.",
    )
    return Grid(title, columns, rows, notes)


def _ratio(system: Mapping[str, Any]) -> str:
    return f"{system['latency_ratio'][0]:.2f}x" if "latency_ratio" in system else "-"


def draw(results: Mapping[str, Any], path: Path) -> None:
    """The figure: mAP over executed FLOPs, from stored results."""
    panels = {
        f"mAP@{t}": {
            name: [(point["gflops"], point["mAP"][t]) for point in curve] for name, curve in results["budgets"].items()
        }
        for t in DRAWN
    }
    with replacing(path) as file:
        file.write(figure_svg(plot_pareto(panels, "executed GFLOPs on the test", REFERENCE)))
