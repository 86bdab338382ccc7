"""The file that defines a sweep: data sets x systems x seeds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalzoom.config import load_config, parse_yaml, recipe_names
from temporalzoom.errors import InputError
from temporalzoom.workflows.sweep import THRESHOLDS, Member

KEYS = ("base", "systems", "seeds", "thresholds")
NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9_+.-]*")  # part of a path, and easy to type


@dataclass(frozen=True)
class SweepDefinition:
    """Members are named `<data set>/<system>/seed-<seed>`."""

    members: tuple[Member, ...]
    thresholds: tuple[float, ...]


def read_sweep(path: str | Path) -> SweepDefinition:
    """Every configuration is loaded and checked here; an error names the file, the key and the value."""
    path = Path(path)
    tree = _read(path)
    unknown = [key for key in tree if key not in KEYS]
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}; valid are {', '.join(KEYS)}")
    base, systems = (_named(path, tree, key) for key in ("base", "systems"))
    seeds = _numbers(path, tree, "seeds", "whole numbers from 0, each once", lambda n: isinstance(n, int) and n >= 0)
    thresholds: tuple[float, ...] = THRESHOLDS
    if "thresholds" in tree:
        expected = "numbers above 0 and up to 1, each once"
        thresholds = tuple(map(float, _numbers(path, tree, "thresholds", expected, lambda t: 0 < t <= 1)))
    for name, overrides in systems.items():
        systems[name] = _overrides(path, f"systems.{name}", overrides)
    members = []
    for data, file in base.items():
        if not isinstance(file, str):
            raise InputError(f"{path}: base.{data}: must be a configuration file, got {file!r}")
        for system, overrides in systems.items():
            for seed in seeds:
                try:
                    source = file if file in recipe_names() else path.parent / file
                    config = load_config(source, [*overrides, f"seed={seed}"])
                except InputError as error:
                    raise InputError(f"{path}: base.{data} with systems.{system}: {error}") from None
                members.append(Member(f"{data}/{system}/seed-{seed}", config))
    return SweepDefinition(tuple(members), thresholds)


def _read(path: Path) -> dict[Any, Any]:
    try:
        tree = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid YAML ({error})") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: must hold the keys {', '.join(KEYS[:3])}, got {tree!r}")
    return tree


def _named(path: Path, tree: dict[Any, Any], key: str) -> dict[str, Any]:
    entries = tree.get(key)
    if not isinstance(entries, dict) or not entries:
        raise InputError(f"{path}: {key}: must hold one 'name: ...' at least, got {entries!r}")
    for name in entries:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InputError(f"{path}: {key}: the name {name!r} must consist of letters, digits and _ + - .")
    return dict(entries)


def _numbers(path: Path, tree: dict[Any, Any], key: str, expected: str, valid: Any) -> list[Any]:
    values = tree.get(key)
    listed = values if isinstance(values, list) else []
    sound = all(isinstance(v, int | float) and not isinstance(v, bool) and valid(v) for v in listed)
    if not listed or not sound or len(set(listed)) < len(listed):
        raise InputError(f"{path}: {key}: must be a list of {expected}, got {values!r}")
    return listed


def _overrides(path: Path, key: str, overrides: Any) -> list[str]:
    """The settings of a system; none at all is the base itself."""
    listed = [] if overrides is None else overrides
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise InputError(f"{path}: {key}: must be a list of overrides such as model.name=tzn, got {overrides!r}")
    for text in listed:
        if text.partition("=")[0] == "seed":
            raise InputError(f"{path}: {key}: {text!r} cannot be set here; 'seeds' does it")
    return listed
