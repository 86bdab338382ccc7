"""`tzoom fit`: own data in one command."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import DeviceOption, Settings, app, note, notes, say
from temporalzoom.cli.imports import (
    BehavioursOption,
    ColumnsOption,
    DateOrderOption,
    DecimalOption,
    LabelFromOption,
    PointEventsOption,
    SheetOption,
    StartsAtOption,
    TierOption,
    TimeUnitOption,
    reading_options,
)
from temporalzoom.errors import InputError
from temporalzoom.interrupts import exit_code

UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}


@app.command(
    epilog="Examples: tzoom fit recordings/ annotations.csv --out runs/mine   |   "
    "tzoom fit videos/ observations.boris.tsv --out runs/mine --time 20m   |   tzoom fit labelled-csv/ --out runs/mine"
)
def fit(
    recordings: Annotated[
        Path, typer.Argument(help="Folder of videos or signals (.csv .parquet .npy .npz .h5 .edf), or an .npz archive")
    ],
    annotations: Annotated[
        Path | None, typer.Argument(help="Annotation file of any known format; none: signals have a label per row")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the run")] = Path("runs/fitted"),
    members: Annotated[
        int | None, typer.Option(min=1, max=5, help="Networks to train and fuse; default: as many as 15 minutes allow")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Keep to this time: 90s, 20m, 2h")] = None,
    background: Annotated[list[str] | None, typer.Option(help="A label that is no action; may be repeated")] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Pattern of recordings to set aside until the end; may be repeated")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(help="Regular expression: what it finds in a recording's name is the subject")
    ] = None,
    fps: Annotated[float | None, typer.Option(help="Rows per second of files without a clock")] = None,
    label_column: Annotated[str | None, typer.Option(help="Column with a label per row")] = None,
    backbone: Annotated[str, typer.Option(help="What turns videos into features")] = "motion",
    student: Annotated[
        bool, typer.Option("--student", help="Also train one fast network that learns from all others")
    ] = False,
    settings: Settings = None,
    device: DeviceOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and why, as YAML")] = False,
    columns: ColumnsOption = None,
    time_unit: TimeUnitOption = None,
    decimal: DecimalOption = None,
    date_order: DateOrderOption = None,
    starts_at: StartsAtOption = None,
    sheet: SheetOption = None,
    point_events: PointEventsOption = None,
    behaviours: BehavioursOption = None,
    tier: TierOption = None,
    label_from: LabelFromOption = None,
) -> None:
    """Train on your own recordings: it looks at the data, configures itself, trains, and shows how good it is."""
    from temporalzoom.workflows import fit as workflow
    from temporalzoom.workflows.gather import GatherOptions, gather
    from temporalzoom.workflows.report import summarize
    from temporalzoom.workflows.sweep import SweepInterrupted

    options = GatherOptions(
        fps=fps,
        background=tuple(background or ()),
        test=tuple(test or ()),
        subject=subject,
        label_column=label_column,
        reading=reading_options(
            columns, time_unit, decimal, date_order, starts_at, sheet, point_events, behaviours, tier, label_from
        ),
        backbone=backbone,
    )
    limit = None if time is None else _seconds(time)
    changes = [*(settings or ()), *([] if device is None else [f"device={device}"])]
    if dry_run:
        gathered = gather(recordings, annotations, out / workflow.DATA, options, notes)
        prepared = workflow.prepare(gathered, members=members, seconds=limit, overrides=changes, student=student)
        print(prepared.text, end="")
        return
    try:
        fitted = workflow.fit(
            recordings,
            annotations,
            out,
            options=options,
            members=members,
            seconds=limit,
            overrides=changes,
            student=student,
            console=notes,
        )
    except SweepInterrupted as stop:
        note(f"{stop}\ngo on with: tzoom {shlex.join(sys.argv[1:])}")
        raise typer.Exit(exit_code()) from None
    for sentence in summarize(fitted.held_out, fitted.thresholds):
        say(sentence)
    say(f"report: {out / workflow.REPORT}")
    say(f"find actions in a new recording: tzoom localize RECORDING --model {shlex.quote(str(out))} --out found.csv")
    if fitted.student is not None:
        model = shlex.quote(str(fitted.student))
        say(f"the same with the student, faster: tzoom localize RECORDING --model {model} --out found.csv")


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?", text.strip())
    if match is None or not float(match[1]):
        raise InputError(f"--time {text!r}: expected a time such as 90s, 20m or 2h")
    return float(match[1]) * UNITS[match[2] or "m"]
