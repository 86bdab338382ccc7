"""YAML in, `key=value` overrides, the whole tree out.

A configuration is built in layers: the recipes that a file builds on, the file, the overrides. Within a layer a setting
that the chosen model or data does not read is an error; one of an earlier layer that a later one leaves without effect,
such as the settings of an architecture that is exchanged, is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from temporalzoom.config.complaints import explain, is_section, keys_below, unknown
from temporalzoom.config.networks import carried_over
from temporalzoom.config.per_class import layered
from temporalzoom.config.recipes import Layer, read_layers
from temporalzoom.config.sections import Config, InferenceConfig, config_fields
from temporalzoom.config.unread import given_keys, unread_keys
from temporalzoom.config.yaml_text import parse_yaml
from temporalzoom.errors import InputError

PATHS = (
    "data.root", "data.annotations", "data.features", "data.videos", "data.soft_labels", "inference.video_scores"
)  # fmt: skip
Tree = dict[str, Any]


def load_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """A configuration file or a recipe's name (None: all defaults), then `section.key=value` overrides in order.

    Relative data paths start at the file's folder, those of overrides at the working folder; both become absolute, so
    that the configuration stored with a run means the same files wherever it is read.

    >>> load_config("sbhar", ["data.root=data/sbhar", "training.steps=500"]).training.steps
    500
    """
    layers = [] if path is None else read_layers(path)
    tree: Tree = {}
    config = Config()
    for layer in layers:
        tree, config = add_layer(tree, layer)
    overrides = list(overrides)
    if overrides:
        tree, config = add_layer(tree, Layer("override", _override_tree(overrides, tree), Path()))
    return config


def add_layer(tree: Tree, layer: Layer) -> tuple[Tree, Config]:
    """The settings so far with those of one more layer, and what they make."""
    own = _anchored(layer.tree, layer.folder)
    merged = _merged(tree, own)
    config = _validated(merged, layer.source)
    unread = unread_keys(config)
    for key in given_keys(own):
        if key in unread:
            raise InputError(f"{layer.source}: {key}: has no effect here: {unread[key]}")
    kept = _without(merged, unread)
    return kept, _validated(kept, layer.source)  # what is dropped is as if never set: dumped and loaded it is the same


def changed(config: Config, overrides: Iterable[str]) -> Config:
    """A loaded configuration with `section.key=value` overrides."""
    tree = dump_tree(config)
    return add_layer(tree, Layer("override", _override_tree(list(overrides), tree), Path()))[1]


def change_inference(
    options: InferenceConfig, overrides: Iterable[str], config: Config | None = None
) -> InferenceConfig:
    """The settings of inference with `inference.key=value` overrides; those of a trained model that may be changed.

    config: of the model, where it is known; a setting that has no effect with it is refused.
    """
    overrides = list(overrides)
    for override in overrides:
        if not override.startswith("inference."):
            _override_tree([override], {})  # an unknown key is the first thing to know
            raise InputError(f"override {override!r}: of a trained model only settings of inference can be changed")
    if not overrides:
        return options
    if config is not None:
        return changed(config.model_copy(update={"inference": options}), overrides).inference
    own = _anchored(_override_tree(overrides, {}), Path())
    return _validated(_merged({"inference": options.model_dump(mode="json")}, own), "override").inference


def parse_config(tree: Mapping[str, Any], source: str = "configuration") -> Config:
    """A nested mapping -> Config, with one readable line for the first thing that is wrong."""
    return add_layer({}, Layer(source, dict(tree), Path()))[1]


def dump_tree(config: Config) -> Tree:
    """All settings that have an effect, as nested mappings; `parse_config` reads them back."""
    return _without(config.model_dump(mode="json"), unread_keys(config))


def dump_config(config: Config) -> str:
    """All settings that have an effect, as YAML; `load_config` reads them back."""
    return yaml.safe_dump(dump_tree(config), sort_keys=False)


def _validated(tree: Tree, source: str) -> Config:
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{source}: {explain(error.errors(include_url=False)[0], tree)}") from None


def _merged(tree: Tree, own: Tree) -> Tree:
    """`own` over `tree`, section by section; another architecture, or source, starts from what holds for it too."""
    result = dict(tree)
    for key, value in own.items():
        before = result.get(key)
        if isinstance(value, dict) and isinstance(before, int | float):
            before = layered(before, {})  # a number for all classes, now one for each of some
        if not isinstance(value, dict) or not isinstance(before, dict):
            result[key] = before if value is None and isinstance(before, dict) else value
            continue
        if key == "model" and isinstance(value.get("name"), str):
            before = carried_over(before, value["name"])
        if key == "data" and value.get("source", before.get("source")) != before.get("source"):
            before = {}
        result[key] = _merged(before, value)
    return result


def _without(tree: Tree, unread: Mapping[str, str], prefix: str = "") -> Tree:
    kept: Tree = {}
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and is_section(key):
            inner = _without(value, unread, f"{key}.")
            if inner or not value:
                kept[name] = inner
        elif key not in unread:
            kept[name] = value
    return kept


def _anchored(tree: Tree, folder: Path) -> Tree:
    result = {name: dict(value) if isinstance(value, dict) else value for name, value in tree.items()}
    for name, key in (path.split(".") for path in PATHS):
        section = result.get(name)
        if isinstance(section, dict) and isinstance(section.get(key), str):
            section[key] = os.path.abspath(folder / section[key])
    return result


def _override_tree(overrides: Iterable[str], below: Tree) -> Tree:
    """The overrides as one tree. below: what they change, which chooses the keys that there are."""
    parts = [override.partition("=") for override in overrides]
    tree: Tree = {}
    for override, (key, separator, text) in zip(overrides, parts, strict=True):
        if not separator or not key:
            raise InputError(f"override {override!r}: must have the form key=value, such as training.steps=500")
        if key in ("model.name", "data.source"):
            _place(tree, key, parse_value(text))
    chosen = _merged(below, tree)
    for override, (key, _, text) in zip(overrides, parts, strict=True):
        known = config_fields(chosen)
        if key not in known:
            raise InputError(f"override {override!r}: {unknown(key, chosen)}")
        if is_section(key):
            raise InputError(
                f"override {override!r}: {key!r} is a section; set one of its keys: {keys_below(key, known)}"
            )
        _place(tree, key, parse_value(text))
    return tree


def parse_value(text: str) -> Any:
    """The value of an override, read as YAML."""
    try:
        return parse_yaml(text)
    except ValueError:
        return text


def _place(tree: Tree, key: str, value: Any) -> None:
    *sections, last = key.split(".")
    node = tree
    for section in sections:
        node = node.setdefault(section, {})
    node[last] = value
