"""The page of the demo, from its results: scores and cost, one test sequence in detail, where depth goes, curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.segments import Segments
from temporalzoom.viewer.depth_plots import plot_budget_curve, plot_depth, plot_tau_histogram
from temporalzoom.viewer.plots import (
    plot_distance_fields,
    plot_map_by_threshold,
    plot_precision_recall,
    plot_timeline,
    plot_training,
)
from temporalzoom.viewer.report import Best, Report

SHOWN = (0.3, 0.5, 0.7, 0.9)  # tIoU thresholds of the tables
TIGHTEST = SHOWN[-1]
Results = Mapping[str, Any]  # what results.json holds


@dataclass(frozen=True)
class SequenceView:
    """One test sequence: truth, what each system found with a score of at least `threshold`, and per position (T,) what
    the adaptive system computed; fields and sigma in frames, times and crossings (K,) in seconds."""

    name: str
    duration: float
    classes: tuple[str, ...]
    truth: Segments
    found: Mapping[str, Segments]
    threshold: float
    times: NDArray[np.float64]
    start_field: NDArray[np.float64]
    end_field: NDArray[np.float64]
    start_crossings: NDArray[np.float64]
    end_crossings: NDArray[np.float64]
    tau: NDArray[np.float64]
    sigma: NDArray[np.float64]
    kept: NDArray[np.bool_]
    active: NDArray[np.bool_]


@dataclass(frozen=True)
class Curves:
    """By system: (recall, precision) by tIoU threshold, (steps, losses); and tau (N,) in groups of positions."""

    precision_recall: Mapping[str, Mapping[float, tuple[ArrayLike, ArrayLike]]]
    losses: Mapping[str, tuple[ArrayLike, ArrayLike]]
    tau: Mapping[str, ArrayLike]


def write_demo_report(path: Path, results: Results, sequence: SequenceView, curves: Curves) -> None:
    """The page at `path`. Files of the video act are found beside it, by the relative paths in `results`, which
    have no `video` where that act was not asked for."""
    report = Report(
        "Temporal Zoom on ZoomBench",
        "Detectors trained by the demo on the embedded synthetic benchmark, scored on sequences they have not seen.",
    )
    _introduce(report, results)
    report.heading("Accuracy")
    _score_table(report, results)
    by_threshold = {
        name: {float(t): value for t, value in scores["mAP"].items()} for name, scores in results["systems"].items()
    }
    report.figure(plot_map_by_threshold(by_threshold), "mAP over the tIoU that a detection needs to count as correct.")
    report.heading("Cost")
    _cost_tables(report, results)
    report.heading("What refinement brings")
    _refinement_table(report, results)
    report.heading("Boundary error by sharpness")
    _sharpness_table(report, results)
    report.heading("One test sequence")
    _show_sequence(report, results, sequence)
    report.heading("Where depth is spent")
    _show_depth(report, results, curves)
    _show_budgets(report, results)
    report.heading("Curves")
    report.figure(
        plot_precision_recall(curves.precision_recall),
        "Precision over recall, all classes pooled, at three tIoU thresholds.",
    )
    report.figure(
        plot_training(curves.losses, ylabel="detection loss"),
        "Detection loss during training: classification and box regression, without the other terms.",
    )
    if "video" in results:
        report.heading("From a video file to segments")
        _show_video(report, results["video"], path.parent)
    report.write(path)


def _introduce(report: Report, results: Results) -> None:
    report.heading("Systems and terms")
    report.table(
        ["system", "what it is"],
        [
            [results["baseline"], "Baseline: every position of a sequence passes through six encoder layers."],
            [results["refined"], "The same network with boundary distance regression (BDR)."],
            [results["adaptive"], "Adaptive depth with BDR: deep layers run only at some positions."],
        ],
        caption="The systems. All are trained on the same sequences for the same number of steps.",
    )
    report.text(
        "Boundary distance regression (BDR) predicts, at every position, the signed distance to the nearest start and "
        "to the nearest end of an action. A boundary is where such a field crosses zero, so it can lie between two "
        "positions."
        "\n\n"
        "The temporal intersection over union (tIoU) of two segments is the length of their overlap over the length of "
        "their union. The mean average precision (mAP) is the average precision of a class, averaged over the classes, "
        "here in percent. For `mAP@0.5` a detection is correct if its tIoU with a true segment of its class is at "
        "least 0.5; at 0.9 only precise boundaries count."
    )


def _score_table(report: Report, results: Results) -> None:
    rows = []
    for name, scores in results["systems"].items():
        maps = [100 * scores["mAP"][f"{t:g}"] for t in SHOWN]
        error, seconds = f"{scores['boundary_error_frames']:.2f}", f"{scores['training_seconds']:.0f}"
        rows.append([name, *maps, 100 * scores["average_mAP"], error, seconds])
    best: list[Best] = ["max"] * (len(SHOWN) + 1)
    report.table(
        ["system", *(f"mAP@{t:g}" for t in SHOWN), "mean .3:.7", "error (frames)", "training (s)"],
        rows,
        highlight=[None, *best, "min", None],
        caption="mAP in percent, ActivityNet protocol, and its mean over the tIoU thresholds 0.3, 0.4, ..., 0.7. "
        "Error: mean distance of found starts and ends from the true ones. The best value of a column is bold.",
    )


def _cost_tables(report: Report, results: Results) -> None:
    systems, baseline, measured = results["systems"], results["baseline"], results["cost_measured_on"]
    base = systems[baseline]
    rows = []
    for name, cost in systems.items():
        middle, low, high = cost["latency_ratio"]
        rows.append(
            [
                name,
                f"{cost['flops'] / 1e6:.0f}",
                f"{cost['flops'] / base['flops']:.3f}",
                f"{cost['latency_ms']:.1f}",
                f"{cost['latency_ms'] / base['latency_ms']:.2f}",
                f"{middle:.2f} [{low:.2f}, {high:.2f}]",
                f"{cost['parameters'] / 1e3:.0f}",
            ]
        )
    report.table(
        [
            "system",
            "MFLOPs",
            f"of {baseline}",
            "median time (ms)",
            "ratio of medians",
            "paired ratio [95 %]",
            "weights (k)",
        ],
        rows,
        caption=f"Operations that ran and the time they took, {measured['sequences']} test sequences in one batch, "
        f"{measured['threads']} thread. Each of {measured['rounds']} rounds times every system once. Ratio of medians: "
        f"the median time over that of {baseline}. Paired ratio: time over that of {baseline} in the same round, the "
        "median of these over the rounds with its 95 % bootstrap interval. Where other programs disturb some rounds "
        "the two differ, and the paired ratio is the more reliable one.",
    )
    adaptive = systems[results["adaptive"]]
    report.table(
        [f"part of {results['adaptive']}", "MFLOPs", "share (%)"],
        [[n, flops / 1e6, 100 * flops / adaptive["flops"]] for n, flops in adaptive["flops_by_part"].items() if flops],
        caption="Where the operations of the adaptive network go.",
    )


def _refinement_table(report: Report, results: Results) -> None:
    report.text(
        f"One trained model, {results['refined']}, decoded in four ways. `none` leaves the segments as the boxes say. "
        "The others use the distance fields: `snap` moves each boundary to the nearest zero crossing, `newton` follows "
        "the field to its zero, `fuse` takes the mean of the box's end and that zero, weighted by their precision."
    )
    report.table(
        ["refinement", *(f"mAP@{t:g}" for t in SHOWN)],
        [[mode, *(100 * maps[f"{t:g}"] for t in SHOWN)] for mode, maps in results["refinement"].items()],
        highlight="max",
        caption=f"mAP of {results['refined']} in percent, by how its boundaries are refined.",
    )


def _sharpness_table(report: Report, results: Results) -> None:
    errors = results["boundary_error_by_sharpness"]
    kinds = list(next(iter(errors.values())))
    report.table(
        ["system", *kinds],
        [[name, *(by_kind[kind] for kind in kinds)] for name, by_kind in errors.items()],
        highlight="min",
        digits=2,
        caption="Median error in frames of the starts and ends that were found, by how abruptly the features change at "
        "the true boundary.",
    )


def _show_sequence(report: Report, results: Results, view: SequenceView) -> None:
    report.figure(
        plot_timeline(view.truth, view.found, view.duration, classes=view.classes),
        f"Test sequence {view.name}: truth above, predictions with a score of at least {view.threshold:g} below. Paler "
        "bars have lower scores.",
    )
    report.figure(
        plot_distance_fields(
            view.times, view.start_field, view.end_field, view.start_crossings, view.end_crossings, view.truth
        ),
        f"The distance fields of {results['adaptive']} on the same sequence: the predicted signed distance to the "
        "nearest start and to the nearest end. Rising zero crossings are boundaries; thin lines are the true ones.",
    )
    report.figure(
        plot_depth(view.times, view.tau, view.sigma, view.kept, view.active, view.truth, 0.5),
        "Adaptive depth on the same sequence: the depth τ that is predicted for each position, the predicted standard "
        "deviation σ of the distances in frames, and which positions were pruned, kept, or went through the "  # noqa: RUF001
        "deep path. Thin lines are the true boundaries.",
    )


def _show_depth(report: Report, results: Results, curves: Curves) -> None:
    report.figure(
        plot_tau_histogram(curves.tau),
        "Distribution of the depth τ near true boundaries and far from them. Dashed lines are the means.",
    )
    report.table(
        ["positions", "mean τ"],
        list(results["mean_tau"].items()),
        digits=3,
        caption="Mean depth τ over the test sequences, by place.",
    )


def budget_points(results: Results, score: str) -> dict[str, list[tuple[float, float]]]:
    """What a figure shows, by name: relative FLOPs and a score in percent, `average_mAP` or `tightest_mAP`."""
    systems, adaptive = results["systems"], results["adaptive"]
    whole = systems[results["baseline"]]["flops"]
    points: dict[str, list[tuple[float, float]]] = {}
    for name, summary in systems.items():
        if name != adaptive:
            value = summary["average_mAP"] if score == "average_mAP" else summary["mAP"][f"{TIGHTEST:g}"]
            points[name] = [(summary["flops"] / whole, 100 * value)]
    for point in results["budget_curve"]:
        name = f"{adaptive}, as trained" if point["budget"] is None else f"{adaptive}, by budget"
        points.setdefault(name, []).append((point["flops_ratio"], 100 * point[score]))
    return points


def _show_budgets(report: Report, results: Results) -> None:
    xlabel = f"executed FLOPs relative to {results['baseline']}"
    budgets = [f"{100 * point['budget']:g}" for point in results["budget_curve"] if point["budget"] is not None]
    report.figure(
        plot_budget_curve(budget_points(results, "average_mAP"), xlabel, "mean mAP .3:.7 (%)"),
        f"Accuracy over cost. The trained {results['adaptive']} with {', '.join(budgets)} % of the positions of each "
        "sequence allowed into the deep path, and with the share that its own threshold lets in; beside it the systems "
        "of uniform depth. One training each, so small differences may be chance.",
    )
    report.figure(
        plot_budget_curve(budget_points(results, "tightest_mAP"), xlabel, f"mAP@{TIGHTEST:g} (%)"),
        f"The same at a tIoU of {TIGHTEST:g}, where precise boundaries decide.",
    )


def _show_video(report: Report, video: Mapping[str, Any] | None, folder: Path) -> None:
    if video is None:
        report.text('Left out: reading and writing videos needs PyAV, `pip install "temporalzoom[video]"`.')
        return
    report.text(
        f"{video['clips']} clips were rendered, turned into features by the backbone `motion` (which has no weights), "
        f"and three quarters of them used for training. `{video['clip']}` is one of the others, as `tzoom localize` "
        "treats it: decoded, localized, and written as a copy with what was found."
    )
    report.video(
        folder / video["preview"],
        f"Segments found in {video['clip']}: label and score on the picture while they last; below it a time line with "
        "one row per class, overlapping segments in lanes of their own. The vertical line is the current time.",
    )
    thresholds: Sequence[str] = list(video["mAP"])
    report.table(
        ["", *(f"mAP@{t}" for t in thresholds)],
        [["unseen clips", *(100 * video["mAP"][t] for t in thresholds)]],
        caption="mAP in percent on the clips that were not trained on.",
    )
    report.text("The same segments as files beside this page:")
    report.links([(name, name) for name in (*video["files"], video["preview"])])
