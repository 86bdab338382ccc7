"""Plots of a detector's result: the kinds of errors by class, and what another score threshold would do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, PercentFormatter

from temporalzoom.metrics.operating_point import ThresholdCurve
from temporalzoom.viewer.style import (
    INK,
    MUTED,
    PALETTE,
    legend_above,
    new_figure,
    styled,
    text_colour,
    text_width,
)

KIND_COLOURS = {
    "found": PALETTE[2],
    "correct": PALETTE[2],
    "misplaced": PALETTE[3],
    "wrong label": PALETTE[4],
    "duplicate": PALETTE[6],
    "missed": PALETTE[1],
    "background": PALETTE[1],
}
_CURVES = {"precision": PALETTE[0], "recall": PALETTE[1], "F1": INK}
_POINTS = 300  # of a curve: more cannot be seen


@styled
def plot_error_kinds(
    instances: Mapping[str, Mapping[str, int]], detections: Mapping[str, Mapping[str, int]], names: tuple[str, str]
) -> Figure:
    """Bars by class: what became of its instances (left) and what its detections are (right), all bars equally long.

    Both map a class to numbers by kind. names: titles of the two sides. Bars hold the numbers.
    """
    rows = list(instances)
    figure = new_figure(0.62 + 0.235 * len(rows))
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, counts, name in ((left, instances, names[0]), (right, detections, names[1])):
        for row, label in enumerate(rows):
            _stacked(axes, row, counts[label])
        axes.set_title(name, color=INK)
        axes.set_xlim(0, 1)
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.spines[["left", "bottom"]].set_visible(False)
    left.set_ylim(len(rows) - 0.5, -0.5)
    left.set_yticks(range(len(rows)), [_shortened(label) for label in rows])
    left.tick_params(axis="y", labelsize=7.5, labelcolor=INK)
    kinds = dict.fromkeys(k for side in (instances, detections) for counts in side.values() for k in counts)
    names_of: dict[str, list[str]] = {}
    for kind in kinds:  # one entry for a colour: `found / correct`
        names_of.setdefault(KIND_COLOURS[kind], []).append(kind)
    entries = {" / ".join(kinds): colour for colour, kinds in names_of.items()}
    figure.legend(
        [Rectangle((0, 0), 1, 1, color=colour) for colour in entries.values()],
        list(entries),
        loc="outside upper left",
        ncols=len(entries),
        handlelength=0.9,
        handleheight=0.9,
        borderaxespad=0.2,
    )
    return figure


def _stacked(axes: Axes, row: int, counts: Mapping[str, int]) -> None:
    total = sum(counts.values())
    if not total:
        axes.text(0.0, row, "none", va="center", fontsize=6.5, color=MUTED)
        return
    first = 0.0
    for kind, count in counts.items():
        share = count / total
        colour = KIND_COLOURS[kind]
        axes.barh(row, share, left=first, height=0.74, color=colour, edgecolor="white", linewidth=0.5)
        if count and text_width(str(count), 6.5) + 4 < share * 200:  # a side is about 200 points wide
            axes.text(
                first + share / 2,
                row,
                str(count),
                ha="center",
                va="center_baseline",
                fontsize=6.5,
                color=text_colour(colour),
            )
        first += share


@styled
def plot_threshold_curves(curves: Mapping[str, ThresholdCurve], thresholds: Mapping[str, float]) -> Figure:
    """Precision, recall and F1 over the score threshold, one panel per curve; a thin line at the chosen threshold."""
    columns = 1 if len(curves) == 1 else 3
    rows = math.ceil(len(curves) / columns)
    figure = new_figure(0.75 + 1.45 * rows)
    grid: Sequence[Axes] = np.atleast_1d(figure.subplots(rows, columns, sharey=True, squeeze=False)).ravel().tolist()
    lines: dict[str, Line2D] = {}
    highest = max((float(c.scores[0]) for c in curves.values() if len(c.scores)), default=1.0)
    for axes, (name, curve) in zip(grid, curves.items(), strict=False):
        lines |= _draw_curve(axes, curve)
        if name in thresholds:
            axes.axvline(thresholds[name], color=MUTED, linewidth=0.9, linestyle=(0, (4, 2)))
        axes.set_title(_shortened(name), color=INK)
        axes.set_xlim(min([0.0, *(float(c.scores[-1]) for c in curves.values() if len(c.scores))]), max(highest, 1e-6))
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=None))
    for axes in grid[len(curves) :]:
        axes.set_visible(False)
    figure.supxlabel("score threshold", fontsize=8.0, color=MUTED)
    figure.supylabel("%", fontsize=8.0, color=MUTED)
    legend_above(figure, lines)
    return figure


def _draw_curve(axes: Axes, curve: ThresholdCurve) -> dict[str, Line2D]:
    if not len(curve.scores):
        axes.text(0.5, 0.5, "nothing found", transform=axes.transAxes, ha="center", va="center", color=MUTED)
        return {}
    shown = np.unique(np.linspace(0, len(curve.scores) - 1, _POINTS).round().astype(np.intp))
    drawn = {}
    for (name, colour), values in zip(_CURVES.items(), (curve.precision, curve.recall, curve.f1), strict=True):
        (drawn[name],) = axes.plot(
            curve.scores[shown], values[shown], color=colour, drawstyle="steps-post", linewidth=1.2
        )
    return drawn


def _shortened(name: str, limit: int = 26) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"
