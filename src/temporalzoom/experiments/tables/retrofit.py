"""BDR on every detector: the field's and the baseline, each without and with it, and how much code that takes; the
field's pyramids with adaptive depth too."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from temporalzoom.experiments.measures import Bench, compared
from temporalzoom.experiments.reading import compared_systems
from temporalzoom.experiments.rendering import Grid
from temporalzoom.experiments.systems import BASELINE, DETECTORS, PYRAMIDS, chosen

SUMMARY = "the field's detectors and uniform-6, each without and with BDR; pyramids also with BDR and zoom"
COMPARISONS = (
    *((f"{name}+bdr", name) for name in DETECTORS),
    *((f"{name}+bdr+zoom", f"{name}+bdr") for name in PYRAMIDS),
)
EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "retrofit"


def trainings(data_set: str) -> dict[str, tuple[str, ...]]:
    with_zoom = {name: (f"{name}+bdr+zoom",) for name in PYRAMIDS}
    return chosen(*(system for name in DETECTORS for system in (name, f"{name}+bdr", *with_zoom.get(name, ()))))


def measure(bench: Bench) -> dict[str, Any]:
    return {**compared(bench, COMPARISONS, BASELINE), "added_lines": added_lines()}


def read(results: Mapping[str, Any]) -> list[Grid]:
    count = results.get("added_lines")
    notes = [] if count is None else [f"BDR adds {count} lines to a plain detector: examples/retrofit."]
    return compared_systems(results, *notes)


def added_lines(folder: Path = EXAMPLE) -> int | None:
    """Lines of the example with BDR that the one without does not have, changed ones included; None: not installed."""
    files = [folder / "detector.py", folder / "detector_with_bdr.py"]
    if not all(file.is_file() for file in files):
        return None  # examples are part of the repository, not of the package
    before, after = (file.read_text(encoding="utf-8").splitlines() for file in files)
    return sum(line.startswith("+ ") and bool(line[2:].strip()) for line in difflib.ndiff(before, after))
