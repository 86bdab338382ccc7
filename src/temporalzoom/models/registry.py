"""Models by name: `family` or `family-N`, where N is the depth. Builder functions register themselves."""

from __future__ import annotations

import re
from collections.abc import Callable

from torch import nn

from temporalzoom.errors import InputError

Builder = Callable[..., nn.Module]
_builders: dict[str, Builder] = {}


def register(family: str) -> Callable[[Builder], Builder]:
    """Decorator: `builder(depth, input_width, classes, **options) -> nn.Module` becomes available as `family[-N]`."""

    def add(builder: Builder) -> Builder:
        _builders[family] = builder
        return builder

    return add


def model_families() -> tuple[str, ...]:
    return tuple(sorted(_builders))


def build_model(name: str, input_width: int, classes: int, **options: object) -> nn.Module:
    """The model called `name` for features of `input_width` channels and `classes` classes."""
    match = re.fullmatch(r"([a-z][a-z0-9_]*?)(?:-(0|[1-9]\d*))?", name)
    family, depth = (match[1], match[2]) if match else (name, None)
    if family not in _builders:
        valid = ", ".join(model_families())
        raise InputError(f"model.name: unknown model {name!r}; valid: {valid}; uniform-N has N layers")
    return _builders[family](None if depth is None else int(depth), input_width, classes, **options)


def no_depth(family: str, depth: int | None) -> None:
    """For the builders of models whose number of layers is not part of their name."""
    if depth is not None:
        raise ValueError(f"model.name: {family}-{depth}: {family} has no number of layers in its name")
