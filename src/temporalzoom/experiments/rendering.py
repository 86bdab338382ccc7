"""A table of results as plain rows and columns, and how those become Markdown or a table of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from temporalzoom.console import plain_console
from temporalzoom.metrics.significance import marked

WIDTH = 80
# Names longer than this are broken between words.
NAME_WIDTH = 18


@dataclass(frozen=True)
class Interval:
    """A number and its interval. p: of a difference, which has a sign, and a star where p is at most 5 %."""

    value: float
    low: float
    high: float
    p: float | None = None
    digits: int = 1

    def __str__(self) -> str:
        return marked(self.value, self.low, self.high, self.p, scale=1, digits=self.digits)

    def in_two_lines(self) -> str:
        """The value with its star above the interval: half as wide."""
        value, _, rest = str(self).partition(" [")
        star = " *" if rest.endswith("*") else ""
        return f"{value}{star}\n[{rest.removesuffix(' *')}"


Cell = str | Interval


@dataclass(frozen=True)
class Grid:
    """Rows of a table; the first column holds names. notes: sentences below it."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    notes: tuple[str, ...] = ()


def markdown(grids: Iterable[Grid]) -> str:
    """For a page."""
    return "\n\n".join("\n".join(_markdown(grid)) for grid in grids)


def _markdown(grid: Grid) -> list[str]:
    rows = [grid.columns, *([str(cell) for cell in row] for row in grid.rows)]
    lines = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
    lines.insert(1, "|---|" + "---:|" * (len(grid.columns) - 1))
    notes = [line for note in grid.notes for line in ("", _escaped(note))]
    return [f"{_escaped(grid.title)}:", "", *lines, *notes]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")


def terminal(grid: Grid, width: int = WIDTH) -> RenderableType:
    """For a terminal of `width` columns: a table that is too wide continues below, with its names again."""
    parts: list[RenderableType] = [Text(grid.title)]
    shown: list[int] = []
    for column in range(1, len(grid.columns)):
        if shown and _needed(_block(grid, [*shown, column])) > width:
            parts.append(_block(grid, shown))
            shown = []
        shown.append(column)
    parts.append(_block(grid, shown))
    return Group(*parts, *(Text(f"{note}\n") for note in grid.notes))


def _block(grid: Grid, columns: Sequence[int]) -> Table:
    """A table of the names and some of the columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    words = [word for row in grid.rows for word in str(row[0]).split()]
    table.add_column(grid.columns[0], max_width=max([NAME_WIDTH, *map(len, words)]))
    for column in columns:
        table.add_column(grid.columns[column], justify="right", no_wrap=True)
    for row in grid.rows:
        cells = [row[0], *(row[column] for column in columns)]
        table.add_row(*(Text(cell.in_two_lines() if isinstance(cell, Interval) else cell) for cell in cells))
    return table


def _needed(table: Table) -> int:
    """Columns of the terminal that a table takes where nothing is cut."""
    console = plain_console(width=1000)
    return console.measure(table).maximum
