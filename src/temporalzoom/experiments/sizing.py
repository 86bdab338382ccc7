"""Before training: how large a network has to be to cost what `tzn` does, where no knob can change that afterwards.

Executed FLOPs depend on sizes, not on weights: they are counted on networks that have not been trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from temporalzoom.config import Config, EncoderSection, changed
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.experiments.systems import DENSE, TZN
from temporalzoom.metrics.cost import count_total
from temporalzoom.models import AdaptiveDepth, RoutedZoom
from temporalzoom.runs.network import model_from_config

EARLY_EXITS = ("early-exit", "early-exit+temp")
# Every position passes the first exit: with that it may cost this share of tzn, the rest is for those that go on.
FIRST_EXIT = 0.9
DENSE_LAYERS = (0, 1, 2, 3)
WIDEST = 1.5  # of a dense network, relative to tzn
LENGTH = 512  # positions that costs are counted on


def matched_sizes(
    settings: Mapping[str, Sequence[str]], config_of: Callable[[Sequence[str]], Config]
) -> dict[str, tuple[str, ...]]:
    """By system: the settings that make it cost what tzn does. config_of: from settings to a configuration."""
    wanted = [name for name in settings if name == DENSE or name in EARLY_EXITS]
    if not wanted:
        return {}
    reference = config_of(TZN)
    test = load_data(reference.data, reference.seed, train=False).test
    assert test is not None
    target = untrained_cost(reference, test)
    found: dict[str, tuple[str, ...]] = {}
    for name in wanted:
        config = config_of(settings[name])
        found[name] = dense_size(config, test, target) if name == DENSE else exit_size(config, test, target)
    return found


def untrained_cost(config: Config, split: Split) -> float:
    """FLOPs of one pass: of `tzn` with its share of the positions, of exits where all positions leave at the first."""
    torch.manual_seed(0)
    model = model_from_config(config, split.input_width, len(split.classes), split.samples[0].grid).eval()
    if isinstance(model, RoutedZoom):
        model.margin = -math.inf
    elif isinstance(model, AdaptiveDepth) and model.depth is not None and model.budget is None:
        model.budget = model.share
    features = torch.randn(1, LENGTH, split.input_width)
    return float(count_total(lambda: model(features, torch.ones(1, LENGTH, dtype=torch.bool))))


def widths(config: Config, most: float = 1.0) -> Iterator[int]:
    """Those that the heads of attention allow, from `most` times the configured one down."""
    assert isinstance(config.model, EncoderSection)
    step = config.model.heads if config.model.heads % 2 == 0 else 2 * config.model.heads
    yield from range(int(most * config.model.width) // step * step, 0, -step)


def exit_size(config: Config, split: Split, target: float) -> tuple[str, ...]:
    """The largest width at which the first exit leaves something for the others; the smallest, where none does."""
    chosen = config.model.width
    for width in widths(config):
        chosen = width
        if untrained_cost(changed(config, [f"model.width={width}"]), split) <= FIRST_EXIT * target:
            break
    return (f"model.width={chosen}",)


def dense_size(config: Config, split: Split, target: float) -> tuple[str, ...]:
    """Layers and width of the uniform network whose cost is nearest; of equal ones that with fewer layers."""
    best: tuple[float, tuple[str, ...]] = (math.inf, ())
    for layers in DENSE_LAYERS:
        named = changed(config, [f"model.name=uniform-{layers}"])
        for width in widths(named, WIDEST):
            cost = untrained_cost(changed(named, [f"model.width={width}"]), split)
            if abs(cost - target) < best[0]:
                best = (abs(cost - target), (f"model.name=uniform-{layers}", f"model.width={width}"))
            if cost < target:
                break  # narrower is only farther away
    return best[1]
