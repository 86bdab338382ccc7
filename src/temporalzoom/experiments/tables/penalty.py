"""The penalties of the paper: lambda_c on tau and lambda_p on the importance of tokens, over their ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.depth_measures import COLUMNS, MEANING, depth_summary
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.per_recording import with_measures
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import PENALTY

SUMMARY = "the paper's penalties: lambda_c on tau, lambda_p on the importance of tokens"
# Those of its table of sensitivity, and the two more that it chose among.
WEIGHTS = ((0.001, 0.01), (0.01, 0.01), (0.05, 0.01), (0.1, 0.01), (0.001, 0.005), (0.1, 0.02))


def _name(compute: float, prune: float) -> str:
    return f"tzn-c{compute:g}-p{prune:g}"


BASELINE = _name(0.05, 0.01)
SYSTEMS = {
    _name(c, p): (
        *PENALTY,
        "model.pruning=true",
        f"model.paper.compute_weight={c:g}",
        f"model.paper.prune_weight={p:g}",
    )
    for c, p in WEIGHTS
}
COMPARISONS = tuple((name, BASELINE) for name in SYSTEMS if name != BASELINE)
NOTES = (
    "tzn as the paper has it here: tau learns from the detection loss with a linear penalty lambda_c (after a warm-up) "
    "and goes deep from 0.5 on, and 0.8 of the positions are kept, with a penalty lambda_p on their importance. "
    "tzn-c0.05-p0.01 has lambda_c 0.05 and lambda_p 0.01.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return dict(SYSTEMS)


def measure(bench: Bench) -> dict[str, Any]:
    return {
        **compared(bench, COMPARISONS, BASELINE),
        "depth": depth_summary(bench, COMPARISONS),
    }


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown = compared_systems(results, *NOTES)
    return with_measures(shown, "Depth", results["depth"], COLUMNS, [MEANING])
