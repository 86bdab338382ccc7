"""The paper's own design beside ours: its layers, attention, heads, losses, penalties and extraction, at our size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from temporalzoom.config import parse_yaml, recipe_text
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import BASELINE, chosen

SUMMARY = "the paper's literal design (recipe `paper`) beside tzn and uniform-6, at the same size"
# What stays as in the data set's recipe: what is read, how wide a network is and how long it is trained. The recipe's
# own, 768 channels and 60000 steps of 32 crops, is a GPU's work.
OURS = (
    "data.", "model.name", "model.width", "model.heads", "model.standardize", "model.paper.head_width",
    "training.steps", "training.batch_size", "training.accumulate", "training.length", "training.learning_rate",
    "training.betas", "training.warmup_steps", "training.ema_decay", "augment.",
)  # fmt: skip
COMPARISONS = (("tzn", "paper"), ("paper", BASELINE), ("tzn", BASELINE))
NOTES = (
    "paper: 2 + 7 layers with global attention, heads by MLPs, one level, Hungarian assignment, one joint unclipped "
    "distance field, penalties on tau and on tokens, snapping. Width, optimizer and steps are those of the data set's "
    "recipe for all three; `tzoom train paper` trains it as it is written.",
)


def literal() -> tuple[str, ...]:
    """The settings of the recipe `paper` that are about its design."""
    tree = parse_yaml(recipe_text("paper"))
    flat = dict(_flat(tree))
    return tuple(f"{key}={json.dumps(value)}" for key, value in flat.items() if not key.startswith(OURS))


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return {**chosen(BASELINE, "tzn"), "paper": ("model.name=tzn", *literal())}


def measure(bench: Bench) -> dict[str, Any]:
    return compared(bench, COMPARISONS, BASELINE)


def read(results: Mapping[str, Any]) -> list[Grid]:
    return compared_systems(results, *NOTES)
