"""The timeline: annotated and predicted segments of one recording, row by row on one time axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from temporalzoom.segments import Segments
from temporalzoom.viewer.style import (
    INK,
    MUTED,
    RULE,
    WIDTH,
    class_colours,
    legend_columns,
    styled,
    text_colour,
    text_width,
    time_axis,
)

MARK = "#f5333f"  # of middle lightness: stays red on a dark page, where drawings are inverted


@styled
def plot_timeline(
    truth: Segments,
    predictions: Mapping[str, Segments],
    duration: float,
    *,
    classes: Iterable[str] = (),
    max_lanes: int = 5,
    start: float = 0.0,
    marked: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """What happened and what each system found, on one time axis from `start` to `duration` seconds.

    One colour per class, by its place among all `classes`, or else among all labels given. Segments that overlap are
    stacked in lanes, the best score on top; what does not fit into `max_lanes` lanes is left out and counted under the
    row's name. Opacity: score over the system's highest. marked: by row (`truth` or a system), True for each segment
    that is underlined in red.
    """
    names = ["truth", *predictions]
    rows = [truth, *predictions.values()]
    lanes = [assign_lanes(segments) for segments in rows]
    heights = [min(max_lanes, int(lane.max(initial=0)) + 1) for lane in lanes]
    palette = class_colours(classes, (label for segments in rows for label in segments.labels.tolist()))
    visible = {label for row, lane in zip(rows, lanes, strict=True) for label in row.labels[lane < max_lanes].tolist()}
    legend = {label: colour for label, colour in palette.items() if label in visible}

    # Laid out by hand, in inches: what fits into a bar must be known before it is drawn
    lane_height, gap, below = 0.21, 0.45, 0.42  # the gap between rows in lanes
    columns = legend_columns(legend)
    above = 0.06 + 0.18 * math.ceil(len(legend) / columns)
    left, right = min(2.0, max(text_width(name, 8.0) for name in names) / 72 + 0.16), 0.12
    total = sum(heights) + gap * len(heights)
    height = total * lane_height + below + above
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((left / WIDTH, below / height, (WIDTH - left - right) / WIDTH, total * lane_height / height))
    axes.set_ylim(total, 0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    time_axis(axes, start, duration)
    points_per_second = (WIDTH - left - right) * 72 / max(duration - start, 1e-3)

    ticks: list[float] = []
    first = gap / 2
    for name, segments, lane, row_height in zip(names, rows, lanes, heights, strict=True):
        shown = lane < row_height
        highest = segments.scores.max(initial=0.0)
        for (begin, end, label, score), row in zip(segments[shown], lane[shown], strict=True):
            opacity = 0.25 + 0.75 * max(score, 0.0) / highest if highest > 0 else 1.0
            draw_bar(axes, begin, end, first + row, label, palette[label], opacity, points_per_second)
        if marked is not None and name in marked:
            wrong = shown & np.asarray(marked[name], bool)
            below_bar = first + lane[wrong] + 0.98
            axes.hlines(below_bar, segments.starts[wrong], segments.ends[wrong], color=MARK, linewidth=2.2, zorder=3)
        if ticks:
            axes.axhline(first - gap / 2, color=RULE, linewidth=0.6)
        ticks.append(first + row_height / 2)
        first += row_height + gap
        if not shown.all():
            axes.annotate(
                f"+ {np.count_nonzero(~shown)} more",
                (0, ticks[-1]),
                xycoords=("axes fraction", "data"),
                xytext=(-3.5, -11),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=6.5,
                color=MUTED,
            )
    axes.set_yticks(ticks, names)
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.tick_params(axis="y", labelsize=8.0, labelcolor=INK)
    figure.legend(
        [Rectangle((0, 0), 1, 1, color=colour) for colour in legend.values()],
        list(legend),
        ncols=columns,
        loc="upper left",
        bbox_to_anchor=(left / WIDTH, 1.0),
        borderaxespad=0.1,
        borderpad=0.1,
        handlelength=0.9,
        handleheight=0.9,
    )
    return figure


def assign_lanes(segments: Segments) -> NDArray[np.intp]:
    """`(N,)` lane of each segment: the first in which it overlaps nothing, in order of score, then start."""
    lanes = np.zeros(len(segments), np.intp)
    taken: list[list[tuple[float, float]]] = []
    for i in np.lexsort((segments.starts, -segments.scores)):
        start, end = float(segments.starts[i]), float(segments.ends[i])
        lane = next(
            (k for k, spans in enumerate(taken) if all(end <= s or start >= e for s, e in spans)),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((start, end))
        lanes[i] = lane
    return lanes


def draw_bar(
    axes: Axes, start: float, end: float, top: float, label: str, colour: str, opacity: float, points_per_second: float
) -> None:
    points = (end - start) * points_per_second
    wide = points > 3
    axes.add_patch(
        Rectangle(
            (start, top + 0.06),
            end - start,
            0.88,
            facecolor=(colour, opacity),
            # A white rim parts neighbours; a very short segment instead gets a rim of its own colour, to stay visible
            edgecolor="white" if wide else (colour, opacity),
            linewidth=0.5 if wide else 0.8,
        )
    )
    if text_width(label, 6.5) + 5 < points:
        axes.text(
            (start + end) / 2,
            top + 0.5,
            label,
            ha="center",
            va="center_baseline",
            fontsize=6.5,
            clip_on=True,
            color=text_colour(colour, opacity),
        )
