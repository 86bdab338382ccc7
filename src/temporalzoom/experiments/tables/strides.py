"""SBHAR with a position every 25, 12 and 6 samples: what finer strides bring, and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.errors import InputError
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import TZN

SUMMARY = "sbhar with a position every 25, 12 and 6 samples: what finer strides bring, and cost"
# What is given in positions reaches as far in seconds as with the recipe's 25 samples. At a quarter of the stride, half
# as many crops: a step costs what it costs at half of it.
STRIDES: dict[str, tuple[str, ...]] = {
    "tzn-stride-12": (
        *TZN,
        "data.stride=12",
        "data.window=12",
        "model.stem=[4,3]",
        "model.levels=7",
        "model.zoom=48",
        "bdr.radius=16",
        "training.length=384",
    ),
    "tzn-stride-6": (
        *TZN,
        "data.stride=6",
        "data.window=6",
        "model.stem=[3,2]",
        "model.levels=8",
        "model.zoom=96",
        "bdr.radius=32",
        "training.length=768",
        "training.batch_size=4",
    ),
}


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    if data_set != "sbhar":
        raise InputError(f"--table strides: is about sbhar, whose signal has 50 samples a second, not about {data_set}")
    return {"tzn": TZN, **STRIDES}


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, [(name, "tzn") for name in STRIDES], "tzn")


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results)
