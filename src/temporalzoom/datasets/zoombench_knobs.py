"""Knobs of the generators, as they are typed: `sequences=20 noise=1.5`; and what no knob may be."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from temporalzoom.errors import InputError


def refuse_impossible(bench: Any, generator: str, may_be_zero: Collection[str]) -> None:
    """Every knob of a generator, a dataclass of numbers, is finite and above 0, or 0 where that means something."""
    for knob in fields(bench):
        value = getattr(bench, knob.name)
        if not (np.isfinite(value) and (value > 0 or (value == 0 and knob.name in may_be_zero))):
            limit = "not be negative" if knob.name in may_be_zero else "be above 0"
            raise InputError(f"{generator}: {knob.name} must {limit}, got {value:g}")


def parse_knobs(bench: type, knobs: Sequence[str]) -> dict[str, Any]:
    """From `key=value`, as they are typed, to arguments of a generator's class."""
    kinds = {knob.name: int if isinstance(knob.default, int) else float for knob in fields(bench)}
    values: dict[str, Any] = {}
    for knob in knobs:
        name, equals, text = knob.partition("=")
        if not equals or name not in kinds:
            raise InputError(f"{knob!r}: expected key=value with one of {', '.join(kinds)}")
        try:
            values[name] = kinds[name](text)
        except ValueError:
            kind = "a whole number" if kinds[name] is int else "a number"
            raise InputError(f"{knob!r}: {name} must be {kind}") from None
    return values
