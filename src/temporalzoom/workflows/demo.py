"""The demo: train on the embedded benchmark without BDR, with BDR and with adaptive depth, and show what came of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.table import Table

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, load_config
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.formats import write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_parameters, count_run
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.models.runtime import keep_freed_memory
from temporalzoom.training import train
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.workflows import recipes
from temporalzoom.workflows.evaluation import Evaluation, evaluate_split

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
AVERAGED = THRESHOLDS[:5]
SHOWN = (0.3, 0.5, 0.7, 0.9)
COSTED = 16  # test sequences

BASELINE, REFINED, ADAPTIVE = "uniform-6", "uniform-6+bdr", "tzn"
# The files configs/zoombench*.yaml hold the same for `tzoom train`, with all of the benchmark's steps: 600. These are
# enough to see everything, in minutes.
STEPS = "training.steps=400"
RECIPE = (*recipes.ZOOMBENCH, STEPS)
SYSTEMS = {name: recipes.SYSTEMS[name] for name in (BASELINE, REFINED, ADAPTIVE)}


@dataclass
class System:
    """One trained system of the demo."""

    localizer: Localizer
    evaluation: Evaluation
    run: Path
    training_seconds: float
    cost: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        scores = self.evaluation.summary()
        shown = [scores["mAP"][f"{t:g}"] for t in AVERAGED]
        rest = {key: value for key, value in scores.items() if key not in ("mAP", "average")}
        return {
            "mAP": scores["mAP"],
            "average_mAP": float(np.mean(shown)),
            **rest,
            "training_seconds": self.training_seconds,
            **self.cost,
        }


def demo_config(system: str, seed: int = 0) -> Config:
    return load_config(None, (*RECIPE, *SYSTEMS[system], f"seed={seed}"))


def run_demo(out: Path, seed: int = 0, console: Console | None = None) -> dict[str, Any]:
    """Train, evaluate, localize, report; then the same from video files. Returns what `results.json` holds."""
    from temporalzoom.workflows.demo_report import budget_curve, write_report
    from temporalzoom.workflows.demo_video import run_video_act

    console = console or Console(stderr=True)
    data = load_data(demo_config(BASELINE, seed).data, seed)
    train_split, test = data.train, data.test
    assert train_split is not None and test is not None
    counts = f"{len(train_split.samples)} training and {len(test.samples)} test sequences"
    console.print(f"ZoomBench: {counts}", highlight=False)
    systems = {name: _train_and_score(name, seed, train_split, test, out, console) for name in SYSTEMS}
    measure_costs(systems, test)
    refinement = _refinement_gain(systems[REFINED].localizer, test, console)
    curve = budget_curve(systems[ADAPTIVE], systems[BASELINE], test, console)
    video = run_video_act(out / "video", seed, console)
    results = {
        "systems": {name: system.summary() for name, system in systems.items()},
        "refinement": refinement,
        "budget_curve": curve,
        "video": video.summary(),
    }
    with replacing(out / "results.json") as file:
        json.dump(results, file, indent=1)
    write_segments(out / "predictions.json", systems[ADAPTIVE].evaluation.predictions)
    write_report(out / "report.html", systems, refinement, curve, test, video)
    return results


def _train_and_score(name: str, seed: int, train_split: Split, test: Split, out: Path, console: Console) -> System:
    run = out / name
    shutil.rmtree(run, ignore_errors=True)
    train(demo_config(name, seed), train_split, run, console=console)
    localizer = Localizer.load(run)
    seconds = read_metrics(run / "metrics.jsonl")[-1]["seconds"]
    return System(localizer, evaluate_split(localizer, test, THRESHOLDS, console), run, seconds)


@torch.inference_mode()
def measure_costs(systems: Mapping[str, System], test: Split, rounds: int = 15) -> None:
    """Executed FLOPs, latency and parameters of the networks, on the same real inputs, in turn in this process.

    The first `COSTED` test sequences go in at once, on one thread.
    """
    keep_freed_memory()  # as inference does
    features = torch.from_numpy(np.stack([sample.features for sample in test.samples[:COSTED]]))
    mask = torch.ones(features.shape[:2], dtype=torch.bool)

    runs = {name: partial(system.localizer.model, features, mask) for name, system in systems.items()}
    with threads(1):
        times = measure_latency(runs, rounds)
    for name, system in systems.items():
        flops = count_run(system.localizer.model, runs[name])
        ratio = latency_ratio(times[name], times[BASELINE])
        system.cost = {
            "flops": flops.total,
            "flops_by_part": flops.parts,
            "latency_ms": 1000 * times[name].median,
            "latency_ratio": [ratio.median, ratio.low, ratio.high],
            "parameters": count_parameters(system.localizer.model),
        }


def _refinement_gain(localizer: Localizer, test: Split, console: Console) -> dict[str, dict[str, float]]:
    """mAP of the same trained model under each refinement mode: what the zero crossings themselves bring."""
    gains = {}
    chosen = localizer.options
    for mode in ("none", "snap", "newton", "fuse"):
        localizer.options = chosen.model_copy(update={"refine": mode})
        gains[mode] = evaluate_split(localizer, test, THRESHOLDS, console).summary()["mAP"]
    localizer.options = chosen
    return gains


def results_table(results: Mapping[str, Any]) -> Table:
    """The table that the demo prints."""
    table = Table(
        title="ZoomBench, test sequences: mAP (%) by tIoU and averaged over .3:.7, mean\n"
        "boundary error in frames, FLOPs and latency of localization (of uniform-6)",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("system", no_wrap=True)
    for column in (*(f"@{t:g}" for t in SHOWN), "avg", "error", "FLOPs", "latency", "training"):
        table.add_column(column, justify="right", no_wrap=True)
    baseline = results["systems"][BASELINE]
    for name, scores in results["systems"].items():
        table.add_row(
            name,
            *(f"{100 * scores['mAP'][f'{t:g}']:.1f}" for t in SHOWN),
            f"{100 * scores['average_mAP']:.1f}",
            f"{scores['boundary_error_frames']:.2f}",
            f"{scores['flops'] / baseline['flops']:.2f}x",
            f"{scores['latency_ratio'][0]:.2f}x",
            f"{scores['training_seconds']:.0f} s",
        )
    return table
