"""Numbers that every recording has one of, by system, seed and recording: their means with intervals, and differences.

As with mAP, intervals are over recordings and seeds, and differences are paired by recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.experiments.rendering import Cell, Grid, Interval
from temporalzoom.metrics.bootstrap import bootstrap_interval, bootstrap_mean, bootstrap_p_value
from temporalzoom.metrics.significance import holm

# By name of a system: (S, V), NaN where a recording has none.
Values = Mapping[str, NDArray[np.float64]]


def summarized(
    measures: Mapping[str, Values],
    comparisons: Sequence[tuple[str, str]],
    resamples: int,
    models: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """By measure: `levels`, `{system: [mean, low, high]}`, and `differences`, `{"a - b": {value, low, high, p}}`.

    models: whose networks each has; of the same ones, differences are paired by network too. None: all are different.
    """
    return {
        name: {
            "levels": {system: _level(table, resamples) for system, table in values.items()},
            "differences": {
                f"{a} - {b}": _difference(
                    values[a], values[b], resamples, models is not None and models[a] == models[b]
                )
                for a, b in comparisons
                if a in values and b in values
            },
        }
        for name, values in measures.items()
    }


def _level(table: NDArray[np.float64], resamples: int) -> list[float] | None:
    if np.isnan(table).all(1).any():
        return None
    point, samples = bootstrap_mean(table, resamples)
    return [point, *bootstrap_interval(samples)]


def _difference(
    first: NDArray[np.float64], second: NDArray[np.float64], resamples: int, same: bool
) -> dict[str, float] | None:
    if np.isnan(first).all(1).any() or np.isnan(second).all(1).any():
        return None
    (a, drawn_a), (b, drawn_b) = (
        bootstrap_mean(table, resamples, seed_side=side) for table, side in ((first, 0), (second, 0 if same else 1))
    )
    samples = np.round(drawn_a - drawn_b, 12)  # sums in different orders must not make equal systems differ
    low, high = bootstrap_interval(samples)
    return {"value": round(a - b, 12), "low": low, "high": high, "p": bootstrap_p_value(samples)}


def measures_grid(
    title: str, found: Mapping[str, Any], columns: Mapping[str, tuple[str, int]], notes: Iterable[str] = ()
) -> Grid:
    """Levels of measures. columns: by measure its heading and how many digits it is shown with."""
    names = list(next(iter(found.values()))["levels"])
    rows: list[list[Cell]] = [
        [name, *(_cell(found[measure]["levels"][name], digits) for measure, (_, digits) in columns.items())]
        for name in names
    ]
    return Grid(title, ("system", *(heading for heading, _ in columns.values())), rows, tuple(notes))


def _cell(level: Sequence[float] | None, digits: int) -> Cell:
    return "-" if level is None else Interval(level[0], level[1], level[2], digits=digits)


def measure_differences_grid(found: Mapping[str, Any], columns: Mapping[str, tuple[str, int]]) -> Grid:
    """One row per comparison; Holm over all of them."""
    names = list(next(iter(found.values()))["differences"])
    cells = [[found[measure]["differences"][name] for measure in columns] for name in names]
    shown = [cell["p"] for row in cells for cell in row if cell is not None]
    adjusted = iter(holm(shown).adjusted.tolist() if shown else [])
    rows: list[list[Cell]] = []
    for name, row in zip(names, cells, strict=True):
        line: list[Cell] = [name]
        for cell, (_, digits) in zip(row, columns.values(), strict=True):
            line.append(
                "-" if cell is None else Interval(cell["value"], cell["low"], cell["high"], next(adjusted), digits)
            )
        rows.append(line)
    title = f"Differences of these, paired by recording; * significant (Holm over these {len(shown)}, 5 %)"
    return Grid(title, ("difference", *(heading for heading, _ in columns.values())), rows)


def with_measures(
    shown: Sequence[Grid],
    title: str,
    found: Mapping[str, Any],
    columns: Mapping[str, tuple[str, int]],
    notes: Iterable[str] = (),
    *more: Grid,
    compared: Iterable[str] | None = None,
) -> list[Grid]:
    """What a table shows that has measures beside mAP. shown: its grid of levels, then that of their differences; the
    measures, and `more`, stand between them, differences of the measures at the end. compared: of which; default
    all."""
    levels, *differences = shown
    of = columns if compared is None else {key: columns[key] for key in compared}
    grids = [levels, measures_grid(title, found, columns, notes), *more, *differences]
    return [grid for grid in (*grids, measure_differences_grid(found, of)) if grid.rows]
