"""ZoomBench generated with a position every 2, 4 and 8 frames: the same actions, seen at other resolutions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.errors import InputError
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import TZN

SUMMARY = "zoombench with a position every 2, 4 and 8 frames: what finer strides bring, and cost"
BASELINE = "tzn-stride-4"
# 513 positions of 4 frames are a whole number of positions at the other strides: actions are the same to the frame.
# What is given in positions reaches as far in seconds at all of them.
_SAME = (*TZN, "data.length=513")
SYSTEMS: dict[str, tuple[str, ...]] = {
    BASELINE: _SAME,
    "tzn-stride-2": (
        *_SAME,
        "data.stride=2",
        "model.levels=7",
        "model.zoom=48",
        "bdr.radius=16",
        "training.length=512",
    ),
    "tzn-stride-8": (
        *_SAME,
        "data.stride=8",
        "model.levels=5",
        "model.zoom=12",
        "bdr.radius=4",
        "training.length=128",
    ),
}
COMPARISONS = tuple((name, BASELINE) for name in SYSTEMS if name != BASELINE)
NOTES = ("Windows cover 8 frames at every stride; noise is drawn anew for every position.",)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    if not data_set.startswith("zoombench"):
        raise InputError(f"--table stride: is about generated sequences (zoombench), not about {data_set}")
    return dict(SYSTEMS)


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results, *NOTES)
