"""One picture of what the program does: truth, prediction, and the distance fields whose zeros are the boundaries."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from temporalzoom.segments import Segments
from temporalzoom.viewer.demo_report import SequenceView
from temporalzoom.viewer.style import (
    INK,
    PALETTE,
    WIDTH,
    class_colours,
    draw_boundaries,
    legend_columns,
    new_figure,
    styled,
    time_axis,
)
from temporalzoom.viewer.timeline import assign_lanes, draw_bar

_START, _END = PALETTE[0], PALETTE[1]
_LANE = 0.23  # inches


@styled
def plot_overview(view: SequenceView, system: str, span: tuple[float, float] | None = None) -> Figure:
    """Truth above what `system` found, below them the fields of starts and ends with their zero crossings.

    span: from which second to which, by default the whole sequence.
    """
    first, last = span or (0.0, view.duration)
    rows = {
        name: segments[(segments.ends > first) & (segments.starts < last)]
        for name, segments in (("truth", view.truth), ("found", view.found[system]))
    }
    lanes = {name: assign_lanes(segments) for name, segments in rows.items()}
    heights = [int(lane.max(initial=0)) + 1 for lane in lanes.values()]
    bars = _LANE * (sum(heights) + 0.7)
    figure = new_figure(bars + 3.2)
    top, upper, lower = figure.subplots(3, 1, sharex=True, height_ratios=(bars, 1.1, 1.1))
    palette = class_colours(view.classes, [label for segments in rows.values() for label in segments.labels.tolist()])
    _draw_rows(top, rows, lanes, palette, (WIDTH - 0.8) * 72 / (last - first))
    legend = {label: palette[label] for label in palette if any(label in row.labels for row in rows.values())}
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in legend.values()]
    figure.legend(
        handles,
        list(legend),
        loc="outside upper left",
        ncols=legend_columns(legend),
        handlelength=0.9,
        handleheight=0.9,
        borderaxespad=0.2,
    )
    for axes, kind, field, crossings, boundaries, colour in (
        (upper, "start", view.start_field, view.start_crossings, view.truth.starts, _START),
        (lower, "end", view.end_field, view.end_crossings, view.truth.ends, _END),
    ):
        axes.axhline(0.0, color="#9aa5b1", linewidth=0.7)
        draw_boundaries(axes, boundaries, f"true {kind}")
        axes.plot(view.times, field, color=colour, linewidth=1.3, label=f"predicted distance to the nearest {kind}")
        zeros = np.zeros(len(crossings))
        axes.plot(
            crossings, zeros, "o", color=colour, markersize=6, markeredgecolor="white", label=f"zero crossing = {kind}"
        )
        axes.set_ylabel("frames")
        axes.grid(axis="x", visible=False)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.1)
    for axes in (top, upper):
        axes.tick_params(axis="x", length=0)
    time_axis(lower, first, last)
    return figure


def _draw_rows(
    axes: Axes,
    rows: dict[str, Segments],
    lanes: dict[str, NDArray[np.intp]],
    palette: dict[str, str],
    points_per_second: float,
) -> None:
    ticks, above = [], 0.0
    for name, segments in rows.items():
        highest = segments.scores.max(initial=0.0)
        for (start, end, label, score), lane in zip(segments, lanes[name].tolist(), strict=True):
            opacity = 0.25 + 0.75 * max(score, 0.0) / highest if highest > 0 else 1.0
            draw_bar(axes, start, end, above + lane, label, palette[label], opacity, points_per_second)
        count = int(lanes[name].max(initial=0)) + 1
        ticks.append(above + count / 2)
        above += count + 0.5
    axes.set_ylim(above - 0.3, -0.2)
    axes.set_yticks(ticks, list(rows))
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.tick_params(axis="y", labelsize=8.0, labelcolor=INK)
    axes.grid(visible=False)
    axes.spines[["left", "bottom"]].set_visible(False)
