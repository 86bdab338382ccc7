"""Train, evaluate, localize, sweep, cost: parse, call, print."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from temporalzoom import processes
from temporalzoom.cli.app import (
    Budget,
    DeviceOption,
    MergeGap,
    MinLength,
    NoOverlap,
    Overrides,
    Settings,
    Threshold,
    app,
    changed_settings,
    note,
    notes,
    report_skipped,
    say,
    screen,
)
from temporalzoom.errors import InputError
from temporalzoom.interrupts import exit_code
from temporalzoom.json_tree import nan_to_null


@app.command(epilog="Example: tzoom demo --out runs/demo")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for models, results.json and report.html")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of data and training")] = 0,
) -> None:
    """Train three small detectors on the embedded benchmark, score them, write a report. Minutes, no download."""
    try:
        from temporalzoom.workflows.demo import results_table, run_demo

        results = run_demo(out, seed, notes)
    except KeyboardInterrupt as stop:
        notes.print(str(stop) or "stopped", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(exit_code()) from None
    screen.print(results_table(results))
    if video := results["video"]:
        score = f"mAP@0.5 {100 * video['mAP']['0.5']:.1f} on unseen clips"
        screen.print(
            f"video: {video['segments']} segments in {video['clip']}, {score}", highlight=False, soft_wrap=True
        )
    screen.print(f"report: {out / 'report.html'}", highlight=False, soft_wrap=True)


@app.command(
    epilog="Examples: tzoom train sbhar --set data.root=FOLDER --out runs/first   |   "
    "tzoom train mine.yaml --out runs/mine --set training.steps=500"
)
def train(
    config: Annotated[str, typer.Argument(help="Configuration file (YAML), or the name of a recipe: tzoom recipes")],
    overrides: Overrides = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Folder of the run")] = Path("runs/latest"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run's last checkpoint")] = False,
    device: DeviceOption = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave out recordings without features")
    ] = False,
    same_bits: Annotated[
        bool,
        typer.Option("--deterministic", help="The same weights, bit for bit, whatever the number of cores; slower"),
    ] = False,
) -> None:
    """Train a detector. Ctrl-C saves a checkpoint first; --resume goes on as if nothing had happened."""
    from temporalzoom.device import deterministic
    from temporalzoom.training import TrainingInterrupted
    from temporalzoom.workflows.train import train as run_training

    changes = [*changed_settings(overrides, settings), *([] if device is None else [f"device={device}"])]
    try:
        with deterministic() if same_bits else nullcontext():
            run = run_training(
                config, out, overrides=changes, resume=resume, allow_missing=allow_missing, console=notes
            )
    except TrainingInterrupted as stop:
        again = shlex.join([a for a in sys.argv[1:] if a != "--resume"])
        count = processes.count()
        command = "tzoom" if count == 1 else f"torchrun --nproc-per-node {count} -m temporalzoom"
        note(f"{stop}\ngo on with: {command} {again} --resume")
        raise typer.Exit(exit_code()) from None
    if not processes.leads():
        return
    report_skipped(run.skipped)
    say(f"saved {run.checkpoint}")
    if run.has_test:
        say(f"score it with: tzoom eval --model {out}")


@app.command(
    "eval",
    epilog="Examples: tzoom eval --model runs/first   |   tzoom eval --model runs/first inference.refine=none   |   "
    "tzoom eval --model runs/first --report page.html   |   "
    "tzoom eval --predictions P.json --truth T.json --protocol th14 --tiou 0.3,0.5 --json",
)
def evaluate(
    overrides: Overrides = None,
    settings: Settings = None,
    model: Annotated[Path | None, typer.Option(help="Run or checkpoint folder to score on its test subset")] = None,
    predictions: Annotated[Path | None, typer.Option(help="Prediction file of any detector (JSON)")] = None,
    truth: Annotated[Path | None, typer.Option(help="Annotation file for --predictions (JSON)")] = None,
    subset: Annotated[str | None, typer.Option(help="Only this subset of --truth")] = None,
    protocol: Annotated[str, typer.Option(help="anet (ActivityNet toolkit) or th14 (THUMOS14 toolkit)")] = "anet",
    tiou: Annotated[
        str | None,
        typer.Option(help="tIoU thresholds, comma-separated; default: the model's evaluation.thresholds or 0.3 to 0.7"),
    ] = None,
    proposals: Annotated[bool, typer.Option("--proposals", help="Also AR@AN and AUC, labels unused")] = False,
    budget: Budget = None,
    device: DeviceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the model's predictions (.json, .csv, .vtt)")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page that shows what is found and what not")] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[CLASS=]SCORE",
            help="From which score on detections count in words and page, 0.4 or serve=0.4; may be repeated; "
            "default: where F1 is best",
        ),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave out recordings without features")
    ] = False,
) -> None:
    """Score a trained model, or the prediction file of any detector. With --model, settings of inference can be set."""
    from temporalzoom.workflows import evaluate as workflow
    from temporalzoom.workflows import report as pages

    thresholds = None if tiou is None else _thresholds(tiou)
    if as_json and threshold and report is None:
        raise InputError("--threshold is for the words and the --report; --json has scores of all thresholds only")
    if report is not None:
        pages.check_page(report)
    if (model is None) == (predictions is None):
        raise InputError("give either --model, or --predictions with --truth")
    if predictions is not None:
        if truth is None:
            raise InputError("--predictions needs --truth, the annotation file to score against")
        if out is not None:
            raise InputError("--out writes the predictions of a --model; --predictions are written already")
        changes = changed_settings(overrides, settings)
        if changes:
            raise InputError(f"override {changes[0]!r}: changes how a --model finds segments; --predictions are found")
        score = workflow.evaluate_file(predictions, truth, thresholds or workflow.DEFAULT_THRESHOLDS, protocol, subset)
    else:
        assert model is not None
        if truth is not None or subset is not None:
            raise InputError("--truth and --subset go with --predictions; a --model is scored on its own test subset")
        score = workflow.evaluate(
            model,
            thresholds,
            protocol,
            overrides=changed_settings(overrides, settings),
            budget=budget,
            device=device or "auto",
            allow_missing=allow_missing,
            out=out,
            console=notes,
        )
    report_skipped(score.skipped)
    chosen = pages.read_thresholds(threshold or (), score)
    if report is not None:
        pages.write_report(report, score, thresholds=chosen, next_steps=pages.next_steps(model), console=notes)
    if as_json:
        print(json.dumps(nan_to_null(score.summary(proposals)), indent=1, allow_nan=False))
        return
    if score.oracle:
        say(workflow.ORACLE)
    for table in score.tables(proposals):
        screen.print(table)
    for sentence in pages.summarize(score, chosen):
        say(sentence)
    if report is not None:
        say(f"wrote {report}")


@app.command(
    epilog="Examples: tzoom localize match7.mp4 --model runs/first --out match7.vtt --preview match7-found.mp4   |   "
    "tzoom localize features/match7.npy --model runs/first --top 20 --set inference.sigma=0.3"
)
def localize(
    recordings: Annotated[
        list[Path],
        typer.Argument(help="Videos, signals (.csv .parquet .edf), feature files (.npy .npz .pt .h5), or folders"),
    ],
    model: Annotated[Path, typer.Option(help="Run or checkpoint folder, or an exported file")],
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Write here: .json .csv .vtt .srt .eaf .labelstudio.json")] = None,
    budget: Budget = None,
    threshold: Threshold = None,
    merge_gap: MergeGap = None,
    min_length: MinLength = None,
    no_overlap: NoOverlap = None,
    top: Annotated[int | None, typer.Option(min=1, help="At most this many segments per recording")] = None,
    stride: Annotated[
        float | None, typer.Option(help="Frames between feature vectors, if other than in training")
    ] = None,
    window: Annotated[float | None, typer.Option(help="Frames per feature vector, if other than in training")] = None,
    fps: Annotated[float | None, typer.Option(help="Frames per second, if other than in training")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="What turns videos into features; default: what did so for training")
    ] = None,
    device: DeviceOption = None,
    preview: Annotated[
        Path | None, typer.Option(help="Write a copy of the one video with its segments below it (.mp4 .mkv .mov)")
    ] = None,
) -> None:
    """Find the actions in videos or feature sequences of any length."""
    from temporalzoom.workflows.localize import localize_files

    overrides = [str(given) for given in recordings if _is_override(given)]
    files = [given for given in recordings if str(given) not in overrides]
    if not files:
        raise InputError(f"{overrides[0]}: a setting; no video, feature file or folder was given")
    result = localize_files(
        files,
        model,
        overrides=changed_settings(overrides, settings),
        budget=budget,
        device=device or "auto",
        threshold=threshold,
        merge_gap=merge_gap,
        min_length=min_length,
        no_overlap=no_overlap,
        top=top,
        stride=stride,
        window=window,
        fps=fps,
        backbone=backbone,
        out=out,
        preview=preview,
        console=notes,
    )
    if out is None or str(out) in result.failed:
        for name, segments in result.segments.items():
            screen.print(segments.sort("start").table(title=f"{name}: {len(segments)} segments", limit=100))
    for path in result.written:
        say(f"wrote {path}")
    for reason in result.failed.values():
        note(f"failed: {reason}")
    if result.failed:
        raise typer.Exit(2)


def _is_override(given: Path) -> bool:
    """`section.key=value`, not a file that happens to have an equals sign in its name."""
    key, sign, _ = str(given).partition("=")
    return bool(sign) and "." in key and not given.exists()


@app.command(epilog="Example: tzoom sweep sweep.yaml --out runs/sweep --workers 2")
def sweep(
    definition: Annotated[Path, typer.Argument(help="Sweep file (YAML): data sets, systems, seeds")],
    out: Annotated[Path, typer.Option(help="Folder of the sweep; each training has its own below it")],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Trainings at a time; default: as many as fill the cores")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each training; results depend on it")] = 1,
) -> None:
    """Train and evaluate systems over data sets and seeds, in parallel. Ctrl-C stops; the same command goes on."""
    from temporalzoom.workflows.sweep import SweepInterrupted, run_sweep
    from temporalzoom.workflows.sweep_display import failures_table, results_table
    from temporalzoom.workflows.sweep_file import read_sweep

    plan = read_sweep(definition)
    try:
        result = run_sweep(
            plan.members, out, workers=workers, threads=threads, thresholds=plan.thresholds, console=notes
        )
    except SweepInterrupted as stop:
        again = shlex.join(sys.argv[1:])
        note(f"{stop}\ngo on with: tzoom {again}")
        raise typer.Exit(exit_code()) from None
    screen.print(results_table(result.done))
    if result.failed:
        screen.print(failures_table(result.failed))
        raise typer.Exit(1)


@app.command(
    epilog="Examples: tzoom cost zoombench --set model.share=0.2   |   "
    "tzoom cost --model runs/zoom --baseline-model runs/uniform --json"
)
def cost(
    config: Annotated[
        str | None, typer.Argument(help="Configuration file or recipe of a network with random weights; or use --model")
    ] = None,
    overrides: Overrides = None,
    settings: Settings = None,
    model: Annotated[Path | None, typer.Option(help="Run or checkpoint folder instead of CONFIG")] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="Configuration or recipe to compare with; default: uniform-6, all else equal"),
    ] = None,
    baseline_model: Annotated[Path | None, typer.Option(help="Run or checkpoint folder to compare with")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of both")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds of timing; each runs both")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables")] = False,
) -> None:
    """Measure FLOPs, time and memory of two networks side by side, on recordings of the test subset."""
    from temporalzoom.runs.members import read_members
    from temporalzoom.workflows.cost import compare_cost
    from temporalzoom.workflows.cost_tables import cost_notes, cost_tables

    changes = changed_settings(overrides, settings)
    members = None if model is None else read_members(model)
    if model is not None and members is not None:
        from temporalzoom.workflows.cost_members import members_cost, members_table

        if changes or baseline or baseline_model or config:
            raise InputError(f"{model}: holds several networks; settings and baselines go with one of them")
        costs = members_cost(model, members, repeats, threads, notes)
        if as_json:
            print(json.dumps([asdict(cost) for cost in costs], indent=1))
        else:
            screen.print(members_table(costs))
        return
    if config is not None and model is not None and "=" in config:  # with --model there are settings only
        changes, config = [config, *changes], None
    result = compare_cost(
        config,
        changes,
        model=model,
        baseline=baseline,
        baseline_model=baseline_model,
        threads_used=threads,
        repeats=repeats,
        console=notes,
    )
    for line in cost_notes(result):
        note(line)
    if as_json:
        print(json.dumps(result.summary(), indent=1))
        return
    for table in cost_tables(result):
        screen.print(table)


def _thresholds(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value <= 1 for value in values):
        raise InputError(f"--tiou {text!r}: expected numbers above 0 and up to 1, such as 0.3,0.5,0.7")
    return values
