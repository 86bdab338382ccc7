"""The command `tzoom` itself: its groups, what its commands share, and how bad input ends."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated

import typer
from rich.console import Console

from temporalzoom.errors import InputError

app = typer.Typer(
    name="tzoom",
    help="Find when actions happen in untrimmed video or sensor streams: start, end, label, score.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
data_app = typer.Typer(help="Look at data, make data.", no_args_is_help=True)
app.add_typer(data_app, name="data")
bench_app = typer.Typer(help="Benchmarks on real recordings: systems, seeds, intervals.", no_args_is_help=True)
app.add_typer(bench_app, name="bench")
screen = Console()
notes = Console(stderr=True)

Budget = Annotated[
    float | None, typer.Option(min=0, max=1, help="Share of positions that may go deep (tzn); default: as trained")
]
Overrides = Annotated[list[str] | None, typer.Argument(help="Overrides of single settings: section.key=value")]


@app.callback(invoke_without_command=True)
def tzoom(version: Annotated[bool, typer.Option("--version", help="Print the version")] = False) -> None:
    if version:
        print(f"temporalzoom {metadata.version('temporalzoom')}")
        raise typer.Exit


def report_skipped(names: tuple[str, ...]) -> None:
    if names:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        notes.print(f"left out {len(names)} recordings without features: {shown}", highlight=False, soft_wrap=True)


def main() -> None:
    """Entry point: bad input is one line (and the table of data problems) and exit code 2, never a traceback."""
    from temporalzoom.datasets.check import DataProblems, problem_table

    try:
        app()
    except DataProblems as error:
        notes.print(problem_table(error.problems))
        _fail(str(error))
    except InputError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        notes.print("stopped")
        sys.exit(130)


def _fail(message: str) -> None:
    notes.print("[bold red]error:[/] ", end="")
    notes.print(message, markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)
