"""Distill: a student with early exits from a trained network; parse, call, print."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import DeviceOption, Overrides, Settings, app, changed_settings, note, notes, say, screen
from temporalzoom.interrupts import exit_code
from temporalzoom.json_tree import nan_to_null


@app.command(
    epilog="Examples: tzoom distill runs/teacher --out runs/student   |   "
    "tzoom distill runs/teacher --out runs/student --baseline runs/uniform --set training.steps=600"
)
def distill(
    run: Annotated[Path, typer.Argument(help="Run folder of the teacher, a trained tzn")],
    overrides: Overrides = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option(help="Folder of the student's run")] = Path("runs/student"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the student's last checkpoint")] = False,
    baseline: Annotated[Path | None, typer.Option(help="A trained run to compare with, such as a uniform-6")] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Also train a uniform-6 to compare with")] = False,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Timed rounds of each system")] = 5,
    device: DeviceOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table")] = False,
) -> None:
    """Train a student with exits after 2, 4 and 6 layers, taught by a trained tzn; say what it keeps and costs."""
    from temporalzoom.training import TrainingInterrupted
    from temporalzoom.workflows import distill as workflow

    changes = [*changed_settings(overrides, settings), *([] if device is None else [f"device={device}"])]
    try:
        rows = workflow.distill(
            run, out, overrides=changes, resume=resume, baseline=baseline, compare=compare, repeats=repeats,
            console=notes,
        )  # fmt: skip
    except TrainingInterrupted as stop:
        again = shlex.join([a for a in sys.argv[1:] if a != "--resume"])
        note(f"{stop}\ngo on with: tzoom {again} --resume")
        raise typer.Exit(exit_code()) from None
    if as_json:
        print(json.dumps(nan_to_null(workflow.summary(rows)), indent=1, allow_nan=False))
        return
    screen.print(workflow.distillation_table(rows))
    say(f"saved {out / workflow.RESULT}")
