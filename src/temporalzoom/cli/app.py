"""The command `tzoom` itself: its groups, what its commands share, and how bad input ends."""

from __future__ import annotations

import io
import sys
import threading
from contextlib import suppress
from importlib import metadata
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from temporalzoom import processes
from temporalzoom.console import one_line, plain_console
from temporalzoom.errors import InputError
from temporalzoom.interrupts import exit_code, stop_on_termination

# In the order in which a user needs them.
COMMANDS = (
    "demo", "fit", "data", "extract", "cuts", "train", "eval", "localize", "clips", "budget", "export",
    "recipes", "settings", "sweep", "bench", "cost", "distill",
)  # fmt: skip


class InOrder(TyperGroup):
    """Commands are listed as a user comes to need them; `tzoom -h` works like `tzoom --help`."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: COMMANDS.index(name) if name in COMMANDS else len(COMMANDS))

    def invoke(self, ctx: Any) -> Any:
        """Ctrl-C is one line, where a command has nothing better to say."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            note(str(stop) or "stopped")
            sys.exit(exit_code())


HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="tzoom",
    cls=InOrder,
    help="Find when actions happen in untrimmed video or sensor streams: start, end, label, score.",
    no_args_is_help=True,
    context_settings=HELP,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
data_app = typer.Typer(help="Look at data, import annotations, make data.", no_args_is_help=True, context_settings=HELP)
app.add_typer(data_app, name="data")
screen = plain_console()
notes = plain_console(stderr=True)

Budget = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Share of positions that may go deep, with adaptive depth; default: as trained"),
]
Overrides = Annotated[list[str] | None, typer.Argument(help="Settings to change, as with --set", show_default=False)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as training.steps=500; may be repeated"),
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", help="auto, cpu, cuda or mps; default: auto, a GPU if there is one")
]
# What of all that was found is shown, or used.
Threshold = Annotated[
    float | None, typer.Option(min=0, max=1, help="Lowest score, of all classes; default: the model's setting")
]
MergeGap = Annotated[
    float | None, typer.Option(min=0, help="Seconds; segments of one class that are no farther apart become one")
]
MinLength = Annotated[float | None, typer.Option(min=0, help="Seconds; shorter segments are dropped")]
NoOverlap = Annotated[
    bool | None,
    typer.Option(
        "--no-overlap/--overlap",
        help="Of segments that overlap keep the best; slight overlaps are cut in the middle",
        show_default=False,
    ),
]


@app.callback(invoke_without_command=True)
def tzoom(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version")] = False
) -> None:
    if context.invoked_subcommand != "train":
        processes.only_one("WORLD_SIZE: several processes, as torchrun starts them, are for tzoom train only")
    if version:
        print(f"temporalzoom {metadata.version('temporalzoom')}")
        raise typer.Exit


def changed_settings(bare: list[str] | None, named: list[str] | None) -> list[str]:
    """Settings given as bare `key=value` arguments and with --set, in that order."""
    return [*(bare or ()), *(named or ())]


def say(message: str) -> None:
    """A line of the result, exactly as it is: names and labels are never markup."""
    screen.print(message, markup=False, highlight=False, soft_wrap=True)


def note(message: str) -> None:
    """A line beside the result, on standard error."""
    notes.print(message, markup=False, highlight=False, soft_wrap=True)


def report_skipped(names: tuple[str, ...]) -> None:
    if names:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        note(f"left out {len(names)} recordings without features: {shown}")


def main() -> None:
    """Entry point: bad input is one line (and the table of data problems) and exit code 2, never a traceback."""
    from temporalzoom.datasets.check import DataProblems, problem_table

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError):  # a label need not fit the terminal's encoding
                stream.reconfigure(errors="backslashreplace")
    threading.excepthook = _thread_failed
    try:
        with stop_on_termination():
            app()
    except KeyboardInterrupt:  # before a command has begun, or after it ended
        note("stopped")
        sys.exit(exit_code())
    except DataProblems as error:
        notes.print(problem_table(error.problems))
        _fail(str(error))
    except InputError as error:
        _fail(str(error))
    except OSError as error:  # a full disk, a folder without permission, a name too long for the file system
        place = error.filename if error.filename is not None else "a file"
        _fail(f"{place}: cannot be read or written: {error.strerror or error}")
    except MemoryError:
        _fail("not enough memory for this")


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    """TensorBoard writes in a thread of its own: a full disk there is a line too."""
    if isinstance(failure.exc_value, OSError):
        note(one_line(f"warning: a file cannot be written: {failure.exc_value.strerror or failure.exc_value}"))
    else:
        threading.__excepthook__(failure)


def _fail(message: str) -> None:
    notes.print(Text("error:", style="bold red"), end=" ")
    notes.print(one_line(message), markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)
