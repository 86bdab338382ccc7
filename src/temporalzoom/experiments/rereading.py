"""Trained networks read again: with other settings of inference, or a change of the network that needs no training.

What a network says of a recording is computed once for all ways to read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import InferenceConfig, change_inference
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.experiments.measures import Bench, Predictions, costs, differences, levels
from temporalzoom.experiments.reading import LEVELS, SHOWN, Results, describe
from temporalzoom.experiments.rendering import Cell, Grid, Interval
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_total
from temporalzoom.models import Outputs
from temporalzoom.progress import track
from temporalzoom.workflows.evaluate import sample_outputs

# What is measured of one recording, by name, from what a network says of it.
Observe = Callable[[Localizer, Sample, Outputs], Mapping[str, float]]


@dataclass(frozen=True)
class Way:
    """One way to read the networks of a system. settings: of inference, `inference.key=value`; change: of the network,
    before it runs; two ways with the same one share its outputs."""

    system: str
    settings: tuple[str, ...] = ()
    change: Callable[[Localizer], None] | None = None


@dataclass
class Read:
    """Of one way, by seed: predictions, FLOPs on the test; observed: by measure (S, V), recordings in the order of the
    truth, NaN where there is none."""

    predictions: list[Predictions] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    observed: dict[str, NDArray[np.float64]] = field(default_factory=dict)


def read_again(
    bench: Bench, ways: Mapping[str, Way], observe: Observe | None = None, decode: bool = True
) -> dict[str, Read]:
    """Every way whose system was trained. decode: False leaves `predictions` empty."""
    known = {name: way for name, way in ways.items() if way.system in bench.parts}
    found = {name: Read() for name in known}
    places = {name: place for place, name in enumerate(bench.truth)}
    tests: dict[str, Split] = {}
    systems = list(dict.fromkeys(way.system for way in known.values()))
    work = [(system, seed, folders) for system in systems for seed, folders in enumerate(bench.parts[system])]
    for system, seed, folders in track(work, "reading again", bench.console, "networks"):
        seeds = len(bench.parts[system])
        own = {name: way for name, way in known.items() if way.system == system}
        for read in (found[name] for name in own):
            read.predictions.append({})
            read.flops.append(0.0)
        for folder in folders:
            for change in dict.fromkeys(way.change for way in own.values()):
                chosen = {name: way for name, way in own.items() if way.change is change}
                localizer = Localizer.load(folder, device="cpu")
                if change is not None:
                    change(localizer)
                options = {name: _options(localizer, way) for name, way in chosen.items()}
                for sample in _test(localizer, tests).samples:
                    outputs, flops = _run(localizer, sample)
                    seen = {} if observe is None else observe(localizer, sample, outputs)
                    for name in chosen:
                        found[name].flops[seed] += flops
                        for measure, value in seen.items():
                            table = found[name].observed.setdefault(measure, np.full((seeds, len(places)), np.nan))
                            table[seed, places[sample.name]] = value
                        if decode:
                            localizer.options = options[name]
                            segments = localizer.decoded([outputs], sample.grid, sample.duration, sample.name).segments
                            found[name].predictions[seed][sample.name] = segments
    return found


def _run(localizer: Localizer, sample: Sample) -> tuple[Outputs, float]:
    outputs: list[Outputs] = []
    flops = count_total(lambda: outputs.append(sample_outputs(localizer, sample)))
    return outputs[0], float(flops)


def _options(localizer: Localizer, way: Way) -> InferenceConfig:
    described = localizer.description
    return change_inference(described.inference, way.settings, described.config) if way.settings else localizer.options


def _test(localizer: Localizer, tests: dict[str, Split]) -> Split:
    config = localizer.description.config
    key = config.data.model_dump_json()
    if key not in tests:
        test = load_data(config.data, config.seed, train=False).test
        assert test is not None
        tests[key] = test
    return tests[key]


def folders_of(bench: Bench, system: str) -> list[Path]:
    """Of all its trainings."""
    return [folder for folds in bench.parts[system] for folder in folds]


def ways_compared(
    bench: Bench,
    ways: Mapping[str, Way],
    comparisons: Sequence[tuple[str, str]],
    baseline: str,
    read: Mapping[str, Read],
) -> dict[str, Any]:
    """What a table of such ways stores: `systems`, what was trained; `rows`, levels of every way; `differences`.

    baseline: the way whose FLOPs are 1.
    """
    rows: dict[str, Any] = {}
    for name, found in track(read.items(), "intervals", bench.console, "rows"):
        base = read.get(baseline)
        ratios = [a / b for a, b in zip(found.flops, base.flops, strict=True)] if base is not None else []
        rows[name] = {
            **levels(bench.truth, found.predictions, bench.resamples),
            "system": ways[name].system,
            "settings": list(ways[name].settings),
            "gflops": float(np.mean(found.flops)) / 1e9,
            "flops_ratio": [float(np.mean(ratios)), min(ratios), max(ratios)] if ratios else None,
        }
    predictions = {name: found.predictions for name, found in read.items()}
    models = {name: ways[name].system for name in read}
    return {
        "baseline": baseline,
        "systems": {name: costs(bench.runs[name], None) for name in bench.runs},
        "rows": rows,
        "differences": differences(bench.truth, predictions, comparisons, bench.resamples, bench.console, models),
    }


def rows_grid(results: Results, heading: str, *notes: str) -> Grid:
    """Levels of every way."""
    rows: list[list[Cell]] = []
    for name, row in results["rows"].items():
        flops = "-" if row["flops_ratio"] is None else f"{row['flops_ratio'][0]:.2f}x"
        rows.append([name, *(Interval(*row["mAP"][t]) for t in SHOWN), Interval(*row["average"]), flops])
    return Grid(describe(results), (heading, *LEVELS, "FLOPs"), rows, notes)
