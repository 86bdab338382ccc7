"""How what the deep path says is combined with the shallow outputs: the four modes of `tzn`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.boundary_measures import COLUMNS as BOUNDARIES
from temporalzoom.experiments.boundary_measures import chamfer, notes
from temporalzoom.experiments.depth_measures import COLUMNS as DEPTH
from temporalzoom.experiments.depth_measures import MEANING, depth_of
from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.per_recording import summarized, with_measures
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.rereading import Way, read_again
from temporalzoom.experiments.systems import TZN
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models import Outputs

SUMMARY = "how tzn combines both paths: residual, logits, features, layers"
BASELINE = "tzn"
SYSTEMS = {
    BASELINE: TZN,
    **{f"tzn-{mode}": (*TZN, f"model.paper.combine={mode}") for mode in ("logits", "features", "layers")},
}
COMPARISONS = tuple((name, BASELINE) for name in SYSTEMS if name != BASELINE)
COLUMNS = {"bcd": BOUNDARIES["bcd"], **DEPTH}
NOTES = (
    "tzn combines by `residual`. Table `depth` has these modes at equal cost, beside other ways to allocate depth.",
)


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    return dict(SYSTEMS)


def observed(localizer: Localizer, sample: Sample, outputs: Outputs) -> dict[str, float]:
    return {"fps": sample.grid.fps, **depth_of(localizer, sample, outputs)}


def measure(bench: Bench) -> dict[str, Any]:
    read = read_again(bench, {name: Way(name) for name in bench.parts}, observed, decode=False)
    measures = {
        "bcd": {name: chamfer(bench.truth, bench.predictions[name], found) for name, found in read.items()},
        **{key: {name: found.observed[key] for name, found in read.items()} for key in DEPTH},
    }
    return {
        **compared(bench, COMPARISONS, BASELINE),
        "measures": summarized(measures, COMPARISONS, bench.resamples),
    }


def read(results: Mapping[str, Any]) -> list[Grid]:
    shown, meanings = compared_systems(results, *NOTES), (*notes(["bcd"]), MEANING)
    return with_measures(shown, "Boundaries and depth", results["measures"], COLUMNS, meanings, compared=["bcd"])
