"""YAML in, `key=value` overrides, the whole tree out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from temporalzoom.config.complaints import explain, keys_below, nearest, shown
from temporalzoom.config.sections import Config, InferenceConfig, config_fields, inner_section
from temporalzoom.errors import InputError


def load_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """A YAML file (None: all defaults), then `section.key=value` overrides in order.

    Relative data paths start at the file's folder, those of overrides at the working folder; both become absolute, so
    that the configuration stored with a run means the same files wherever it is read.
    """
    tree: dict[str, Any] = {}
    if path is not None:
        tree = _read_yaml(Path(path))
        _anchor_paths(tree, Path(path).parent)
    config = parse_config(tree, source=str(path))  # on its own first: an error says whether file or override is wrong
    overrides = list(overrides)
    for override in overrides:
        _apply_override(tree, override)
    _anchor_paths(tree, Path())
    return parse_config(tree, source="override") if overrides else config


def change_inference(options: InferenceConfig, overrides: Iterable[str]) -> InferenceConfig:
    """The settings of inference with `inference.key=value` overrides; those of a trained model that may be changed."""
    tree: dict[str, Any] = {"inference": options.model_dump(mode="json")}
    for override in overrides:
        _apply_override(tree, override)
        if not override.startswith("inference."):
            raise InputError(f"override {override!r}: of a trained model only settings of inference can be changed")
    _anchor_paths(tree, Path())
    return parse_config(tree, source="override").inference


def parse_config(tree: Mapping[str, Any], source: str = "configuration") -> Config:
    """A nested mapping -> Config, with one readable line for the first thing that is wrong."""
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{source}: {explain(error.errors(include_url=False)[0])}") from None


def dump_config(config: Config) -> str:
    """The whole tree as YAML; `load_config` reads it back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{path}{where}: not valid YAML ({error.problem or error.context})") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: bytes that are no UTF-8, dates that do not exist
        raise InputError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError(f"{path}: must hold sections such as 'training:', got {shown(tree)}")
    return tree


def _anchor_paths(tree: dict[str, Any], folder: Path) -> None:
    paths = [("data", key) for key in ("root", "annotations", "features", "videos")] + [("inference", "video_scores")]
    for name, key in paths:
        section = tree.get(name)
        if isinstance(section, dict) and isinstance(section.get(key), str):
            section[key] = os.path.abspath(folder / section[key])


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise InputError(f"override {override!r}: must have the form key=value, such as training.steps=500")
    field = config_fields().get(key)
    if field is None:
        raise InputError(f"override {override!r}: unknown key {key!r}{nearest(key)}")
    if inner_section(field) is not None:
        raise InputError(f"override {override!r}: {key!r} is a section; set one of its keys: {keys_below(key)}")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        value = text
    *sections, last = key.split(".")
    node = tree
    for section in sections:
        if node.get(section) is None:
            node[section] = {}
        node = node[section]
    node[last] = value
