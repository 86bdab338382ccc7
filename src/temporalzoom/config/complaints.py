"""What is wrong with a configuration, said in one line that names the key and its nearest valid one."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic_core import ErrorDetails

from temporalzoom.config.sections import config_fields

# How pydantic's errors are said to a user, by the first word of their type, or by the whole type for limits.
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


def explain(error: ErrorDetails) -> str:
    """One line: the key, what its value must be, and the value."""
    key, kind, value, context = ".".join(map(str, error["loc"])), error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key {key!r} (value {shown(value)}){nearest(key)}"
    if kind == "invalid_key":  # YAML takes `1:`, `on:`, `no:` for a number and truth values
        where = f" in {key.rpartition('.')[0]!r}" if "." in key else ""
        return f"unknown key {shown(value)}{where}: keys must be text"
    if kind == "value_error":  # our own validators, whose messages name the value
        return f"{key}: {context['error']}"
    field = config_fields().get(key)
    hint = ""
    if kind == "literal_error" and field is not None:
        choices = [str(choice) for choice in get_args(field.annotation)]
        close = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.5)
        expected, hint = f"one of {', '.join(choices)}", f"; did you mean {close[0]!r}?" if close else ""
    elif kind in _LIMITS:
        expected = _LIMITS[kind].format(**context)
    else:
        expected = _KINDS.get(kind.split("_")[0]) or error["msg"].removeprefix("Input should be ")
    if field is not None and type(None) in get_args(field.annotation):
        expected += " or null"
    return f"{key or 'the whole'}: must be {expected}, got {shown(value)}{hint}"


def nearest(key: str) -> str:
    """`; did you mean ...?` if a valid key is near, else the valid keys of the section."""
    known = sorted(config_fields(), key=lambda k: k.count("."))
    parent, _, last = key.rpartition(".")
    siblings = {_word(k): k for k in known if k.rpartition(".")[0] == parent}
    anywhere = {k: k for k in known} if not siblings else {}  # in a known section only the last word is wrong
    words = {_word(k): k for k in reversed(known)}  # of equal words the one nearest to the root
    for wanted, candidates in ((last, siblings), (key, anywhere), (last, words)):
        close = difflib.get_close_matches(wanted, candidates, n=1, cutoff=0.7)
        if close:
            return f"; did you mean {candidates[close[0]]!r}?"
    section = parent if siblings else ""
    return f"; valid {f'in {section!r}' if section else 'at the top'} are: {keys_below(section)}"


def keys_below(section: str) -> str:
    return ", ".join(_word(key) for key in config_fields() if key.rpartition(".")[0] == section)


def _word(key: str) -> str:
    return key.rpartition(".")[2]


def shown(value: Any) -> str:
    """A value as its user wrote it, shortened."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
