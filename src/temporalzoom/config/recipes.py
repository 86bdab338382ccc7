"""Recipes: packaged configuration files that are known by name, and how a file builds on another (`base:`).

A file may have several parts, each begun by a line `---`. They are layers: a later part is laid over the earlier ones.
Recipes of data sets have two, what the rules of `tzoom fit` choose on these data, and what the recipe changes of it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from temporalzoom.config.complaints import shown
from temporalzoom.config.yaml_text import parse_yaml_parts
from temporalzoom.errors import InputError

BASE = "base"


@dataclass(frozen=True)
class Layer:
    """The settings of one file. folder: what its relative paths start at."""

    source: str
    tree: dict[str, Any]
    folder: Path


def recipe_names() -> list[str]:
    return sorted(file.name.removesuffix(".yaml") for file in _folder().iterdir() if file.name.endswith(".yaml"))


def recipe_text(name: str) -> str:
    return (_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def recipe_summary(name: str) -> str:
    """The first line of a recipe's comment."""
    return recipe_text(name).splitlines()[0].removeprefix("#").strip()


def read_layers(path: str | Path) -> list[Layer]:
    """A configuration file, or the recipe of this name, after all that it builds on."""
    layers: list[Layer] = []
    seen: list[str] = []
    current: str | Path | None = path
    beside = Path()
    while current is not None:
        parts = _read(str(current), beside)
        source, beside = parts[0].source, parts[0].folder
        if source in seen:
            raise InputError(f"{seen[0]}: base: goes round in a circle: {' -> '.join([*seen, source])}")
        seen.append(source)
        current = parts[0].tree.pop(BASE, None)
        if current is not None and not isinstance(current, str):
            raise InputError(f"{source}: base: must be a recipe's name or a file, got {shown(current)}")
        layers = [*parts, *layers]
    return layers


def _read(name: str, beside: Path) -> list[Layer]:
    """name: of a recipe, or a path, relative to `beside`."""
    if name in recipe_names():
        # Where its data lie depends on who uses it: relative paths of a recipe start at the working folder.
        return [Layer(name, tree, Path()) for tree in parse_parts(recipe_text(name), name)]
    path = beside / name
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not valid YAML ({error})") from None
    except OSError as error:
        if path.suffix:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        close = difflib.get_close_matches(name, recipe_names(), n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else f"recipes are {', '.join(recipe_names())}"
        raise InputError(f"{name}: cannot be read ({error.strerror}), nor is it a recipe; {hint}") from None
    return [Layer(str(path), tree, path.parent) for tree in parse_parts(text, str(path))]


def parse_parts(text: str, source: str) -> list[dict[str, Any]]:
    """The settings of each part of a file, at least one."""
    try:
        trees = parse_yaml_parts(text) or [None]
    except ValueError as error:
        raise InputError(f"{source}: not valid YAML ({error})") from None
    for tree in trees:
        if tree is not None and not isinstance(tree, dict):
            raise InputError(f"{source}: must hold sections such as 'training:', got {shown(tree)}")
    return [tree or {} for tree in trees]


def _folder() -> Any:
    return resources.files("temporalzoom") / "recipes"
