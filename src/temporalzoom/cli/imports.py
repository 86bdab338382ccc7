"""`tzoom data import`: annotations of other tools in, one annotation file out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import data_app, notes, screen
from temporalzoom.formats.registry import describe_readable


class LabelFrom(StrEnum):
    """Where the label of an ELAN annotation is."""

    value = "value"
    tier = "tier"


@data_app.command(
    "import", epilog='Example: tzoom data import elan/ --out annotations.json --fps 25 --tier actions --test "match9*"'
)
def import_command(
    files: Annotated[list[Path], typer.Argument(help=f"Files or folders of them: {describe_readable()}")],
    out: Annotated[Path, typer.Option(help="Annotation file (JSON) to write")],
    fps: Annotated[
        float | None, typer.Option(help="Frames per second of the recordings; Label Studio's video frames need it")
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
        str | None, typer.Option(help="CSV: the column with the subset; default: subset or split")
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
    )
    for note in annotations.notes:
        notes.print(note, markup=False, highlight=False, soft_wrap=True)
    write_annotations(out, annotations)
    for table in describe(annotations):
        screen.print(table)
    instances = sum(len(recording.segments) for recording in annotations.recordings.values())
    counts = f"{len(annotations.recordings)} recordings, {instances} instances, {len(annotations.classes)} classes"
    screen.print(f"wrote {out}: {counts}", markup=False, highlight=False, soft_wrap=True)
