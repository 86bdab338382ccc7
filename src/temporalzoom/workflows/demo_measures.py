"""What the demo measures on its trained systems: cost, refinement, the budget of depth, where depth goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from torch import nn

from temporalzoom.bdr import extract_boundaries
from temporalzoom.console import plain_console
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.zoombench import ZoomSample
from temporalzoom.datasets.zoombench_signal import SHARPNESS_KINDS, sharpness_kind
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.selection import drop_low
from temporalzoom.metrics import tiou
from temporalzoom.metrics.cost import count_parameters, count_run
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.models import TemporalZoom
from temporalzoom.models.runtime import keep_freed_memory
from temporalzoom.progress import track
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.viewer.demo_report import SequenceView
from temporalzoom.workflows.evaluate import Evaluation, evaluate_split

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
AVERAGED = THRESHOLDS[:5]
TIGHTEST = THRESHOLDS[-1]
COSTED, ROUNDS = 16, 15  # test sequences in one batch, and how often every system is timed on it
BUDGETS = (0.0, 0.05, 0.1, 0.2, 0.4, 1.0)
NEAR, FAR = 2, 6  # positions from a boundary
SILENT = plain_console(quiet=True, force_terminal=False)  # inside a loop that shows its own progress
DETECTION = ("class", "l1", "giou", "diou")  # those of the terms that a training has, by its box loss


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

    def losses(self) -> tuple[list[int], list[float]]:
        """(steps, detection losses) of its training."""
        lines = read_metrics(self.run / "metrics.jsonl")
        return [line["step"] for line in lines], [sum(line.get(term, 0.0) for term in DETECTION) for line in lines]


@torch.inference_mode()
def measure_costs(systems: Mapping[str, System], baseline: str, test: Split, console: Console) -> dict[str, Any]:
    """Executed FLOPs, latency and parameters of the networks, on the same real inputs, in turn in this process.

    The first `COSTED` test sequences go in at once, on one thread. Returns how it was measured.
    """
    keep_freed_memory()  # as inference does
    features = torch.from_numpy(np.stack([sample.features for sample in test.samples[:COSTED]]))
    mask = torch.ones(features.shape[:2], dtype=torch.bool)
    runs = {name: partial(system.localizer.model, features, mask) for name, system in systems.items()}
    with threads(1):
        times = measure_latency(runs, ROUNDS, watch=lambda rounds: track(rounds, "timing rounds", console))
    for name, system in systems.items():
        flops = count_run(system.localizer.model, runs[name])
        ratio = latency_ratio(times[name], times[baseline])
        system.cost = {
            "flops": flops.total,
            "flops_by_part": flops.parts,
            "latency_ms": 1000 * times[name].median,
            "latency_ratio": [ratio.median, ratio.low, ratio.high],
            "parameters": count_parameters(system.localizer.model),
        }
    return {"sequences": len(features), "rounds": ROUNDS, "threads": 1}


def refinement_gain(localizer: Localizer, test: Split, console: Console) -> dict[str, dict[str, float]]:
    """mAP of the same trained model under each refinement mode: what the zero crossings themselves bring."""
    gains = {}
    chosen = localizer.options
    try:
        for mode in track(("none", "snap", "newton", "fuse"), "refinement modes", console):
            localizer.options = chosen.model_copy(update={"refine": mode})
            gains[mode] = evaluate_split(localizer, test, THRESHOLDS, SILENT).summary()["mAP"]
    finally:
        localizer.options = chosen
    return gains


def budget_curve(adaptive: System, baseline: System, test: Split, console: Console) -> list[dict[str, Any]]:
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
        for budget in track((*BUDGETS, None), "budgets", console):
            model.budget = trained if budget is None else budget
            found = evaluate_split(adaptive.localizer, test, (*AVERAGED, TIGHTEST), SILENT)
            scores = found.summary()["mAP"]
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


def sharpness_errors(system: System, test: Split) -> dict[str, float | None]:
    """Median absolute error in frames of found starts and ends, by how abrupt the true boundary is; None: none found.

    Found: the shown prediction of the instance's class that overlaps it most, with a tIoU of at least 0.5.
    """
    errors: list[list[float]] = [[] for _ in SHARPNESS_KINDS]
    for sample in test.samples:
        assert isinstance(sample, ZoomSample)
        found = drop_low(system.evaluation.predictions[sample.name], system.localizer.options.threshold)
        truth = sample.segments
        overlap = tiou(truth.starts, truth.ends, found.starts, found.ends)
        overlap[truth.labels[:, None] != found.labels] = 0.0
        for row in np.flatnonzero(overlap.max(1, initial=0.0) >= 0.5):
            best = int(overlap[row].argmax())
            sides = (found.starts[best] - truth.starts[row], found.ends[best] - truth.ends[row])
            for side, width in zip(sides, sample.boundary_widths[row], strict=True):
                errors[int(sharpness_kind(width))].append(abs(side) * sample.grid.fps)
    return {
        kind: float(np.median(values)) if values else None for kind, values in zip(SHARPNESS_KINDS, errors, strict=True)
    }


def depth_by_place(system: System, test: Split, console: Console) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Mean tau by place (None: no such place), and all values `(N,)` near true boundaries and far from them."""
    near: list[NDArray[np.float64]] = []
    far: list[NDArray[np.float64]] = []
    central: list[NDArray[np.float64]] = []
    kinds: list[list[float]] = [[] for _ in SHARPNESS_KINDS]
    for sample in track(test.samples, "depth of test sequences", console):
        assert isinstance(sample, ZoomSample)
        depth = system.localizer.outputs(sample.features).depth
        assert depth is not None
        tau = depth.tau.double().numpy()
        positions = np.arange(len(sample))[:, None]
        ends = sample.grid.to_grid(np.stack((sample.segments.starts, sample.segments.ends), 1))
        distance = np.abs(positions - ends.reshape(1, -1))
        central.append(tau[np.abs(positions - ends.mean(1)).min(1, initial=np.inf) <= NEAR])
        closest = distance.min(1, initial=np.inf)
        near.append(tau[closest <= NEAR])
        far.append(tau[closest > FAR])
        for column, width in zip(distance.T, sample.boundary_widths.ravel(), strict=True):
            if (column <= NEAR).any():
                kinds[int(sharpness_kind(width))].append(float(tau[column <= NEAR].mean()))
    groups = {
        f"within {NEAR} positions of a boundary": np.concatenate(near),
        f"more than {FAR} positions from every boundary": np.concatenate(far),
    }
    places = groups | {f"within {NEAR} positions of the centre of an instance": np.concatenate(central)}
    places |= {f"at {kind} boundaries": np.array(kinds[i]) for i, kind in enumerate(SHARPNESS_KINDS)}
    return {name: float(values.mean()) if len(values) else None for name, values in places.items()}, groups


