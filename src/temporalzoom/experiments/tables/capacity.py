"""How many layers a boundary classifier needs to do what BDR does with fewer: 3, 6, 9 and 12 of `uniform-N`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import LEVELS, Results, compared_systems, corrected_differences
from temporalzoom.experiments.rendering import Grid

SUMMARY = "boundary classification against BDR with 3, 6, 9 and 12 layers of uniform-N"
DEPTHS = (3, 6, 9, 12)
MATCHED = 6  # layers of BDR that a classifier is compared with at every depth
BASELINE = f"uniform-{MATCHED}+bdr"
SYSTEMS: dict[str, tuple[str, ...]] = {
    **{f"uniform-{n}+bdr": (f"model.name=uniform-{n}",) for n in DEPTHS},
    **{f"uniform-{n}+bce": (f"model.name=uniform-{n}", "bdr.loss=bce") for n in DEPTHS},
}
COMPARISONS = (
    *((f"uniform-{n}+bdr", f"uniform-{n}+bce") for n in DEPTHS),
    *((f"uniform-{n}+bce", BASELINE) for n in DEPTHS if n != MATCHED),
)
LEVEL = "@0.7"  # of the paper's table


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return dict(SYSTEMS)


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results, *verdict(results))


def verdict(results: Results) -> list[str]:
    """One line in plain words: with how many layers a classifier is no longer significantly behind BDR with six."""
    rows = dict(corrected_differences(results))
    column, behind = LEVELS.index(LEVEL), {}
    for n in DEPTHS:
        classifier = f"uniform-{n}+bce"
        cell, sign = rows.get(f"{classifier} - {BASELINE}"), -1
        if cell is None and n == MATCHED:
            cell, sign = rows.get(f"{BASELINE} - {classifier}"), 1
        if cell is not None:
            gap = cell[column]
            behind[n] = sign * gap.value > 0 and gap.p is not None and gap.p <= 0.05
    if not behind:
        return []
    enough = [n for n, lags in behind.items() if not lags]
    if not enough:
        return [f"With up to {max(behind)} layers classification stays behind BDR with {MATCHED}, {LEVEL}."]
    return [
        f"From {min(enough)} layers on classification is not significantly behind BDR with {MATCHED} layers, {LEVEL}."
    ]
