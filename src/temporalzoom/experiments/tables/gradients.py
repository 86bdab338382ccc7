"""The gradient of tau under the paper's penalty: everywhere, or stopped where tau is below 0.3; beside our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.depth_measures import COLUMNS, MEANING, depth_summary
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.operating import learning
from temporalzoom.experiments.per_recording import with_measures
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Cell, Grid
from temporalzoom.experiments.rereading import folders_of
from temporalzoom.experiments.systems import PENALTY, TZN

SUMMARY = "how tau is learned: from the value of depth, by the paper's penalty, stopped below 0.3"
BASELINE, PLAIN, STOPPED = "tzn", "tzn-penalty", "tzn-stopped"
SYSTEMS = {
    BASELINE: TZN,
    PLAIN: PENALTY,
    STOPPED: (*TZN, "model.paper.supervision=stopped", "model.paper.tau_min=0.5"),
}
COMPARISONS = ((STOPPED, PLAIN), (PLAIN, BASELINE), (STOPPED, BASELINE))
NOTES = (
    "tzn learns tau from the measured value of depth. tzn-penalty: from the detection loss with lambda_c 0.05, deep "
    "from 0.5 on; tzn-stopped: the same, but a position with a tau below 0.3 does not teach the depth predictor.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return dict(SYSTEMS)


def measure(bench: Bench) -> dict[str, Any]:
    return {
        **compared(bench, COMPARISONS, BASELINE),
        "depth": depth_summary(bench, COMPARISONS),
        "learning": {name: learning(folders_of(bench, name)) for name in bench.parts},
    }


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown = compared_systems(results, *NOTES)
    return with_measures(shown, "Depth", results["depth"], COLUMNS, [MEANING], _learning(results))


def _learning(results: Mapping[str, Any]) -> Grid:
    rows: list[list[Cell]] = []
    for name, one in results["learning"].items():
        steps, variance, noise = (one[k] for k in ("steps_to_90", "depth_gradient_variance", "depth_gradient_noise"))
        rows.append(
            [
                name,
                "-" if steps is None else f"{steps:.0f}",
                "-" if variance is None else f"{variance:.2g}",
                "-" if noise is None else f"{noise:.2f}",
            ]
        )
    note = (
        "Variance over the steps of the gradient of the depth predictor, mean over its parameters; its share of the "
        "mean square does not depend on the weight of a loss."
    )
    return Grid("How tau is learned", ("system", "steps to 90 %", "gradient variance", "its share"), rows, (note,))
