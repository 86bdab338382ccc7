"""The component ablation: BDR, uncertainty and depth of `tzn`, each alone, in pairs, and all three."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import BASELINE, TZN, chosen

SUMMARY = "BDR, uncertainty and depth of tzn: each alone, in pairs, all three, beside uniform-6"
SWITCHES = {"bdr": "bdr.enabled", "uncertainty": "model.uncertainty", "depth": "model.depth"}
PARTS = ["+".join(parts) for count in (1, 2) for parts in combinations(SWITCHES, count)]
# What each brings to the baseline, and what the one that a pair lacks brings to it.
COMPARISONS = (
    *((name, BASELINE) for name in (*PARTS, "tzn")),
    *(("tzn", name) for name in PARTS if "+" in name),
)
NOTES = (
    "tzn has all three. Without depth every position goes deep; pruning is off everywhere.",
    "Uncertainty learns from the errors of the distances; without BDR, from those of the boxes.",
)


def switched(*parts: str) -> tuple[str, ...]:
    """The settings of `tzn` with these of its components."""
    switches = (f"{key}={str(name in parts).lower()}" for name, key in SWITCHES.items())
    return (*TZN, "model.pruning=false", *switches)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    parts = {name: switched(*name.split("+")) for name in PARTS}
    return {**chosen(BASELINE), **parts, "tzn": switched(*SWITCHES)}


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results, *NOTES)
