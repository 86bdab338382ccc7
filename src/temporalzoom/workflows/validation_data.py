"""Recordings for choices that must not be made on the test: how a training comes along, what costs the same."""

from __future__ import annotations

from dataclasses import replace

from temporalzoom.config import Config, ZoomBenchData
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench

RECORDINGS = 24


def validation_split(config: Config, train: Split, recordings: int = RECORDINGS) -> Split:
    """Of the synthetic benchmark, sequences that are neither trained on nor tested; of recorded data, some of those
    that are trained on, evenly over the subset: there are none to spare."""
    if isinstance(config.data, ZoomBenchData):
        seed = config.seed if config.data.seed is None else config.data.seed
        bench = replace(ZoomBench.of(config.data), test_sequences=recordings)
        return make_zoombench(bench, seed, "validation")
    every = max(len(train.samples) // recordings, 1)
    return replace(train, samples=train.samples[::every][:recordings])
