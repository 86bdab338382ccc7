"""Recordings for choices that must not be made on the test: how a training comes along, what costs the same."""

from __future__ import annotations

from dataclasses import replace

from temporalzoom.config import Config, ZoomBenchData
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data

RECORDINGS = 24


def validation_split(config: Config, train: Split, recordings: int = RECORDINGS) -> Split:
    """Of the synthetic benchmark, sequences that are neither trained on nor tested; of recorded data, some of those
    that are trained on, evenly over the subset: there are none to spare."""
    if isinstance(config.data, ZoomBenchData):
        drawn = config.data.model_copy(update={"validation": True, "test_sequences": recordings})
        validation = load_data(drawn, config.seed, train=False).test
        assert validation is not None
        return validation
    every = max(len(train.samples) // recordings, 1)
    return replace(train, samples=train.samples[::every][:recordings])
