"""Does depth pay at all: the curve of uniform depth, 0 to 9 layers at every position, all else equal, with BDR.

Where it is flat, depth that is placed well can only be cheap; where it rises, it can be better too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import LEVELS, Results, compared_systems, corrected_differences
from temporalzoom.experiments.rendering import Grid, Interval

SUMMARY = "uniform depth: 0, 1, 2, 4, 6 and 9 layers at every position, all else equal"
DEPTHS = (0, 1, 2, 4, 6, 9)
SYSTEMS = {f"uniform-{depth}+bdr": (f"model.name=uniform-{depth}",) for depth in DEPTHS}
NONE, BASELINE = "uniform-0+bdr", "uniform-6+bdr"
COMPARISONS = tuple((name, NONE) for name in SYSTEMS if name != NONE)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return dict(SYSTEMS)


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results, *verdict(results))


def verdict(results: Results) -> list[str]:
    """One line in plain words: what of the shown differences to no layers at all is significant."""
    rows = corrected_differences(results)
    if not rows:
        return []
    cells = [(name.removesuffix(f" - {NONE}"), *cell) for name, row in rows for cell in zip(LEVELS, row, strict=True)]
    clear = [(name, level, cell) for name, level, cell in cells if cell.p is not None and cell.p <= 0.05]
    ahead, behind = [c for c in clear if c[2].value > 0], [c for c in clear if c[2].value < 0]
    if ahead:
        return [f"Depth pays here: {_words(max(ahead, key=_value))} over no layers."]
    if behind:
        return [f"Depth does harm here: {_words(min(behind, key=_value))} against no layers."]
    return [f"Flat: no difference to no layers is significant; the largest is {_words(max(cells, key=_value))}."]


def _value(cell: tuple[str, str, Interval]) -> float:
    return cell[2].value


def _words(cell: tuple[str, str, Interval]) -> str:
    name, level, difference = cell
    return f"{name} brings {difference.value:+.1f} {level} [{difference.low:+.1f}, {difference.high:+.1f}]"
