"""How boundaries move segment ends: not, to the nearest, by Newton steps, fused; of distances, and of both fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.boundary_measures import COLUMNS, notes, ways_and_boundaries
from temporalzoom.experiments.measures import Bench
from temporalzoom.experiments.per_recording import with_measures
from temporalzoom.experiments.reading import differences_grid
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.rereading import Way, rows_grid
from temporalzoom.experiments.systems import chosen

SUMMARY = "refinement of segment ends: none, snap, newton, fuse; the hybrid with a boundary classifier"
BDR, HYBRID = "uniform-6+bdr", "uniform-6+hybrid"
MODES = ("none", "snap", "newton", "fuse")
WAYS = {
    **{mode: Way(BDR, (f"inference.refine={mode}",)) for mode in MODES},
    **{f"hybrid, {mode}": Way(HYBRID, (f"inference.refine={mode}",)) for mode in MODES},
}
NONE = "none"
COMPARISONS = (
    *((mode, NONE) for mode in MODES if mode != NONE),
    *((f"hybrid, {mode}", f"hybrid, {NONE}") for mode in MODES if mode != NONE),
    ("hybrid, fuse", "fuse"),
)
NOTES = (
    f"Rows without a name: {BDR}; hybrid: {HYBRID}, which also predicts the probability of a boundary, and has its "
    "peaks where no zero crossing is near. The networks are trained once, and read in all these ways.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return chosen(BDR, HYBRID)


def measure(bench: Bench) -> dict[str, Any]:
    return ways_and_boundaries(bench, WAYS, COMPARISONS, NONE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown = (rows_grid(results, "refinement", *NOTES), differences_grid(results))
    columns = {"bcd": COLUMNS["bcd"]}
    return with_measures(shown, "Boundaries", results["boundaries"], columns, notes(columns))
