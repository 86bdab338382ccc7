"""What the extraction of boundaries depends on: the least slope, the window of suppression, the weights of levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.boundary_measures import COLUMNS, notes, ways_and_boundaries
from temporalzoom.experiments.data_sets import training_config
from temporalzoom.experiments.measures import Bench
from temporalzoom.experiments.per_recording import with_measures
from temporalzoom.experiments.reading import differences_grid
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.rereading import Way, rows_grid
from temporalzoom.experiments.systems import chosen

SUMMARY = "extraction of boundaries: least slope, window of suppression, weights of levels"
BDR = "uniform-6+bdr"
BASE = "slope 0.5, window 5"
WEIGHTED = {
    f"{BDR}-{weight}": ("model.name=uniform-6", f"bdr.scales={weight}") for weight in ("one", "sqrt", "inverse")
}


def _snap(system: str, slope: float = 0.5, window: float = 5) -> Way:
    settings = ("refine=snap", f"min_slope={slope}", f"boundary_window={window}")
    return Way(system, tuple(f"inference.{setting}" for setting in settings))


WAYS = {
    BASE: _snap(BDR),
    "slope 0.3": _snap(BDR, slope=0.3),
    "slope 0.7": _snap(BDR, slope=0.7),
    "window 3": _snap(BDR, window=3),
    "window 7": _snap(BDR, window=7),
    "all levels, 1": _snap(f"{BDR}-one"),
    "all levels, 1/sqrt(s)": _snap(f"{BDR}-sqrt"),
    "all levels, 1/s": _snap(f"{BDR}-inverse"),
}
COMPARISONS = tuple((name, BASE) for name in WAYS if name != BASE)
NOTES = (
    f"{BDR} with `inference.refine=snap`, the one refinement that extracts boundaries (the default, `fuse`, does not "
    "depend on slope and window). The last three are trained with the loss on every level s, with this weight.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    levels = training_config(data_set, None, 0, chosen(BDR)[BDR]).model.levels
    return {**chosen(BDR), **(WEIGHTED if levels > 1 else {})}  # a single level has no weights


def measure(bench: Bench) -> dict[str, Any]:
    return ways_and_boundaries(bench, WAYS, COMPARISONS, BASE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown = (rows_grid(results, "extraction", *NOTES), differences_grid(results))
    columns = {"bcd": COLUMNS["bcd"]}
    return with_measures(shown, "Boundaries", results["boundaries"], columns, notes(columns))
