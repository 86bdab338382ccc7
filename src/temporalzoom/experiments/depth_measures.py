"""Where the depth of `tzn` goes, by recording."""

from __future__ import annotations

from temporalzoom.datasets.samples import Sample
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
