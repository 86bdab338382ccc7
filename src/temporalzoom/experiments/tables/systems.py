"""The field's detectors beside ours, with what tells depth apart from design: accuracy, executed FLOPs, time, weights.

tzn with depth nowhere, elsewhere and everywhere; uniform networks of few layers; a dense one of its cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import BASELINE, CONTROLS, DETECTORS, REFERENCES, chosen

SUMMARY = "the field's detectors beside ours: accuracy, executed FLOPs, time, weights"
WITH_BDR = ("uniform-6+bdr", "temporalmaxer+bdr", "tridet+bdr")
COMPARISONS = tuple(("tzn", name) for name in (*DETECTORS, *WITH_BDR, *REFERENCES, *CONTROLS))
NOTES = (
    "tzn-none, -random, -regular, -oracle, -all: the network of tzn, trained with depth there; tzn-oracle is told the "
    "true boundaries: an ablation, not a result. dense: a uniform network with BDR of the executed FLOPs of tzn.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return chosen(*DETECTORS, *WITH_BDR, *REFERENCES, *CONTROLS, "tzn")


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown = {*CONTROLS, *REFERENCES} & set(results["systems"])
    return compared_systems(results, *(NOTES if shown else ()))
