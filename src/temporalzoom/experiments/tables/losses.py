"""Boundary losses: probabilities by cross-entropy or focal loss, boxes by their IoU alone, and BDR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.experiments.boundary_measures import COLUMNS, chamfer, notes, sharpness
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.per_recording import summarized, with_measures
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.rereading import Way, read_again
from temporalzoom.experiments.systems import BASELINE, chosen

SUMMARY = "boundary losses on uniform-6: cross-entropy, focal, IoU of boxes alone, BDR; sharpness, BCD"
BDR = "uniform-6+bdr"
NAMES = ("uniform-6+bce", "uniform-6+focal", BASELINE, BDR)
COMPARISONS = tuple((BDR, name) for name in NAMES if name != BDR)
NOTES = (
    "All have boxes with an IoU loss; uniform-6 has nothing else. +bce and +focal predict at every position whether a "
    "start or an end is there, with a Gaussian of one position as the target; segment ends move to the peaks in the "
    "place of the zero crossings of BDR, fused by the width of the peak.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return chosen(*NAMES)


def measure(bench: Bench) -> dict[str, Any]:
    read = read_again(bench, {name: Way(name) for name in bench.parts}, sharpness, decode=False)
    measures = {
        "sharpness": {name: found.observed["sharpness"] for name, found in read.items()},
        "bcd": {name: chamfer(bench.truth, bench.predictions[name], found) for name, found in read.items()},
    }
    return {
        **compared(bench, COMPARISONS, BASELINE),
        "boundaries": summarized(measures, COMPARISONS, bench.resamples),
    }


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown = compared_systems(results, *NOTES)
    return with_measures(shown, "Boundaries", results["boundaries"], COLUMNS, notes(COLUMNS))
