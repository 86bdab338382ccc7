"""`tzoom distill`: a student of six layers with exits after two, four and six, taught by a trained `tzn`.

Its folder is an ordinary run, with `teacher.json`, who taught it, and `distillation.json`, what that was worth: how
much of the teacher's mAP the student keeps, and what both cost in training and in use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, changed
from temporalzoom.config.networks import TAUGHT
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.json_tree import nan_to_null, parse_json
from temporalzoom.runs.checkpoint import find_checkpoint, list_checkpoints, read_info
from temporalzoom.training.teacher import check_teacher
from temporalzoom.workflows.evaluate import evaluate_run
from temporalzoom.workflows.train import train
from temporalzoom.workflows.training_cost import Cost, measure_costs

DEPTHS = (2, 4, 6)
BASELINE = "uniform-6"
TEACHER, RESULT = "teacher.json", "distillation.json"


@dataclass(frozen=True)
class Taught:
    """One row of the table. mAP: average over the tIoU thresholds of the teacher's configuration; retention: as a share
    of the teacher's."""

    name: str
    run: Path
    mAP: float
    retention: float
    cost: Cost


def distill(
    run: str | Path,
    out: str | Path,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    baseline: str | Path | None = None,
    compare: bool = False,
    repeats: int = 5,
    console: Console | None = None,
) -> list[Taught]:
    """Train the student of a run, and score and cost both. Returns the rows: teacher, student, baseline if any.

    Args:
        run: of the teacher, a `tzn`.
        out: folder of the student.
        overrides: settings of the student, `section.key=value`; all others are the teacher's.
        resume: go on with a student that was begun.
        baseline: a trained run, of `uniform-6` or any other network, for a third row.
        compare: train that `uniform-6`, in `out/uniform-6`; it goes on by itself.
        repeats: timed rounds of each system.
        console: for progress.

    Example:
        >>> from temporalzoom.workflows.distill import distill
        >>> rows = distill("runs/teacher", "runs/student")  # doctest: +SKIP
    """
    run, out = Path(run), Path(out)
    if baseline is not None and compare:
        raise InputError("give either --baseline, a trained run, or --compare, which trains one")
    teacher = read_info(find_checkpoint(run)).config
    check_teacher(run, teacher)
    config = student_config(teacher, overrides)
    runs = {"teacher": run, "student": out}
    data = load_data(config.data, config.seed, console=console)
    if data.train is None or data.test is None:  # now, not after the training
        raise InputError(f"data.test_subset: no recording of {config.data.test_subset!r} is left to score")
    if baseline is not None:
        runs["baseline"] = Path(baseline)
        _check_same_data(runs["baseline"], data.test)
    _remember_teacher(out, run, resume)
    train(config, out, resume=resume, console=console, teacher=run)
    if compare:
        runs[BASELINE] = out / BASELINE
        uniform = changed(config, [f"model.name={BASELINE}"])
        train(uniform, runs[BASELINE], resume=bool(list_checkpoints(runs[BASELINE])), console=console)
    rows = _rows(runs, teacher, data.train, data.test, repeats, console)
    with replacing(out / RESULT) as file:
        json.dump(nan_to_null(summary(rows)), file, indent=1, allow_nan=False)
    return rows


def student_config(teacher: Config, overrides: Sequence[str] = ()) -> Config:
    """The teacher's settings, with exits in the place of its deep path."""
    depths = ",".join(map(str, DEPTHS))
    student = changed(teacher, [f"model.paper.allocation={TAUGHT}", f"model.paper.depths=[{depths}]"])
    return changed(student, list(overrides)) if overrides else student


def _remember_teacher(out: Path, run: Path, resume: bool) -> None:
    """Its weights, not its folder: that may move. A student goes on with the teacher that it began with."""
    checkpoint = find_checkpoint(run)
    weights = hashlib.sha256((checkpoint / "average.safetensors").read_bytes()).hexdigest()
    file = out / TEACHER
    if resume:
        try:
            before = parse_json(file.read_text(encoding="utf-8"))["weights"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{file}: cannot be read; --resume goes on with what tzoom distill began") from None
        if before != weights:
            raise InputError(f"{out}: cannot resume with another teacher: {run} has other weights than the first one")
    elif not list_checkpoints(out):
        with replacing(file) as target:
            json.dump({"run": str(run), "checkpoint": checkpoint.name, "weights": weights}, target, indent=1)


def _check_same_data(run: Path, split: Split) -> None:
    info = read_info(find_checkpoint(run))
    if info.input_width != split.input_width or info.classes != split.classes:
        raise InputError(f"{run}: trained on other data than the teacher, with other channels or classes")


def _rows(
    runs: dict[str, Path], teacher: Config, train_split: Split, test: Split, repeats: int, console: Console | None
) -> list[Taught]:
    tious = teacher.evaluation.thresholds
    scores = {
        name: evaluate_run(folder, test, tious, console, teacher.device).detection.average
        for name, folder in runs.items()
    }
    costs = measure_costs(runs, train_split, test, {"student": runs["teacher"]}, repeats, console)
    best = scores["teacher"]
    return [
        Taught(name, folder, scores[name], scores[name] / best if best > 0 else float("nan"), costs[name])
        for name, folder in runs.items()
    ]


def summary(rows: Sequence[Taught]) -> dict[str, Any]:
    """Ready for JSON. Times in seconds, memory in bytes, FLOPs of a step and of all test recordings."""
    return {
        row.name: {
            "run": str(row.run),
            "model": _model(row),
            "mAP": row.mAP,
            "retention": row.retention,
            "training": row.cost.training(),
            "inference": row.cost.inference(),
        }
        for row in rows
    }


def _model(row: Taught) -> str:
    return read_info(find_checkpoint(row.run)).config.model.name


def distillation_table(rows: Sequence[Taught]) -> Table:
    """A column per system."""
    table = Table(title="What the student keeps, and what all cost; timed in turn, here", title_justify="left")
    table.add_column("")
    for row in rows:
        table.add_column(Text(f"{row.name}\n{_model(row)}"), justify="right")

    def line(label: str, values: Sequence[float], form: str = ".3g") -> None:
        table.add_row(label, *("-" if value != value else format(value, form) for value in values))

    costs = [row.cost for row in rows]
    line("average mAP (%)", [100 * row.mAP for row in rows], ".1f")
    line("retention (%)", [100 * row.retention for row in rows], ".1f")
    table.add_section()
    line("training step, GFLOPs", [cost.step_flops / 1e9 for cost in costs])
    line("training step, ms", [1e3 * cost.step_seconds for cost in costs])
    line("training step, peak MB", [cost.step_bytes / 1e6 for cost in costs])
    line("whole training, GFLOPs", [cost.step_flops * cost.steps / 1e9 for cost in costs], ".4g")
    line("whole training, seconds", [cost.trained_seconds for cost in costs], ".4g")
    table.add_section()
    line("test recordings, MFLOPs executed", [cost.flops / 1e6 for cost in costs], ".4g")
    line("test recordings, ms", [1e3 * cost.seconds for cost in costs])
    line("longest recording, peak MB", [cost.bytes / 1e6 for cost in costs])
    return table
