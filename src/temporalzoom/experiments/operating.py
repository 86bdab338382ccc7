"""Trained systems at operating points of equal cost: what they find on the test there, and what they execute for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from temporalzoom.config import Config, load_config
from temporalzoom.console import plain_console
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.experiments.matching import Knob, Match, executed, knob_of, match
from temporalzoom.experiments.measures import Predictions
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_total
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.training.validation import CURVE_FILE, read_scores, steps_to
from temporalzoom.workflows.evaluate import localize_split
from temporalzoom.workflows.sweep import CONFIG
from temporalzoom.workflows.validation_data import validation_split

MATCHED_ON = 8  # validation recordings that costs are matched on
_QUIET = plain_console(quiet=True)


@dataclass(frozen=True)
class Point:
    """A system at a cost, of one seed, all folds together: what it finds, FLOPs on the test, mean number of deep layers
    that a position went through, and how the knob of each fold was found."""

    predictions: Predictions
    flops: float
    depth: float
    matches: tuple[Match, ...]

    def summary(self) -> dict[str, Any]:
        return {
            "knob": self.matches[0].knob,
            "values": [one.value for one in self.matches],
            "flops_over_target": sum(m.flops for m in self.matches) / sum(m.target for m in self.matches),
            "within": all(one.within for one in self.matches),
        }


class Trained:
    """A trained network in its folder, and the data that it is matched and tested on."""

    def __init__(self, folder: Path, data: DataCache) -> None:
        self.folder = folder
        self.config = load_config(folder / CONFIG)
        self.localizer = Localizer.load(folder, device="cpu")
        self.validation, self.test = data.of(self.config)
        self._trained = 0.0 if self.knob is None else self.knob.read(self.localizer.model)

    @property
    def knob(self) -> Knob | None:
        return knob_of(self.localizer.model)

    def restore(self, point: Point) -> None:
        """Back to an operating point of this network."""
        if self.knob is not None:
            value = point.matches[0].value
            self.knob.set(self.localizer.model, self._trained if value is None else value)

    def cost(self) -> float:
        """FLOPs on the validation data, as trained."""
        return executed(self.localizer, self.validation)

    def at(self, target: float | None) -> Point:
        """target: FLOPs on the validation data; None: as trained."""
        if target is None:
            spent = self.cost()
            found = Match(None, None, spent, spent)
        else:
            found = match(self.localizer, self.validation, target)
        predictions: Predictions = {}
        with counted_layers(self.localizer.model) as layers:
            flops = count_total(lambda: predictions.update(localize_split(self.localizer, self.test, _QUIET)))
        return Point(predictions, float(flops), layers.mean, (found,))


class DataCache:
    """Validation and test recordings by data set and seed: several networks read the same."""

    def __init__(self) -> None:
        self._splits: dict[str, tuple[Split, Split]] = {}

    def of(self, config: Config) -> tuple[Split, Split]:
        key = json.dumps([config.data.model_dump(mode="json"), config.seed])
        if key not in self._splits:
            data = load_data(config.data, config.seed)
            assert data.train is not None and data.test is not None
            self._splits[key] = validation_split(config, data.train, MATCHED_ON), data.test
        return self._splits[key]


def joined(points: Sequence[Point]) -> Point:
    """Those of the folds of one seed."""
    return Point(
        {name: segments for point in points for name, segments in point.predictions.items()},
        sum(point.flops for point in points),
        float(np.mean([point.depth for point in points])),
        tuple(one for point in points for one in point.matches),
    )


class LayerCount:
    """How many deep layers ran, over positions."""

    def __init__(self) -> None:
        self.tokens = self.positions = 0

    @property
    def mean(self) -> float:
        return self.tokens / max(self.positions, 1)


@contextmanager
def counted_layers(model: nn.Module) -> Iterator[LayerCount]:
    """Counts the tokens that enter each transformer layer that not all networks run everywhere: the deep ones of `tzn`,
    those of `uniform-N`."""
    count = LayerCount()

    def enter(_: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        count.tokens += arguments[0].shape[0] * arguments[0].shape[1]

    def begin(_: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        count.positions += arguments[0].shape[0] * arguments[0].shape[1]

    layers: Any = getattr(model, "deep", None)
    if layers is None:
        layers = getattr(getattr(model, "encoder", None), "layers", ())
    handles = [layer.register_forward_pre_hook(enter) for layer in layers]
    handles.append(model.register_forward_pre_hook(begin))
    try:
        yield count
    finally:
        for handle in handles:
            handle.remove()


def learning(folders: Sequence[Path]) -> dict[str, Any]:
    """How trainings came along: steps to nine tenths of the last validation score, and the gradients of what decides
    about depth; means over them, None where there is no such thing."""
    steps = [steps_to(read_scores(folder / CURVE_FILE)) for folder in folders]
    last = [(read_metrics(folder / "metrics.jsonl") or [{}])[-1] for folder in folders]

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    names = ("depth_gradient_variance", "depth_gradient_noise")
    return {"steps_to_90": mean(steps), **{name: mean([line.get(name) for line in last]) for name in names}}
