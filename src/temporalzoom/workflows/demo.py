"""The demo: train on the embedded benchmark without BDR, with BDR and with adaptive depth, measure, write a report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, load_config
from temporalzoom.console import plain_console
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.formats import write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.locks import alone_in
from temporalzoom.metrics import precision_recall
from temporalzoom.training import TrainingInterrupted, train
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.viewer.demo_report import SHOWN, Curves, write_demo_report
from temporalzoom.workflows.demo_measures import (
    THRESHOLDS,
    System,
    budget_curve,
    depth_by_place,
    measure_costs,
    refinement_gain,
    sequence_view,
    sharpness_errors,
)
from temporalzoom.workflows.demo_video import VIDEO_MISSING, run_video_act, videos_can_be_read
from temporalzoom.workflows.evaluate import evaluate_split

BASELINE, REFINED, ADAPTIVE = "uniform-6", "uniform-6+bdr", "tzn"
# The recipe `zoombench` has 600 steps; these are enough to see everything, in minutes.
STEPS = "training.steps=400"
SYSTEMS = {
    BASELINE: ("model.name=uniform-6", "bdr.enabled=false"),
    REFINED: ("model.name=uniform-6",),
    ADAPTIVE: ("model.name=tzn",),
}
FILES = ("results.json", "predictions.json", "report.html")


def demo_config(system: str, seed: int = 0, overrides: Sequence[str] = ()) -> Config:
    return load_config("zoombench", (STEPS, *SYSTEMS[system], *overrides, f"seed={seed}"))


def run_demo(
    out: Path, seed: int = 0, console: Console | None = None, *, overrides: Sequence[str] = (), video: bool = True
) -> dict[str, Any]:
    """Train, measure, report; then the same from video files, if they can be read. Returns what `results.json` holds.

    overrides: settings for all systems alike, after their own. video: whether to go on with video files.
    Ctrl-C is a KeyboardInterrupt wherever it comes, and leaves no report.
    """
    console = console or plain_console(stderr=True)
    configs = {name: demo_config(name, seed, overrides) for name in SYSTEMS}  # errors before an earlier run is touched
    with_video = video and videos_can_be_read()
    acts = Acts(len(SYSTEMS) + 4 + with_video, console)
    if video and not with_video:
        acts.note(VIDEO_MISSING)
    try:
        with alone_in(out):
            for name in FILES:  # of an earlier run: they would stand beside other models
                (out / name).unlink(missing_ok=True)
            return _run(out, seed, configs, acts, video, with_video)
    except TrainingInterrupted as stop:
        raise KeyboardInterrupt(str(stop)) from None


def _run(
    out: Path, seed: int, configs: Mapping[str, Config], acts: Acts, video: bool, with_video: bool
) -> dict[str, Any]:
    """video: whether the act with video files is asked for; with_video: and can be done."""
    console = acts.console
    data = load_data(configs[BASELINE].data, seed)
    assert data.train is not None and data.test is not None
    test = data.test
    acts.note(f"ZoomBench: {len(data.train.samples)} training and {len(test.samples)} test sequences")

    systems: dict[str, System] = {}
    for name, config in configs.items():
        acts.begin(f"training {name}")
        run, seconds = _train(config, data.train, out / name, console)
        acts.note(f"scoring {name} on the test sequences")
        localizer = Localizer.load(run, device="cpu")  # where its time is measured
        systems[name] = System(localizer, evaluate_split(localizer, test, THRESHOLDS, console), run, seconds)
    acts.begin("measuring cost: operations and time of one forward pass")
    measured = measure_costs(systems, BASELINE, test, console)
    acts.begin(f"comparing the refinement modes of {REFINED}")
    refinement = refinement_gain(systems[REFINED].localizer, test, console)
    acts.begin(f"trying {ADAPTIVE} with other budgets of depth")
    budgets = budget_curve(systems[ADAPTIVE], systems[BASELINE], test, console)
    acts.begin(f"looking where {ADAPTIVE} spends depth")
    mean_tau, tau = depth_by_place(systems[ADAPTIVE], test, console)
    shown: dict[str, Any] = {"video": None} if video else {}
    if with_video:
        acts.begin("from video files to segments: render, extract, train, localize")
        shown["video"] = run_video_act(out / "video", seed, console).summary(out)

    acts.note("writing the report")
    results = {
        "baseline": BASELINE,
        "refined": REFINED,
        "adaptive": ADAPTIVE,
        "systems": {name: system.summary() for name, system in systems.items()},
        "cost_measured_on": measured,
        "refinement": refinement,
        "boundary_error_by_sharpness": {name: sharpness_errors(system, test) for name, system in systems.items()},
        "mean_tau": mean_tau,
        "budget_curve": budgets,
        **shown,
    }
    longest = max(test.samples, key=lambda sample: len(sample.segments))
    curves = Curves(
        precision_recall={
            name: {t: precision_recall(test.truth(), system.evaluation.predictions, t)[:2] for t in (0.5, 0.7, 0.9)}
            for name, system in systems.items()
        },
        losses={name: system.losses() for name, system in systems.items()},
        tau=tau,
    )
    write_segments(out / "predictions.json", systems[ADAPTIVE].evaluation.predictions)
    write_demo_report(out / "report.html", results, sequence_view(systems, ADAPTIVE, longest), curves)
    with replacing(out / "results.json") as file:
        json.dump(results, file, indent=1)
    return results


class Acts:
    """Says what begins, one line each: `2/8 training uniform-6+bdr`."""

    def __init__(self, count: int, console: Console) -> None:
        self.count, self.begun, self.console = count, 0, console

    def begin(self, what: str) -> None:
        self.begun += 1
        self.note(f"{self.begun}/{self.count} {what}")

    def note(self, what: str) -> None:
        self.console.print(what, markup=False, highlight=False, soft_wrap=True)


def _train(config: Config, split: Split, run: Path, console: Console) -> tuple[Path, float]:
    """The folder of the run and the seconds that training took."""
    shutil.rmtree(run, ignore_errors=True)
    train(config, split, run, console=console)
    return run, read_metrics(run / "metrics.jsonl")[-1]["seconds"]


def results_table(results: Mapping[str, Any]) -> Table:
    """The table that the demo prints."""
    table = Table(
        title="ZoomBench, test sequences: mAP (%) by tIoU and averaged over .3:.7, mean boundary\n"
        f"error in frames; FLOPs and time of localization relative to {results['baseline']}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("system", no_wrap=True)
    for column in (*(f"@{t:g}" for t in SHOWN), "avg", "error", "FLOPs", "time", "training"):
        table.add_column(column, justify="right", no_wrap=True)
    baseline = results["systems"][results["baseline"]]
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
