"""The field's detectors beside ours: accuracy, executed FLOPs, time, weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import BASELINE, DETECTORS, chosen

SUMMARY = "the field's detectors beside ours: accuracy, executed FLOPs, time, weights"
COMPARISONS = tuple(("tzn", name) for name in (*DETECTORS, "uniform-6+bdr"))


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return chosen(*DETECTORS, "uniform-6+bdr", "tzn")


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results)
