"""The page of the demo: scores and cost, one test sequence in detail, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import nn

from temporalzoom.bdr import extract_boundaries
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.zoombench import SHARPNESS_KINDS, ZoomSample, sharpness_kind
from temporalzoom.metrics import precision_recall, tiou
from temporalzoom.metrics.cost import count_run
from temporalzoom.models import TemporalZoom
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.viewer.depth_plots import plot_budget_curve, plot_depth, plot_tau_histogram
from temporalzoom.viewer.plots import (
    plot_distance_fields,
    plot_map_by_threshold,
    plot_precision_recall,
    plot_timeline,
    plot_training,
)
from temporalzoom.viewer.report import Best, Report
from temporalzoom.workflows.demo import ADAPTIVE, AVERAGED, BASELINE, COSTED, SHOWN, System
from temporalzoom.workflows.demo_video import VideoAct, show_video_act
from temporalzoom.workflows.evaluation import evaluate_split

BUDGETS = (0.0, 0.05, 0.1, 0.2, 0.4, 1.0)
TIGHTEST = 0.9
DETECTION = ("class", "l1", "giou", "diou")  # those of the terms that a training has, by its box loss


def write_report(
    path: Path,
    systems: Mapping[str, System],
    refinement: Mapping[str, Mapping[str, float]],
    curve: Sequence[Mapping[str, Any]],
    test: Split,
    video: VideoAct | None = None,
) -> None:
    """curve: of `budget_curve`. video: the last act."""
    report = Report(
        "Temporal Zoom on ZoomBench",
        "Detectors trained by the demo on the embedded synthetic benchmark, scored on sequences they have not seen.",
    )
    report.heading("Scores")
    _score_table(report, systems)
    report.figure(
        plot_map_by_threshold({name: system.evaluation.detection.mAP for name, system in systems.items()}),
        "mAP over the overlap that a detection needs.",
    )
    report.heading("Cost")
    _cost_table(report, systems)
    report.heading("What refinement brings")
    report.text(
        "The same trained model (uniform-6+bdr), its segments left as they are (`none`) or moved to the zeros of the "
        "distance fields."
    )
    report.table(
        ["refine", *(f"mAP@{t:g}" for t in SHOWN)],
        [[mode, *(100 * maps[f"{t:g}"] for t in SHOWN)] for mode, maps in refinement.items()],
        highlight="max",
    )
    report.heading("Boundary error by sharpness")
    _sharpness_table(report, systems, test)
    report.heading("One test sequence")
    _show_sequence(report, systems, max(test.samples, key=lambda sample: len(sample.segments)))
    report.heading("Where depth is spent")
    _show_depth(report, systems[ADAPTIVE], test)
    _show_budgets(report, systems, curve)
    report.heading("Curves")
    curves = {
        name: {t: precision_recall(test.truth(), system.evaluation.predictions, t)[:2] for t in (0.5, 0.7, 0.9)}
        for name, system in systems.items()
    }
    report.figure(plot_precision_recall(curves), "Precision over recall, all classes pooled.")
    lines = {name: read_metrics(system.run / "metrics.jsonl") for name, system in systems.items()}
    losses = {
        name: ([line["step"] for line in found], [sum(line.get(term, 0.0) for term in DETECTION) for line in found])
        for name, found in lines.items()
    }
    report.figure(plot_training(losses, ylabel="detection loss"), "Detection loss in training (classes and boxes).")
    if video is not None:
        show_video_act(report, video, path.parent)
    report.write(path)


def _score_table(report: Report, systems: Mapping[str, System]) -> None:
    headers = ["system", *(f"mAP@{t:g}" for t in SHOWN), "avg .3:.7", "boundary error (frames)", "training (s)"]
    rows = []
    for name, system in systems.items():
        scores = system.summary()
        maps = [100 * scores["mAP"][f"{t:g}"] for t in SHOWN]
        error, seconds = f"{scores['boundary_error_frames']:.2f}", f"{scores['training_seconds']:.0f}"
        rows.append([name, *maps, 100 * scores["average_mAP"], error, seconds])
    best: list[Best] = ["max"] * (len(SHOWN) + 1)
    report.table(
        headers,
        rows,
        highlight=[None, *best, "min", None],
        caption="mAP in percent, ActivityNet protocol. Boundary error: mean over the starts and ends that were found.",
    )


def _cost_table(report: Report, systems: Mapping[str, System]) -> None:
    base = systems[BASELINE].cost
    rows = []
    for name, system in systems.items():
        cost = system.cost
        middle, low, high = cost["latency_ratio"]
        rows.append(
            [
                name,
                f"{cost['flops'] / 1e6:.0f}",
                f"{cost['flops'] / base['flops']:.3f}",
                f"{cost['latency_ms']:.1f}",
                f"{middle:.2f} [{low:.2f}, {high:.2f}]",
                f"{cost['parameters'] / 1e3:.0f}",
            ]
        )
    report.table(
        ["system", "MFLOPs", "relative", "latency (ms)", "relative [95 %]", "parameters (k)"],
        rows,
        caption=f"Operations that ran, and the time they took: the same {COSTED} test sequences at once, one thread, "
        "the systems in turn in one process.",
    )
    parts = systems[ADAPTIVE].cost["flops_by_part"]
    total = systems[ADAPTIVE].cost["flops"]
    report.table(
        ["part of tzn", "MFLOPs", "share (%)"],
        [[part, flops / 1e6, 100 * flops / total] for part, flops in parts.items() if flops],
        caption="Where the adaptive network's operations go.",
    )


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


def _show_sequence(report: Report, systems: Mapping[str, System], sample: Sample) -> None:
    threshold = systems[ADAPTIVE].localizer.options.threshold
    shown = {
        name: system.evaluation.predictions[sample.name].filter(min_score=threshold) for name, system in systems.items()
    }
    report.figure(
        plot_timeline(sample.segments, shown, sample.duration),
        f"Test sequence {sample.name}: truth above, predictions with a score of at least {threshold:g} below.",
    )
    grid = sample.grid
    times = grid.to_seconds(np.arange(len(sample)))
    outputs = systems[ADAPTIVE].localizer.outputs(sample.features)
    assert outputs.distances is not None and outputs.depth is not None
    depth = outputs.depth
    report.figure(
        plot_depth(
            times,
            depth.tau.numpy(),
            np.exp(0.5 * depth.log_variance.numpy()) * grid.stride,
            depth.kept.numpy(),
            depth.active.numpy(),
            sample.segments,
            0.5,
        ),
        "Adaptive depth on the same sequence: tau, the predicted error sigma of the distances in frames, and which "
        "positions were pruned, kept, or went through the deep path. Thin lines are the true boundaries.",
    )
    start_field, end_field = outputs.distances.double().numpy().T
    report.figure(
        plot_distance_fields(
            times,
            start_field * grid.stride,
            end_field * grid.stride,
            grid.to_seconds(extract_boundaries(start_field)[0]),
            grid.to_seconds(extract_boundaries(end_field)[0]),
            sample.segments,
        ),
        "The distance fields: how far away the model believes the nearest start and end to be. Rising zero crossings "
        "are boundaries; thin lines are the true ones.",
    )


def _show_depth(report: Report, system: System, test: Split) -> None:
    near: list[NDArray[np.float64]] = []
    far: list[NDArray[np.float64]] = []
    central: list[NDArray[np.float64]] = []
    kinds: list[list[float]] = [[] for _ in SHARPNESS_KINDS]
    for sample in test.samples:
        assert isinstance(sample, ZoomSample)
        depth = system.localizer.outputs(sample.features).depth
        assert depth is not None
        tau = depth.tau.double().numpy()
        positions = np.arange(len(sample))[:, None]
        ends = sample.grid.to_grid(np.stack((sample.segments.starts, sample.segments.ends), 1))
        distance = np.abs(positions - ends.reshape(1, -1))
        central.append(tau[np.abs(positions - ends.mean(1)).min(1, initial=np.inf) <= 2])
        closest = distance.min(1, initial=np.inf)
        near.append(tau[closest <= 2])
        far.append(tau[closest > 6])
        for column, width in zip(distance.T, sample.boundary_widths.ravel(), strict=True):
            if (column <= 2).any():
                kinds[int(sharpness_kind(width))].append(float(tau[column <= 2].mean()))
    groups = {"within 2 positions of a boundary": np.concatenate(near), "farther than 6": np.concatenate(far)}
    report.figure(plot_tau_histogram(groups), "How tau is distributed near true boundaries and far from them.")
    report.table(
        ["positions", "mean tau"],
        [[name, f"{values.mean():.3f}"] for name, values in groups.items()]
        + [["within 2 of the centre of an instance", f"{np.concatenate(central).mean():.3f}"]]
        + [
            [f"at {kind} boundaries", f"{np.mean(v):.3f}" if v else None]
            for kind, v in zip(SHARPNESS_KINDS, kinds, strict=True)
        ],
    )


def budget_curve(
    adaptive: System, baseline: System, test: Split, console: Console | None = None
) -> list[dict[str, Any]]:
    """Average mAP .3:.7, mAP at the tightest overlap and executed FLOPs relative to `baseline`, at each of `BUDGETS`;
    last as trained, budget None.

    FLOPs are counted on the first `COSTED` test sequences, as in the table of costs.
    """
    model = adaptive.localizer.model
    assert isinstance(model, TemporalZoom)
    whole = _count_flops(baseline.localizer.model, test)
    trained = model.budget
    points: list[dict[str, Any]] = []
    try:
        for budget in (*BUDGETS, None):
            model.budget = trained if budget is None else budget
            scores = evaluate_split(adaptive.localizer, test, (*AVERAGED, TIGHTEST), console).summary()["mAP"]
            points.append(
                {
                    "budget": budget,
                    "average_mAP": float(np.mean([scores[f"{t:g}"] for t in AVERAGED])),
                    "tightest_mAP": scores[f"{TIGHTEST:g}"],
                    "flops_ratio": _count_flops(model, test) / whole,
                }
            )
    finally:
        model.budget = trained
    return points


def _count_flops(model: nn.Module, test: Split) -> int:
    features = torch.from_numpy(np.stack([sample.features for sample in test.samples[:COSTED]]))
    mask = torch.ones(features.shape[:2], dtype=torch.bool)
    return count_run(model, lambda: model(features, mask)).total


def budget_points(
    systems: Mapping[str, System], curve: Sequence[Mapping[str, Any]], score: str
) -> dict[str, list[tuple[float, float]]]:
    """What a figure shows, by name: relative FLOPs and a score in percent, `average_mAP` or `tightest_mAP`."""
    whole = systems[BASELINE].cost["flops"]
    points: dict[str, list[tuple[float, float]]] = {}
    for name, system in systems.items():
        if name != ADAPTIVE:
            summary = system.summary()
            scores = {"average_mAP": summary["average_mAP"], "tightest_mAP": summary["mAP"][f"{TIGHTEST:g}"]}
            points[name] = [(system.cost["flops"] / whole, 100 * scores[score])]
    for point in curve:
        name = f"{ADAPTIVE}, as trained" if point["budget"] is None else f"{ADAPTIVE}, by budget"
        points.setdefault(name, []).append((point["flops_ratio"], 100 * point[score]))
    return points


def _show_budgets(report: Report, systems: Mapping[str, System], curve: Sequence[Mapping[str, Any]]) -> None:
    budgets = ", ".join(f"{100 * budget:g}" for budget in BUDGETS)
    report.figure(
        plot_budget_curve(budget_points(systems, curve, "average_mAP"), ylabel="average mAP .3:.7 (%)"),
        f"What depth buys: the trained {ADAPTIVE} with {budgets} % of the positions of each sequence allowed into the "
        "deep path, beside what its own threshold lets in and the systems of uniform depth.",
    )
    report.figure(
        plot_budget_curve(budget_points(systems, curve, "tightest_mAP"), ylabel=f"mAP@{TIGHTEST:g} (%)"),
        "The same at the tightest overlap, where boundaries decide.",
    )
