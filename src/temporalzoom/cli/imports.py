"""`tzoom data import`: annotations of other tools in, one annotation file out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import data_app, notes, screen
from temporalzoom.errors import InputError
from temporalzoom.formats.registry import describe_readable


class LabelFrom(StrEnum):
    """Where the label of an ELAN annotation is."""

    value = "value"
    tier = "tier"


class TimeUnit(StrEnum):
    """What a number in a column of times counts."""

    seconds = "seconds"
    milliseconds = "milliseconds"
    minutes = "minutes"
    frames = "frames"


class Decimal(StrEnum):
    """The mark before the decimals of a number."""

    comma = "comma"
    point = "point"


class DateOrder(StrEnum):
    """What comes first in 03/04/2024."""

    day = "day"
    month = "month"


def columns_by_meaning(pairs: list[str]) -> dict[str, str]:
    """`start=Start (s)` of the command line."""
    columns = {}
    for pair in pairs:
        meaning, separator, name = pair.partition("=")
        if not (meaning and separator and name):
            raise InputError(f"--columns must be MEANING=NAME, such as start=Onset, got {pair!r}")
        columns[meaning.strip().casefold()] = name
    return columns


@data_app.command(
    "import", epilog='Example: tzoom data import elan/ --out annotations.json --fps 25 --tier actions --test "match9*"'
)
def import_command(
    files: Annotated[list[Path], typer.Argument(help=f"Files or folders of them: {describe_readable()}")],
    out: Annotated[Path, typer.Option(help="Annotation file (JSON) to write")],
    fps: Annotated[
        float | None, typer.Option(help="Frames per second of the recordings; files that count frames need it")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Tables: MEANING=NAME of a column (may be repeated), such as start=Onset; also end, duration, label, "
            "recording, subject, subset, recording_duration. VIA: label=ATTRIBUTE"
        ),
    ] = None,
    time_unit: Annotated[TimeUnit | None, typer.Option(help="Tables: what the times count")] = None,
    decimal: Annotated[Decimal | None, typer.Option(help="Tables: the decimal mark of numbers")] = None,
    date_order: Annotated[DateOrder | None, typer.Option(help="Tables: what comes first in dates")] = None,
    starts_at: Annotated[
        list[str] | None,
        typer.Option(help="Tables whose times are dates: when recordings began, YYYY-MM-DD HH:MM:SS, or NAME=..."),
    ] = None,
    sheet: Annotated[str | None, typer.Option(help="Excel: the sheet to read")] = None,
    point_events: Annotated[
        float | None,
        typer.Option(help="SECONDS that events without a length get (BORIS, Audacity, VIA); default: left out"),
    ] = None,
    behaviours: Annotated[
        str | None,
        typer.Option(
            "--behaviours", "--behaviors", help="SimBA, DeepEthogram: the columns to take, with commas between"
        ),
    ] = None,
    tier: Annotated[
        list[str] | None, typer.Option(help="ELAN: take this tier (may be repeated); default: all but dependent ones")
    ] = None,
    label_from: Annotated[
        LabelFrom, typer.Option(help="ELAN: the label is what the annotation says, or the name of its tier")
    ] = LabelFrom.value,
    duration: Annotated[
        list[str] | None, typer.Option(help="SECONDS of all recordings, or NAME=SECONDS; default: from the features")
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Pattern of recordings for the subset test; all others are train")
    ] = None,
    subset_column: Annotated[
        str | None, typer.Option(help="Tables: the column with the subset; default: subset or split")
    ] = None,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="Label Studio: take predictions where nobody annotated")
    ] = False,
) -> None:
    """Turn the annotations of other tools into the file that trainings read."""
    from temporalzoom.datasets.statistics import describe
    from temporalzoom.formats import import_annotations, write_annotations

    annotations = import_annotations(
        files,
        fps=fps,
        tiers=tier or (),
        label_from=label_from.value,
        durations=duration or (),
        subset_column=subset_column,
        test=test or (),
        predictions=predictions,
        ignore=out,
        point_events=point_events,
        behaviours=[name.strip() for name in (behaviours or "").split(",") if name.strip()],
        columns=columns_by_meaning(columns or []),
        time_unit=time_unit and time_unit.value,
        decimal=decimal and decimal.value,
        date_order=date_order and date_order.value,
        starts_at=starts_at or (),
        sheet=sheet,
    )
    for note in annotations.notes:
        notes.print(note, markup=False, highlight=False, soft_wrap=True)
    write_annotations(out, annotations)
    for table in describe(annotations):
        screen.print(table)
    instances = sum(len(recording.segments) for recording in annotations.recordings.values())
    counts = f"{len(annotations.recordings)} recordings, {instances} instances, {len(annotations.classes)} classes"
    screen.print(f"wrote {out}: {counts}", markup=False, highlight=False, soft_wrap=True)
