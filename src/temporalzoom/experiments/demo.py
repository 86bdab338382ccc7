"""The demo: train on the embedded benchmark without and with BDR, score both, and write a page that shows it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from temporalzoom.atomic import replacing
from temporalzoom.bdr import extract_boundaries
from temporalzoom.config import Config, load_config
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.datasets.zoombench import SHARPNESS_KINDS, ZoomSample, sharpness_kind
from temporalzoom.experiments.evaluation import Evaluation, evaluate_split
from temporalzoom.exports import write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics import precision_recall, tiou
from temporalzoom.training import train
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.viewer.plots import (
    plot_distance_fields,
    plot_map_by_threshold,
    plot_precision_recall,
    plot_timeline,
    plot_training,
)
from temporalzoom.viewer.report import Best, Report

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SHOWN = (0.3, 0.5, 0.7, 0.9)

# The recipe of the demo, small enough for a laptop; configs/zoombench.yaml holds the same for `tzoom train`.
RECIPE = (
    "model.width=64",
    "model.dropout=0",
    "training.steps=600",
    "training.learning_rate=3e-3",
    "training.warmup_steps=50",
    "training.ema_decay=0.99",
    "training.focal_alpha=0.5",
    "bdr.radius=8",
    "bdr.weight=0.15",
)
SYSTEMS = {"uniform-6": ("model.name=uniform-6", "bdr.enabled=false"), "uniform-6+bdr": ("model.name=uniform-6",)}


@dataclass
class System:
    """One trained system of the demo."""

    localizer: Localizer
    evaluation: Evaluation
    run: Path
    training_seconds: float

    def summary(self) -> dict[str, Any]:
        scores = self.evaluation.summary()
        average = scores["mAP"]
        return {
            "mAP": average,
            "average_mAP": float(np.mean([average[f"{t:g}"] for t in (0.3, 0.4, 0.5, 0.6, 0.7)])),
            **{k: v for k, v in scores.items() if k not in ("mAP", "average")},
            "training_seconds": self.training_seconds,
        }


def demo_config(system: str, seed: int = 0) -> Config:
    return load_config(None, (*RECIPE, *SYSTEMS[system], f"seed={seed}"))


def run_demo(out: Path, seed: int = 0, console: Console | None = None) -> dict[str, Any]:
    """Train, evaluate, localize, report. Returns what `results.json` holds."""
    console = console or Console(stderr=True)
    data = load_data(demo_config("uniform-6", seed).data, seed)
    assert data.train is not None and data.test is not None
    console.print(
        f"ZoomBench: {len(data.train.samples)} training and {len(data.test.samples)} test sequences", highlight=False
    )
    systems = {name: _train_and_score(name, seed, data.train, data.test, out, console) for name in SYSTEMS}
    refinement = _refinement_gain(systems["uniform-6+bdr"].localizer, data.test, console)
    results = {"systems": {name: system.summary() for name, system in systems.items()}, "refinement": refinement}
    with replacing(out / "results.json") as file:
        json.dump(results, file, indent=1)
    write_segments(out / "predictions.json", systems["uniform-6+bdr"].evaluation.predictions)
    write_report(out / "report.html", systems, refinement, data.test)
    return results


def _train_and_score(name: str, seed: int, train_split: Split, test: Split, out: Path, console: Console) -> System:
    run = out / name
    shutil.rmtree(run, ignore_errors=True)
    train(demo_config(name, seed), train_split, run, console=console)
    localizer = Localizer.load(run)
    seconds = read_metrics(run / "metrics.jsonl")[-1]["seconds"]
    return System(localizer, evaluate_split(localizer, test, THRESHOLDS, console), run, seconds)


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
        title="ZoomBench, test sequences: mAP in percent by tIoU, average over .3:.7, mean boundary error",
        title_justify="left",
    )
    table.add_column("system", no_wrap=True)
    for column in (*(f"@{t:g}" for t in SHOWN), "average", "frames off", "training"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, scores in results["systems"].items():
        maps = [f"{100 * scores['mAP'][f'{t:g}']:.1f}" for t in SHOWN]
        table.add_row(
            name,
            *maps,
            f"{100 * scores['average_mAP']:.1f}",
            f"{scores['boundary_error_frames']:.2f}",
            f"{scores['training_seconds']:.0f} s",
        )
    return table


def write_report(
    path: Path, systems: Mapping[str, System], refinement: Mapping[str, Mapping[str, float]], test: Split
) -> None:
    """The page: scores, one test sequence in detail, curves."""
    report = Report(
        "Temporal Zoom on ZoomBench",
        "Detectors trained by the demo on the embedded synthetic benchmark, scored on sequences they have not seen.",
    )
    report.heading("Scores")
    headers = ["system", *(f"mAP@{t:g}" for t in SHOWN), "avg .3:.7", "boundary error (frames)", "training (s)"]
    rows = []
    for name, system in systems.items():
        scores = system.summary()
        maps = [100 * scores["mAP"][f"{t:g}"] for t in SHOWN]
        rows.append(
            [
                name,
                *maps,
                100 * scores["average_mAP"],
                f"{scores['boundary_error_frames']:.2f}",
                f"{scores['training_seconds']:.0f}",
            ]
        )
    best: list[Best] = ["max"] * (len(SHOWN) + 1)
    report.table(
        headers,
        rows,
        highlight=[None, *best, "min", None],
        caption="mAP in percent, ActivityNet protocol. Boundary error: mean over the starts and ends that were found.",
    )
    report.figure(
        plot_map_by_threshold({n: s.evaluation.detection.mAP for n, s in systems.items()}),
        "mAP over the overlap that a detection needs.",
    )
    report.heading("What refinement brings")
    report.text(
        "The same trained model, its segments left as they are (`none`) or moved to the zeros of the distance fields."
    )
    report.table(
        ["refine", *(f"mAP@{t:g}" for t in SHOWN)],
        [[mode, *(100 * maps[f"{t:g}"] for t in SHOWN)] for mode, maps in refinement.items()],
        highlight="max",
    )
    report.heading("Boundary error by sharpness")
    _sharpness_table(report, systems, test)
    report.heading("One test sequence")
    _show_sequence(report, systems, test)
    report.heading("Curves")
    curves = {
        name: {t: precision_recall(test.truth(), system.evaluation.predictions, t)[:2] for t in (0.5, 0.7, 0.9)}
        for name, system in systems.items()
    }
    report.figure(plot_precision_recall(curves), "Precision over recall, all classes pooled.")
    losses = {name: read_metrics(system.run / "metrics.jsonl") for name, system in systems.items()}
    detection = {
        name: ([line["step"] for line in lines], [line["class"] + line["l1"] + line["giou"] for line in lines])
        for name, lines in losses.items()
    }
    report.figure(
        plot_training(detection, ylabel="detection loss"), "Detection loss during training (classes, L1, GIoU)."
    )
    report.write(path)


def _sharpness_table(report: Report, systems: Mapping[str, System], test: Split) -> None:
    rows = []
    for name, system in systems.items():
        errors = sharpness_errors(system, test)
        rows.append([name, *(f"{np.median(e):.2f}" if len(e) else None for e in errors)])
    report.table(
        ["system", *SHARPNESS_KINDS],
        rows,
        highlight="min",
        caption="Median error in frames of the starts and ends that were found, by how abrupt the true boundary is.",
    )


def sharpness_errors(system: System, test: Split) -> list[NDArray[np.float64]]:
    """Absolute errors in frames of found starts and ends, one array per kind of boundary.

    Found: the shown prediction of the instance's class that overlaps it most, with a tIoU of at least 0.5.
    """
    errors: list[list[float]] = [[] for _ in SHARPNESS_KINDS]
    for sample in test.samples:
        assert isinstance(sample, ZoomSample)
        found = system.evaluation.predictions[sample.name].filter(min_score=system.localizer.options.threshold)
        truth = sample.segments
        overlap = tiou(truth.starts, truth.ends, found.starts, found.ends)
        overlap[truth.labels[:, None] != found.labels] = 0.0
        for row in np.flatnonzero(overlap.max(1, initial=0.0) >= 0.5):
            best = int(overlap[row].argmax())
            sides = (found.starts[best] - truth.starts[row], found.ends[best] - truth.ends[row])
            for side, width in zip(sides, sample.boundary_widths[row], strict=True):
                errors[int(sharpness_kind(width))].append(abs(side) * sample.grid.fps)
    return [np.array(kind) for kind in errors]


def _show_sequence(report: Report, systems: Mapping[str, System], test: Split) -> None:
    sample = max(test.samples, key=lambda s: len(s.segments))
    shown = {
        n: s.evaluation.predictions[sample.name].filter(min_score=s.localizer.options.threshold)
        for n, s in systems.items()
    }
    report.figure(
        plot_timeline(sample.segments, shown, sample.duration),
        f"Test sequence {sample.name}: truth above, predictions with a score of at least "
        f"{next(iter(systems.values())).localizer.options.threshold:g} below.",
    )
    grid = sample.grid
    fields = systems["uniform-6+bdr"].localizer.outputs(sample.features).distances
    assert fields is not None
    start_field, end_field = fields.double().numpy().T
    report.figure(
        plot_distance_fields(
            grid.to_seconds(np.arange(len(sample))),
            start_field * grid.stride,
            end_field * grid.stride,
            grid.to_seconds(extract_boundaries(start_field)[0]),
            grid.to_seconds(extract_boundaries(end_field)[0]),
            sample.segments,
        ),
        "The distance fields of the same sequence: how far away the model believes the nearest start and end "
        "to be. Rising zero crossings are boundaries; thin lines are the true ones.",
    )
