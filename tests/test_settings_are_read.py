"""What is set is used: during a training and an evaluation every setting that is not refused is looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from temporalzoom.config import config_fields, load_config, unread_keys
from temporalzoom.config.base import Section, sections_of
from temporalzoom.datasets.sources import load_data
from temporalzoom.inference.localizer import Localizer
from temporalzoom.training import train

SMALL = (
    "data.source=zoombench data.sequences=2 data.test_sequences=1 data.length=64 "
    "training.steps=2 training.batch_size=2 training.length=48 training.log_every=1"
).split()
TINY_WIDTH = "model.width=16"
SYSTEMS = {
    "tzn": ["model.heads=2"],
    "tzn with all of the paper's variants": [
        "model.heads=2", "model.levels=1", "model.head=mlp", "model.shallow_layers=1", "model.zoom=0",
        "model.pruning=true", "model.paper.supervision=penalty", "model.paper.tau_min=0.5",
        "model.paper.hysteresis=hold", "training.assignment=both", "inference.refine=snap",
    ],
    "uniform-1": ["model.name=uniform-1", "model.heads=2", "bdr.scales=sqrt"],
    "hard suppression": ["model.name=uniform-1", "model.heads=2", "inference.suppression=hard"],
    "actionformer": ["model.name=actionformer", "model.heads=2"],
    "tridet": ["model.name=tridet", "model.bins=4"],
    "temporalmaxer": ["model.name=temporalmaxer"],
    "actionformer with depth": ["model.name=actionformer", "model.heads=2", "model.deep_layers=1"],
    "tridet with depth, no BDR": [
        "model.name=tridet", "model.bins=4", "model.heads=2", "model.deep_layers=1", "bdr.enabled=false",
    ],
    "temporalmaxer with depth": ["model.name=temporalmaxer", "model.heads=2", "model.deep_layers=1"],
    "bmn": ["model.name=bmn", "model.durations=8", "model.samples=4"],
    "no BDR": ["model.heads=2", "bdr.enabled=false"],
    "no depth": ["model.heads=2", "model.depth=false"],
    "depth at random": ["model.heads=2", "model.paper.allocation=random"],
    "no deep path": ["model.paper.allocation=none"],
    "discrete depths": ["model.heads=2", "model.paper.allocation=discrete", "model.paper.depths=[0,2]"],
    "exits": ["model.heads=2", "model.paper.allocation=exit", "model.paper.depths=[1,2]"],
    "mixture": ["model.heads=2", "model.paper.allocation=mixture"],
}  # fmt: skip
# Read by whoever calls training and evaluation, or only where there is something to do.
ELSEWHERE = {
    "evaluation.thresholds",  # of `tzoom eval`
    "inference.threshold",  # of `tzoom localize`
    "training.checkpoint_every",
}


@contextmanager
def reads() -> Iterator[set[tuple[type, str]]]:
    """Which settings of which sections are looked at inside of the block."""
    seen: set[tuple[type, str]] = set()
    original = Section.__getattribute__

    def spy(self: Section, name: str) -> Any:
        if not name.startswith("_") and name in type(self).model_fields:
            seen.add((type(self), name))
        return original(self, name)

    dump = Section.model_dump

    def dumped(self: Section, **options: Any) -> dict[str, Any]:
        # A section that is handed on as keyword arguments is read, key by key.
        if options.get("mode") != "json":
            seen.update(
                (type(self), name) for name in type(self).model_fields if name not in options.get("exclude", ())
            )
        return dump(self, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Section, "__getattribute__", spy)
        patch.setattr(Section, "model_dump", dumped)
        yield seen


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_setting_is_read_or_refused(name: str, tmp_path: Path):
    config = load_config(None, [*SMALL, TINY_WIDTH, *SYSTEMS[name]])
    refused = unread_keys(config)
    with reads() as seen:
        data = load_data(config.data, config.seed)
        assert data.train is not None and data.test is not None
        train(config, data.train, tmp_path)
        Localizer.load(tmp_path)(data.test.samples[0].features)
    section_of: dict[str, type] = {"": type(config)}
    unnoticed = []
    for key, field in config_fields(config.model_dump()).items():
        parent, _, word = key.rpartition(".")
        node: Any = config
        for part in key.split("."):
            node = getattr(node, part)
        if sections_of(field):
            section_of[key] = type(node)
        elif key not in refused and key not in ELSEWHERE and (section_of[parent], word) not in seen:
            unnoticed.append(key)
    assert unnoticed == [], name
