"""Settings that may differ from class to class: one number for all, or `{default: 0.2, serve: 0.5}`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from temporalzoom.errors import InputError

DEFAULT = "default"  # the key of the classes that a mapping does not name
PerClass = float | Mapping[str, float]


def _checked(default: float, most: float) -> BeforeValidator:
    """A number from 0 to `most`, or a mapping to such numbers, which then always has the key `default`."""
    limits = "from 0 on" if most == math.inf else f"from 0 to {most:g}"

    def number(value: Any, what: str = "", also: str = "") -> float:
        try:
            found = math.nan if isinstance(value, bool) else float(value)  # YAML takes 1e-3 for text
        except (TypeError, ValueError):
            found = math.nan
        if not (math.isfinite(found) and 0 <= found <= most):
            raise ValueError(f"{what}must be a number {limits}{also}, got {value!r}")
        return found

    def check(value: Any) -> float | dict[str, float]:
        if not isinstance(value, Mapping):
            return number(value, also=f", or {{{DEFAULT}: NUMBER, CLASS: NUMBER}}")
        for name in value:
            if not isinstance(name, str):  # YAML takes `1:`, `on:`, `no:` for a number and truth values
                raise ValueError(f"names of classes must be text, got {name!r}; write it in quotes")
        return {DEFAULT: default} | {name: number(given, f"{name!r} ") for name, given in value.items()}

    return BeforeValidator(check)


SHOWN = 0.2  # lowest score that a user sees by default
ScorePerClass = Annotated[float | dict[str, float], _checked(SHOWN, 1.0)]
SecondsPerClass = Annotated[float | dict[str, float], _checked(0.0, math.inf)]


def layered(below: PerClass, given: PerClass | None) -> PerClass:
    """`given` over `below`: a number replaces everything, a mapping the classes that it names, None nothing."""
    if given is None:
        return below
    if not isinstance(given, Mapping):
        return given
    return {**(below if isinstance(below, Mapping) else {DEFAULT: below}), **given}


def of_class(setting: PerClass, label: str) -> float:
    """The number of one class."""
    return setting.get(label, setting.get(DEFAULT, 0.0)) if isinstance(setting, Mapping) else setting


def check_class_names(settings: Mapping[str, PerClass | bool], classes: Sequence[str]) -> None:
    """Refuse a mapping that names a class which does not exist, with the nearest that does. settings: by their keys."""
    for key, setting in settings.items():
        for name in setting if isinstance(setting, Mapping) else ():
            if name != DEFAULT and name not in classes:
                near = difflib.get_close_matches(name, classes, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the classes are {', '.join(map(repr, classes[:20]))}"
                raise InputError(f"{key}: no class {name!r}; {hint}")
