"""What BDR and adaptive depth bring: the baseline, the baseline with BDR, and `tzn`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import BASELINE, chosen

SUMMARY = "uniform-6, uniform-6 with BDR, and tzn"
COMPARISONS = (("uniform-6+bdr", "uniform-6"), ("tzn", "uniform-6"), ("tzn", "uniform-6+bdr"))


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return chosen("uniform-6", "uniform-6+bdr", "tzn")


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results)
