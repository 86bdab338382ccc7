"""Where the depth of `tzn` goes, by recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.measures import Bench
from temporalzoom.experiments.per_recording import summarized
from temporalzoom.experiments.rereading import Way, read_again
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models import Outputs

COLUMNS = {"tau": ("mean tau", 3), "active": ("deep, %", 1), "kept": ("kept, %", 1)}
MEANING = "Tau: its mean over positions; deep: share of the positions that run deep; kept: that survive pruning."


def depth_of(localizer: Localizer, sample: Sample, outputs: Outputs) -> dict[str, float]:
    """Of one recording."""
    assert outputs.depth is not None
    return {
        "tau": float(outputs.depth.tau.double().mean()),
        "active": 100 * float(outputs.depth.active.double().mean()),
        "kept": 100 * float(outputs.depth.kept.double().mean()),
    }


def depth_summary(bench: Bench, comparisons: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Of every system of a table: the measures of COLUMNS, and their differences."""
    read = read_again(bench, {name: Way(name) for name in bench.parts}, depth_of, decode=False)
    measures = {key: {name: found.observed[key] for name, found in read.items()} for key in COLUMNS}
    return summarized(measures, comparisons, bench.resamples)
