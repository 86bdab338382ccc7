"""What is wrong with a configuration, in one line that names the key and its nearest valid one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, get_args

from pydantic_core import ErrorDetails

from temporalzoom.config import data, networks
from temporalzoom.config.base import sections_of
from temporalzoom.config.moved import moved
from temporalzoom.config.sections import config_fields

# How pydantic's errors are put to a user, by the first word of their type, or by the whole type for limits.
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "tuple": "a list",
    "model": "a section with keys",
}
_LIMITS = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:g}",
}
_TAGS = {*networks.SECTIONS, "folder", "videos", "inertial", "zoombench", "context"}
Tree = dict[str, Any]


def explain(error: ErrorDetails, tree: Tree) -> str:
    """One line: the key, what its value must be, and the value. tree: the settings that were checked."""
    location = [str(part) for part in error["loc"]]
    if len(location) > 1 and location[0] in ("model", "data") and location[1] in _TAGS:
        del location[1]  # which of the sections pydantic chose
    key, kind, value, context = ".".join(location), error["type"], error["input"], error.get("ctx", {})
    if kind.startswith("union_tag"):
        return choice(key, value)
    if kind == "extra_forbidden":
        return unknown(key, tree, f" (value {shown(value)})")
    if kind == "invalid_key":  # YAML takes `1:`, `on:`, `no:` for a number and truth values
        where = f" in {key.rpartition('.')[0]!r}" if "." in key else ""
        return f"unknown key {shown(value)}{where}: keys must be text"
    if kind == "value_error":  # our own validators, whose messages name the value
        return f"{key}: {context['error']}"
    field = config_fields(tree).get(key)
    hint = ""
    if kind == "literal_error" and field is not None:
        choices = [str(choice) for choice in get_args(field.annotation)]
        close = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.5)
        expected, hint = f"one of {', '.join(choices)}", f"; did you mean {close[0]!r}?" if close else ""
    elif kind in _LIMITS:
        expected = _LIMITS[kind].format(**context)
    elif kind == "string_pattern_mismatch" and key == "model.name":
        return choice("model", {"name": value})
    else:
        expected = _KINDS.get(kind.split("_")[0]) or error["msg"].removeprefix("Input should be ")
    if field is not None and type(None) in get_args(field.annotation):
        expected += " or null"
    return f"{key or 'the whole'}: must be {expected}, got {shown(value)}{hint}"


def choice(section: str, value: Any) -> str:
    """An architecture or a source that does not exist, or a section that is none."""
    if not isinstance(value, dict):
        return f"{section}: must be a section with keys, got {shown(value)}"
    key, names = ("name", model_names()) if section == "model" else ("source", list(data.SECTIONS))
    given = value.get(key)
    if section == "model" and isinstance(given, str) and given.startswith("tzn-"):
        return f"model.name: {given!r}: the number of deep layers is model.deep_layers now; write tzn"
    close = difflib.get_close_matches(str(given), names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{section}.{key}: must be one of {', '.join(names)}, got {shown(given)}{hint}"


def model_names() -> list[str]:
    return ["uniform-N" if name == "uniform" else name for name in networks.SECTIONS]


def unknown(key: str, tree: Tree, value: str = "") -> str:
    """An unknown key; the nearest one that the chosen model and data have, or which choice has it."""
    gone = moved(key)
    if gone is not None:
        return gone
    known, everywhere = config_fields(tree), config_fields()
    section, _, last = key.partition(".")
    if key in everywhere and section in ("model", "data") and last:
        chosen = tree.get(section) if isinstance(tree.get(section), dict) else {}
        owners = _owners(section, last)
        if section == "model":
            return f"{key}: {(chosen or {}).get('name', networks.DEFAULT)} has no such setting; it is of {owners}"
        return f"{key}: the source {(chosen or {}).get('source', data.DEFAULT)} does not read it; it is of {owners}"
    return f"unknown key {key!r}{value}{nearest(key, known)}"


def _owners(section: str, key: str) -> str:
    first = key.partition(".")[0]
    names = networks.SECTIONS if section == "model" else data.SECTIONS
    return ", ".join("uniform-N" if name == "uniform" else name for name, s in names.items() if first in s.model_fields)


def nearest(key: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` if a valid key is near, else the valid keys of the section."""
    known = sorted(known, key=lambda k: k.count("."))
    parent, _, last = key.rpartition(".")
    siblings = {_word(k): k for k in known if k.rpartition(".")[0] == parent}
    anywhere = {k: k for k in known} if not siblings else {}  # in a known section only the last word is wrong
    words = {_word(k): k for k in reversed(known)}  # of equal words the one nearest to the root
    for wanted, candidates in ((last, siblings), (key, anywhere), (last, words)):
        close = difflib.get_close_matches(wanted, candidates, n=1, cutoff=0.7)
        if close:
            return f"; did you mean {candidates[close[0]]!r}?"
    section = parent if siblings else ""
    return f"; valid {f'in {section!r}' if section else 'at the top'} are: {keys_below(section, known)}"


def keys_below(section: str, known: Iterable[str]) -> str:
    return ", ".join(_word(key) for key in known if key.rpartition(".")[0] == section)


def is_section(key: str) -> bool:
    field = config_fields().get(key)
    return field is not None and bool(sections_of(field))


def _word(key: str) -> str:
    return key.rpartition(".")[2]


def shown(value: Any) -> str:
    """A value as its user wrote it, shortened."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
