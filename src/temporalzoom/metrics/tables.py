"""Detection results as tables for the terminal, in percent as the field prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from rich.table import Table
from rich.text import Text

from temporalzoom.metrics.detection import DetectionResult
from temporalzoom.metrics.lengths import LENGTH_EDGES, evaluate_by_length
from temporalzoom.segments import Segments


def per_class_table(result: DetectionResult, title: str | None = "AP per class (%)") -> Table:
    """One row per class, one column per tIoU threshold and their mean; the last row is mAP."""
    table = _table(title, "class", result.thresholds)
    for name, values in zip(result.classes, result.ap.T, strict=True):
        table.add_row(Text(name), *_percents(values))  # a class may be called `[walk]`: no markup
    table.add_section()
    table.add_row("mAP", *_percents(result.mAP.values()), style="bold")
    return table


def per_length_table(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    thresholds: Sequence[float],
    edges: Sequence[float] = LENGTH_EDGES,
    protocol: str = "anet",
    ambiguous: Mapping[str, Segments] | None = None,
    title: str | None = "mAP by instance length (%)",
) -> Table:
    """One row per length bin (seconds), defined in `evaluate_by_length`; a dash where no instance has that length."""
    result = evaluate_by_length(truth, predictions, thresholds, edges, protocol, ambiguous)
    table = _table(title, "length", result.thresholds, "instances")
    for (low, high), count, values in zip(pairwise(result.edges), result.instances, result.mAP, strict=True):
        name = f"{low:g} s and more" if np.isinf(high) else f"{low:g} to {high:g} s"
        table.add_row(name, str(count), *_percents(values))
    return table


def _table(title: str | None, first: str, thresholds: Iterable[float], *numbers: str) -> Table:
    table = Table(title=None if title is None else Text(title), title_justify="left")
    table.add_column(first)
    for name in (*numbers, *(f"@{threshold:g}" for threshold in thresholds), "average"):
        table.add_column(name, justify="right")
    return table


def _percents(values: Iterable[float]) -> list[str]:
    """The values and, last, their mean."""
    values = list(values)
    return ["-" if np.isnan(value) else f"{100 * value:.2f}" for value in (*values, float(np.mean(values)))]
