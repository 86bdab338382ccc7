"""`tzoom data import`: annotations of other tools in, one annotation file out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

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


PANEL = "Annotation files"  # the heading of these options in --help
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Tables: MEANING=NAME of a column (may be repeated), such as start=Onset; also end, duration, label, "
        "recording, subject, subset, recording_duration. VIA: label=ATTRIBUTE",
        rich_help_panel=PANEL,
    ),
]
TimeUnitOption = Annotated[TimeUnit | None, typer.Option(help="Tables: what the times count", rich_help_panel=PANEL)]
DecimalOption = Annotated[
    Decimal | None, typer.Option(help="Tables: the decimal mark of numbers", rich_help_panel=PANEL)
]
DateOrderOption = Annotated[
    DateOrder | None, typer.Option(help="Tables: what comes first in dates", rich_help_panel=PANEL)
]
StartsAtOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Tables whose times are dates: when recordings began, YYYY-MM-DD HH:MM:SS, or NAME=...",
        rich_help_panel=PANEL,
    ),
]
SheetOption = Annotated[str | None, typer.Option(help="Excel: the sheet to read", rich_help_panel=PANEL)]
PointEventsOption = Annotated[
    float | None,
    typer.Option(
        help="SECONDS that events without a length get (BORIS, Audacity, VIA); default: left out",
        rich_help_panel=PANEL,
    ),
]
BehavioursOption = Annotated[
    str | None,
    typer.Option(
        "--behaviours",
        "--behaviors",
        help="SimBA, DeepEthogram: the columns to take, with commas between",
        rich_help_panel=PANEL,
    ),
]
TierOption = Annotated[
    list[str] | None,
    typer.Option(help="ELAN: take this tier (may be repeated); default: all but dependent ones", rich_help_panel=PANEL),
]
LabelFromOption = Annotated[
    LabelFrom | None,
    typer.Option(
        help="ELAN: the label is what the annotation says (value, the default), or the name of its tier",
        rich_help_panel=PANEL,
    ),
]


def reading_options(
    columns: list[str] | None,
    time_unit: TimeUnit | None,
    decimal: Decimal | None,
    date_order: DateOrder | None,
    starts_at: list[str] | None,
    sheet: str | None,
    point_events: float | None,
    behaviours: str | None,
    tier: list[str] | None,
    label_from: LabelFrom | None,
) -> dict[str, Any]:
    """What was given of these options, as `import_annotations` takes it."""
    values = {
        "columns": columns_by_meaning(columns or []),
        "time_unit": time_unit and time_unit.value,
        "decimal": decimal and decimal.value,
        "date_order": date_order and date_order.value,
        "starts_at": tuple(starts_at or ()),
        "sheet": sheet,
        "point_events": point_events,
        "behaviours": tuple(name.strip() for name in (behaviours or "").split(",") if name.strip()),
        "tiers": tuple(tier or ()),
        "label_from": label_from and label_from.value,
    }
    return {name: value for name, value in values.items() if value not in (None, (), {})}


@data_app.command(
    "import", epilog='Example: tzoom data import elan/ --out annotations.json --fps 25 --tier actions --test "match9*"'
)
def import_command(
    files: Annotated[list[Path], typer.Argument(help=f"Files or folders of them: {describe_readable()}")],
    out: Annotated[Path, typer.Option(help="Annotation file (JSON) to write")],
    fps: Annotated[
        float | None, typer.Option(help="Frames per second of the recordings; files that count frames need it")
    ] = None,
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
        durations=duration or (),
        subset_column=subset_column,
        test=test or (),
        predictions=predictions,
        ignore=out,
        **reading_options(
            columns, time_unit, decimal, date_order, starts_at, sheet, point_events, behaviours, tier, label_from
        ),
    )
    for note in annotations.notes:
        notes.print(note, markup=False, highlight=False, soft_wrap=True)
    write_annotations(out, annotations)
    for table in describe(annotations):
        screen.print(table)
    instances = sum(len(recording.segments) for recording in annotations.recordings.values())
    counts = f"{len(annotations.recordings)} recordings, {instances} instances, {len(annotations.classes)} classes"
    screen.print(f"wrote {out}: {counts}", markup=False, highlight=False, soft_wrap=True)
