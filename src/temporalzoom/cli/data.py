"""`tzoom data`: look at data, make data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import Overrides, data_app, notes, screen


@data_app.command("check", epilog="Example: tzoom data check configs/mine.yaml")
def data_check(
    config: Annotated[Path, typer.Argument(help="Configuration file (YAML) whose data section to check")],
    overrides: Overrides = None,
) -> None:
    """Say what the data holds, and list everything that is wrong with it."""
    from temporalzoom.config import load_config
    from temporalzoom.datasets.report import report_data

    settings = load_config(config, overrides or ())
    tables, problems = report_data(settings.data, settings.seed, notes)
    for table in tables:
        screen.print(table)
    if problems:
        raise typer.Exit(2)
    screen.print("no problem found")


@data_app.command(
    "make-zoombench", epilog="Example: tzoom data make-zoombench --out data/zoombench sequences=20 noise=1.5"
)
def make_zoombench(
    out: Annotated[Path, typer.Option(help="Folder for annotations.json, features/ and config.yaml")],
    knobs: Annotated[list[str] | None, typer.Argument(help="Settings of data.zoombench: key=value")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Write the embedded benchmark as files, in the form that own data has."""
    from temporalzoom.config import load_config
    from temporalzoom.datasets.zoombench_files import write_zoombench

    bench = load_config(None, [f"data.zoombench.{knob}" for knob in knobs or ()]).data.zoombench
    config = write_zoombench(out, bench, seed, notes)
    screen.print(f"wrote {out}; train on it with: tzoom train {config}", highlight=False, soft_wrap=True)
