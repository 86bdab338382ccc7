"""Numbers that JSON has no word for: the mean of nothing is NaN here, and `null` in a file, for every reader."""

from __future__ import annotations

import math
from typing import Any


def nan_to_null(tree: Any) -> Any:
    """A tree of dictionaries, lists and values, with None in place of NaN and infinities; tuples become lists.

    Python's own writer would put `NaN` there, which is no JSON: most other programs refuse the whole file.
    """
    if isinstance(tree, dict):
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
