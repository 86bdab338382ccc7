"""Hysteresis of tau: how often it changes sides, its entropy, and what runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.measures import Bench
from temporalzoom.experiments.per_recording import measure_differences_grid, measures_grid, summarized
from temporalzoom.experiments.reading import differences_grid
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.rereading import Way, read_again, rows_grid, ways_compared
from temporalzoom.experiments.systems import TZN
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models import Outputs, TemporalZoom

SUMMARY = "hysteresis of tau: none, hold, deadzone; flip rate, entropy, executed FLOPs"
COLUMNS = {
    "flips": ("flip rate, %", 2),
    "changes": ("changes of depth, %", 2),
    "entropy": ("entropy, bits", 3),
    "tau": ("mean tau", 3),
}
NOTES = ("The networks of tzn are trained without hysteresis, and read with each; the band is 0.05.",)
MEASURES = (
    "Flip rate, as in the paper: how often the sign of tau - 1/2 differs from that of the position before; a tau of "
    "exactly 1/2, which the dead zone gives, has sign 0. Changes of depth: how often a position runs deep and the one "
    "before it does not, or the other way round. Entropy: of a coin that falls on one side with probability tau, mean "
    "over positions. All are means over recordings.",
)


def _with(kind: str) -> Callable[[Localizer], None]:
    def change(localizer: Localizer) -> None:
        model = localizer.model
        assert isinstance(model, TemporalZoom)
        model.hysteresis = kind  # type: ignore[assignment]

    return change


NONE = "none"
WAYS = {kind: Way("tzn", (), _with(kind)) for kind in (NONE, "hold", "deadzone")}
COMPARISONS = tuple((kind, NONE) for kind in WAYS if kind != NONE)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return {"tzn": TZN}


def stability(localizer: Localizer, sample: Sample, outputs: Outputs) -> dict[str, float]:
    """Of one recording."""
    assert outputs.depth is not None
    tau, active = outputs.depth.tau.double().numpy(), outputs.depth.active.numpy()
    return {
        "flips": 100 * flip_rate(tau),
        "changes": 100 * float(np.mean(active[1:] != active[:-1])) if len(active) > 1 else 0.0,
        "entropy": entropy(tau),
        "tau": float(tau.mean()),
    }


def flip_rate(tau: NDArray[np.float64]) -> float:
    """The share of positions, but the first, at which sign(tau - 1/2) is not what it was one position before."""
    signs = np.sign(tau - 0.5)
    return float(np.mean(signs[1:] != signs[:-1])) if len(tau) > 1 else 0.0


def entropy(tau: NDArray[np.float64]) -> float:
    """Of coins with these probabilities (T,), in bits, their mean."""
    p = np.stack((tau, 1 - tau)).clip(1e-12, 1.0)
    return float(-(p * np.log2(p)).sum(0).mean())


def measure(bench: Bench) -> dict[str, Any]:
    read = read_again(bench, WAYS, stability)
    models = {name: way.system for name, way in WAYS.items()}
    measures = {key: {name: found.observed[key] for name, found in read.items()} for key in COLUMNS}
    return {
        **ways_compared(bench, WAYS, COMPARISONS, NONE, read),
        "stability": summarized(measures, COMPARISONS, bench.resamples, models),
    }


def read(results: Mapping[str, Any]) -> list[Grid]:
    found = results["stability"]
    grids = [
        rows_grid(results, "hysteresis", *NOTES),
        measures_grid("Stability of tau", found, COLUMNS, MEASURES),
        differences_grid(results),
        measure_differences_grid(found, COLUMNS),
    ]
    return [grid for grid in grids if grid.rows]
