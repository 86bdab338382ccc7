"""Token pruning, and which boundaries are protected from it: none, predicted ones, and true ones in training only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import nn

from temporalzoom.bdr import extract_boundaries
from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.depth_measures import depth_of
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.per_recording import summarized, with_measures
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.rereading import Way, read_again
from temporalzoom.experiments.systems import TZN
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models import Outputs, TemporalZoom

SUMMARY = "token pruning: protection of no, of predicted, and in training of true boundaries"
FRAMES = 2.0  # within which the shallow path has found a boundary
ALL, BASELINE = "tzn-all", "tzn-pruned"
_PRUNED = (*TZN, "model.depth=false", "model.pruning=true")
SYSTEMS = {
    BASELINE: _PRUNED,
    "tzn-pruned-none": (*_PRUNED, "model.paper.protection=none"),
    "tzn-pruned-training": (*_PRUNED, "model.paper.protection=training"),
    ALL: (*TZN, "model.depth=false"),
}
COMPARISONS = tuple((BASELINE, name) for name in SYSTEMS if name != BASELINE)
COLUMNS = {
    "recall": ("found by the shallow path, %", 1),
    "lost": ("missed and pruned, %", 2),
    "kept": ("kept, %", 1),
}
NOTES = (
    "Every kept position goes deep, 0.8 of them and those within 12 frames of a boundary that the shallow path "
    "predicts; -none: of no boundary; -training: an oracle, of the true ones in training, of predicted ones in the "
    "test. tzn-all prunes nothing.",
)
MEASURES = (
    "Found by the shallow path: share of the true boundaries that its distance fields cross zero within 2 frames of. "
    "Missed and pruned: share of those that it misses and whose position is pruned. Means over recordings.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return dict(SYSTEMS)


def shallow_alone(localizer: Localizer) -> None:
    """From now on the deep path adds nothing; which positions are kept is decided as before."""
    model = localizer.model
    assert isinstance(model, TemporalZoom)
    model.deep = nn.ModuleList()


def boundaries_kept(localizer: Localizer, sample: Sample, outputs: Outputs) -> dict[str, float]:
    """Of one recording, from the outputs of the shallow path alone."""
    assert outputs.distances is not None and outputs.depth is not None
    kept = outputs.depth.kept.numpy()
    found, lost = [], []
    for side, times in ((0, sample.segments.starts), (-1, sample.segments.ends)):
        true = sample.grid.to_grid(times)
        seen, _ = extract_boundaries(outputs.distances[:, side])
        nearest = np.abs(true[:, None] - seen).min(1, initial=np.inf)
        near = nearest <= FRAMES / sample.grid.stride
        at = np.rint(true).astype(int).clip(0, len(kept) - 1)
        found.append(near)
        lost.append(~near & ~kept[at])
    missed, both = np.concatenate(found), np.concatenate(lost)
    if not len(missed):
        return {"recall": np.nan, "lost": np.nan, **depth_of(localizer, sample, outputs)}
    return {
        "recall": 100 * float(missed.mean()),
        "lost": 100 * float(both.mean()),
        **depth_of(localizer, sample, outputs),
    }


def measure(bench: Bench) -> dict[str, Any]:
    ways = {name: Way(name, change=shallow_alone) for name in bench.parts}
    read = read_again(bench, ways, boundaries_kept, decode=False)
    measures = {key: {name: found.observed[key] for name, found in read.items()} for key in COLUMNS}
    return {
        **compared(bench, COMPARISONS, BASELINE),
        "boundaries": summarized(measures, COMPARISONS, bench.resamples),
    }


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown = compared_systems(results, *NOTES)
    return with_measures(shown, "Boundaries", results["boundaries"], COLUMNS, MEASURES)
