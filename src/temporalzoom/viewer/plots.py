"""Plots of segments, distance fields, curves and results: functions from arrays to a matplotlib Figure."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator, NullLocator, PercentFormatter, StrMethodFormatter
from numpy.typing import ArrayLike, NDArray

from temporalzoom.segments import Segments
from temporalzoom.viewer.style import (
    INK,
    MUTED,
    PALETTE,
    WIDTH,
    colours,
    draw_boundaries,
    legend_above,
    new_figure,
    styled,
    time_axis,
)
from temporalzoom.viewer.timeline import plot_timeline

__all__ = ["plot_distance_fields", "plot_map_by_threshold", "plot_precision_recall", "plot_timeline", "plot_training"]

_MARKERS = "osD^vPX*<>"


@styled
def plot_distance_fields(
    times: ArrayLike,
    start_field: ArrayLike,
    end_field: ArrayLike,
    start_crossings: ArrayLike,
    end_crossings: ArrayLike,
    truth: Segments,
    *,
    units: str = "frames",
) -> Figure:
    """Predicted signed distances to the nearest start and to the nearest end, with their zero crossings.

    times, start_field, end_field: `(T,)`, times in seconds, fields in `units`; crossings: `(K,)` seconds.
    """
    times = np.asarray(times, np.float64)
    figure = new_figure(3.6)
    upper, lower = figure.subplots(2, 1, sharex=True, sharey=True)
    for axes, kind, field, crossings, boundaries, colour in (
        (upper, "start", start_field, start_crossings, truth.starts, PALETTE[0]),
        (lower, "end", end_field, end_crossings, truth.ends, PALETTE[1]),
    ):
        crossings = np.asarray(crossings, np.float64)
        axes.axhline(0.0, color="#9aa5b1", linewidth=0.7)
        draw_boundaries(axes, boundaries, f"true {kind}")
        axes.plot(times, np.asarray(field, np.float64), color=colour, linewidth=1.2, label=f"distance to {kind}")
        axes.plot(
            crossings,
            np.zeros(len(crossings)),
            "o",
            color=colour,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.8,
            label=f"found {kind}",
            zorder=3,
        )
        axes.set_ylabel(units)
        axes.grid(axis="x", visible=False)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.1)
    upper.tick_params(axis="x", length=0)
    if len(times):
        time_axis(lower, float(times[0]), float(times[-1]))
    return figure


@styled
def plot_precision_recall(curves: Mapping[str, Mapping[float, tuple[ArrayLike, ArrayLike]]]) -> Figure:
    """One small panel per tIoU threshold, one line per system; `curves[system][threshold] = (recall, precision)`."""
    thresholds = sorted({threshold for by_threshold in curves.values() for threshold in by_threshold})
    rows = max(1, math.ceil(len(thresholds) / 4))
    columns = max(1, math.ceil(len(thresholds) / rows))
    figure = new_figure(0.6 + rows * min(3.0, 0.3 + 0.78 * WIDTH / columns), gap=0.06)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    palette, lines = colours(curves), {}
    for axes, threshold in zip(grid.flat, thresholds, strict=False):
        for system, by_threshold in curves.items():
            if threshold in by_threshold:
                recall, precision = by_threshold[threshold]
                (lines[system],) = axes.plot(np.asarray(recall), np.asarray(precision), color=palette[system])
        axes.set_title(f"tIoU {threshold:g}", color=INK)
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MultipleLocator(0.25))
            axis.set_major_formatter(PercentFormatter(1.0, symbol=None))
    for axes in grid.flat[len(thresholds) :]:
        axes.set_visible(False)
    figure.supxlabel("recall (%)", fontsize=8.0, color=MUTED)
    figure.supylabel("precision (%)", fontsize=8.0, color=MUTED)
    legend_above(figure, {system: lines[system] for system in curves if system in lines})
    return figure


@styled
def plot_map_by_threshold(results: Mapping[str, Mapping[float, float]]) -> Figure:
    """mAP over the tIoU threshold, one line per system. Values are fractions; the axis shows percent."""
    figure = new_figure(3.0)
    axes = figure.subplots()
    palette, lines = colours(results), {}
    thresholds = sorted({threshold for by_threshold in results.values() for threshold in by_threshold})
    for i, (system, by_threshold) in enumerate(results.items()):
        known = sorted(by_threshold)
        (lines[system],) = axes.plot(
            known,
            [by_threshold[threshold] for threshold in known],
            color=palette[system],
            marker=_MARKERS[i % len(_MARKERS)],
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            clip_on=False,
            zorder=3,
        )
    axes.set_xticks(thresholds, [f"{threshold:g}" for threshold in thresholds])
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=None))
    axes.grid(axis="x", visible=False)
    axes.set(xlabel="tIoU threshold", ylabel="mAP (%)")
    legend_above(figure, lines)
    return figure


@styled
def plot_training(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ylabel: str = "loss") -> Figure:
    """Loss over training steps, `curves[system] = (steps, losses)`: smoothed, the raw values faint behind it."""
    figure = new_figure(2.8)
    axes = figure.subplots()
    palette, lines = colours(curves), {}
    smooth_values = []
    for system, (steps, losses) in curves.items():
        steps, losses = np.asarray(steps, np.float64), np.asarray(losses, np.float64)
        finite = np.isfinite(losses)
        steps, losses = steps[finite], losses[finite]
        smooth = moving_average(losses, max(1, len(losses) // 50))
        smooth_values.append(smooth)
        every = _thin(len(steps), 400)
        axes.plot(steps[every], losses[every], color=palette[system], linewidth=0.6, alpha=0.25)
        (lines[system],) = axes.plot(steps[every], smooth[every], color=palette[system])
    values = np.concatenate([np.zeros(0), *smooth_values])
    if len(values) and values.min() > 0 and values.max() > 20 * values.min():
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))  # the default is TeX, which stays off here
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set(xlabel="step", ylabel=ylabel)
    axes.margins(x=0.01)
    axes.grid(axis="x", visible=False)
    legend_above(figure, lines)
    return figure


def moving_average(values: ArrayLike, radius: int) -> NDArray[np.float64]:
    """`(N,)` mean over `2 * radius + 1` neighbours, fewer at the edges: no lag, and nothing invented outside."""
    values = np.asarray(values, np.float64)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(len(values)) - radius, 0)
    last = np.minimum(np.arange(len(values)) + radius + 1, len(values))
    return (sums[last] - sums[first]) / np.maximum(last - first, 1)


def _thin(count: int, limit: int) -> NDArray[np.intp]:
    """At most `limit` indices spread over `range(count)`, the first and the last included."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(np.intp))
