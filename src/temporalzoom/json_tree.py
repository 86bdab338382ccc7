"""JSON of any origin, and numbers that JSON has no word for: the mean of nothing is NaN here, and `null` in a file."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

DEEPEST = 100  # levels of lists and objects; what goes through a tree calls itself once for each
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_LONGEST = 300  # digits; more than 308 fit into no float
_LONG_NUMBER = re.compile(rf"\d{{{_LONGEST + 1}}}")


def parse_json(text: str | bytes, unique: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """What a JSON text says; one that is none raises ValueError, and so does what nobody can work with: nested deeper
    than DEEPEST, and halves of surrogate pairs, which no file can be written with.

    unique: makes an object of its pairs, default `dict`. `NaN` and `Infinity` pass: who expects a number judges them.
    """
    text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    tree = _parsed(text, unique, _short_integer if _LONG_NUMBER.search(text) else None)
    level = [tree] if isinstance(tree, dict | list) else []
    for _ in range(DEEPEST):
        inner = (value for node in level for value in (node.values() if isinstance(node, dict) else node))
        level = [value for value in inner if isinstance(value, dict | list)]
        if not level:
            break
    else:
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    if _HALF_PAIR.search(text):
        try:
            json.dumps(tree, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            half = error.object[error.start].encode("unicode_escape", "surrogatepass").decode("ascii")
            raise ValueError(f"{half} is half of a character, which no text can hold") from None
    return tree


def _parsed(text: str, unique: Callable[..., Any] | None, parse_int: Callable[[str], int | float] | None) -> Any:
    try:
        return json.loads(text, object_pairs_hook=unique, parse_int=parse_int)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from None


def _short_integer(digits: str) -> int | float:
    """One that no float holds is infinite, as 1e999 is: who expects a number refuses it, and names the place."""
    return int(digits) if len(digits) <= _LONGEST else math.copysign(math.inf, -1 if digits.startswith("-") else 1)


def nan_to_null(tree: Any) -> Any:
    """A tree of dictionaries, lists and values, with None in place of NaN and infinities; tuples become lists.

    Python's own writer would put `NaN` there, which is no JSON: most other programs refuse the whole file.
    """
    if isinstance(tree, Mapping):
        return {key: nan_to_null(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [nan_to_null(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


def null_to_nan(tree: Any) -> Any:
    """The way back, for a tree in which None has no other meaning."""
    if isinstance(tree, dict):
        return {key: null_to_nan(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [null_to_nan(value) for value in tree]
    return math.nan if tree is None else tree
