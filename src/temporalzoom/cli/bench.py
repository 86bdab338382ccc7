"""`tzoom bench`: a table of the paper on a data set."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from temporalzoom.cli.app import app, notes, screen
from temporalzoom.errors import InputError
from temporalzoom.interrupts import exit_code

# Names that earlier versions had, and what they are called.
RENAMED = {"sbhar-stem": "sbhar", "sbhar": "sbhar-windows"}


@app.command(epilog="Example: tzoom bench sbhar --table systems --root data/sbhar --seeds 0,1,2")
def bench(
    data_set: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET", help="zoombench, zoombench-context, sbhar, sbhar-windows, tug, rats or salads"
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="The same as --set KEY=VALUE")
    ] = None,
    table: Annotated[str, typer.Option(help="Which table; see --list")] = "ours",
    root: Annotated[Path | None, typer.Option(help="The data set's folder; default: that of its recipe")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, comma-separated; default 0,1,2, of generated data 0,1,2,3,4")
    ] = None,
    systems: Annotated[str | None, typer.Option(help="Only these systems of the table, comma-separated")] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Cross-validate: all subjects, dealt to this many folds, are the test")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke test: one seed, a few steps, few sequences; no result")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Folder of trainings and results; runs/bench/DATASET")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting for all systems; repeatable")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the data sets and the tables")] = False,
    data: Annotated[str | None, typer.Option("--data", hidden=True)] = None,
    stem: Annotated[bool, typer.Option("--stem", hidden=True)] = False,
) -> None:
    """A table of the paper: trains its systems, with intervals over recordings and seeds."""
    if show:
        screen.print(_overview())
        return
    if data_set is None or "=" in data_set:
        raise InputError("bench: which data set? for example: tzoom bench zoombench; tzoom bench --list shows all")
    _refuse_earlier_forms(data_set, data, stem, root)
    _run(data_set, table, root, seeds, systems, folds, quick, out, [*(settings or ()), *(overrides or ())])


def _run(
    data_set: str,
    table: str,
    root: Path | None,
    seeds: str | None,
    systems: str | None,
    folds: int | None,
    quick: bool,
    out: Path | None,
    settings: list[str],
) -> None:
    from temporalzoom.experiments.bench import results_file, run_bench
    from temporalzoom.experiments.registry import read_results
    from temporalzoom.experiments.rendering import terminal
    from temporalzoom.workflows.sweep import SweepInterrupted

    # Systems that two tables share are trained once: their runs stand in the same folder.
    folder = out or Path("runs/bench") / (f"{data_set}-quick" if quick else data_set)
    try:
        results = run_bench(
            data_set,
            folder,
            table=table,
            root=root,
            seeds=None if seeds is None else _numbers(seeds),
            systems=None if systems is None else systems.split(","),
            folds=folds,
            overrides=settings,
            quick=quick,
            console=notes,
        )
    except SweepInterrupted as stop:
        again = shlex.join(sys.argv[1:])
        notes.print(f"{stop}\ngo on with: tzoom {again}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(exit_code()) from None
    for grid in read_results(results):
        screen.print(terminal(grid, screen.width), highlight=False)
    written = folder / results_file(table, folds, quick)
    screen.print(f"wrote {written}", markup=False, highlight=False, soft_wrap=True)


def _numbers(seeds: str) -> list[int]:
    try:
        numbers = [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise InputError(f"--seeds {seeds!r}: expected whole numbers, such as 0,1,2") from None
    if len(set(numbers)) < len(numbers) or min(numbers) < 0:
        raise InputError(f"--seeds {seeds!r}: expected different numbers from 0 on, such as 0,1,2")
    return numbers


def _overview() -> Table:
    """Data sets, then tables, a line about each."""
    from temporalzoom.experiments.data_sets import DATA_SETS, summary
    from temporalzoom.experiments.registry import data_sets_of, find_table, table_names

    overview = Table(box=None, pad_edge=False, show_header=False)
    overview.add_column(no_wrap=True)
    overview.add_column()
    overview.add_row(Text("DATASET", style="bold"), "")
    for name in DATA_SETS:
        overview.add_row(Text(name), Text(summary(name)))
    overview.add_row("", "")
    overview.add_row(Text("--table", style="bold"), "")
    for name in table_names():
        found = find_table(name)
        about = data_sets_of(found)
        limits = "" if len(about) == len(DATA_SETS) else f" (only of {', '.join(about)})"
        overview.add_row(Text(name), Text(found.SUMMARY + limits))
    return overview


def _refuse_earlier_forms(data_set: str, data: str | None, stem: bool, root: Path | None) -> None:
    """One line that names the form that it has now."""
    folder = str(root) if root is not None else None
    words = None
    if data_set in ("retrofit", "systems"):
        words = [RENAMED.get(data or "", data or "DATASET"), "--table", data_set]
    elif data_set == "strides":
        words, folder = ["sbhar", "--table", "strides"], data or folder
    elif data is not None or stem or data_set == "sbhar-stem":
        words = ["sbhar" if stem else RENAMED.get(data_set, data_set)]
        folder = data or folder
    if words is not None:
        now = ["tzoom", "bench", *words, *(["--root", folder] if folder is not None else [])]
        raise InputError(f"bench: this form is no more; now it is: {shlex.join(now)}")
