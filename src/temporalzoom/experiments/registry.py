"""The tables of `tables/`, found by their names: a new table is one new file there."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol, cast

from temporalzoom.errors import InputError
from temporalzoom.experiments import tables
from temporalzoom.experiments.data_sets import DATA_SETS
from temporalzoom.experiments.measures import Bench
from temporalzoom.experiments.reading import command
from temporalzoom.experiments.rendering import Grid


class Table(Protocol):
    """What a file of `tables/` holds."""

    SUMMARY: str

    @staticmethod
    def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
        """What to train: by the name of a system its settings over the data set's recipe. A table that is not about
        this data set raises an InputError."""

    @staticmethod
    def measure(bench: Bench) -> dict[str, Any]:
        """What to measure and to store: `systems`, by name, and what else the table is about."""

    @staticmethod
    def read(results: Mapping[str, Any]) -> list[Grid]:
        """How stored results read."""


def table_names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(tables.__path__))


def find_table(name: str) -> Table:
    names = table_names()
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(names)}"
        raise InputError(f"--table: no table {name!r}; {hint}")
    return cast(Table, importlib.import_module(f"{tables.__name__}.{name}"))


def data_sets_of(table: Table) -> list[str]:
    """Those that a table is about."""
    found = []
    for name in DATA_SETS:
        try:
            table.trainings(name)
        except InputError:
            continue
        found.append(name)
    return found


def read_results(results: Mapping[str, Any]) -> list[Grid]:
    """Stored results of any table, as rows and columns."""
    return find_table(results["table"]).read(results)


def command_of(results: Mapping[str, Any]) -> str:
    """The command that measures stored results."""
    return command(results, find_table(results["table"]).trainings(results["data_set"]))