def sequence_view(systems: Mapping[str, System], adaptive: str, sample: Sample) -> SequenceView:
    """One sequence in detail: what every system found, and the fields and depths of the adaptive one."""
    localizer = systems[adaptive].localizer
    grid, threshold = sample.grid, localizer.options.threshold
    assert isinstance(threshold, float)  # the demo's own, one for all classes
    outputs = localizer.outputs(sample.features)
    assert outputs.distances is not None and outputs.depth is not None
    start_field, end_field = outputs.distances.double().numpy().T
    return SequenceView(
        name=sample.name,
        duration=sample.duration,
        classes=tuple(localizer.classes),
        truth=sample.segments,
        found={name: s.evaluation.predictions[sample.name].filter(min_score=threshold) for name, s in systems.items()},
        threshold=threshold,
        times=grid.to_seconds(np.arange(len(sample))),
        start_field=start_field * grid.stride,
        end_field=end_field * grid.stride,
        start_crossings=grid.to_seconds(extract_boundaries(start_field)[0]),
        end_crossings=grid.to_seconds(extract_boundaries(end_field)[0]),
        tau=outputs.depth.tau.double().numpy(),
        sigma=np.exp(0.5 * outputs.depth.log_variance.double().numpy()) * grid.stride,
        kept=outputs.depth.kept.numpy(),
        active=outputs.depth.active.numpy(),
    )
