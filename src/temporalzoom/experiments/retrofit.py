"""How much code BDR adds to each detector: counted in the source, so that a table cannot promise less than there is."""

from __future__ import annotations

import ast
import inspect
import textwrap

from temporalzoom.models.bmn import BMN
from temporalzoom.models.heads import Heads, LevelledHeads, LevelOptions
from temporalzoom.models.retrofit import WithDistances

# Detectors of one pyramid share one wrapper; the others have the head among their own.
_WRAPPED = ("actionformer", "tridet", "temporalmaxer")
_INSIDE: dict[str, tuple[type, ...]] = {"uniform-6": (LevelOptions, LevelledHeads, Heads), "bmn": (BMN,)}


def added_lines(detector: str) -> int:
    """Lines of code that give a detector its distances, blank lines and docstrings not counted.

    Targets, loss and refinement are calls of the spine, the same for every model: see docs/add-bdr.md for all of them
    in a detector that has no spine.
    """
    if detector in _WRAPPED:
        return len(code_lines(WithDistances))
    return sum("distance" in line for part in _INSIDE[detector] for line in code_lines(part))


def code_lines(of: type) -> list[str]:
    """The lines of a class without blank ones, comments and docstrings."""
    source = textwrap.dedent(inspect.getsource(of))
    hidden: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            said = node.body[0]
            hidden.update(range(said.lineno, (said.end_lineno or said.lineno) + 1))
    shown = [line for number, line in enumerate(source.splitlines(), 1) if number not in hidden]
    return [line for line in shown if line.strip() and not line.strip().startswith("#")]
