"""Plots of adaptive depth: where it is spent, how tau is distributed, what accuracy it buys at which cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, MultipleLocator, PercentFormatter
from numpy.typing import ArrayLike, NDArray

from temporalzoom.segments import Segments
from temporalzoom.viewer.style import (
    MUTED,
    PALETTE,
    RULE,
    colours,
    draw_boundaries,
    legend_above,
    new_figure,
    score_limits,
    styled,
    text_width,
    time_axis,
)

__all__ = ["plot_budget_curve", "plot_depth", "plot_tau_histogram"]

_DEPTH, _UNCERTAINTY = PALETTE[2], PALETTE[4]  # not the colours of starts and ends, which may stand right above
_MARKERS = "osD^vph*<>"
_LABEL_SIZE = 7.5
_BINS = 20  # of width 0.05


class Box(NamedTuple):
    """In points, from the lower left corner of the figure; `side` is where the text in it is anchored."""

    left: float
    bottom: float
    right: float
    top: float
    side: str = "left"


@styled
def plot_depth(
    times: ArrayLike,
    tau: ArrayLike,
    sigma: ArrayLike,
    kept: ArrayLike,
    active: ArrayLike,
    truth: Segments,
    threshold: float | None = None,
) -> Figure:
    """Depth and uncertainty over time, and what became of each position: pruned, kept, or in the deep path.

    times: `(T,)` seconds, ascending; tau, sigma: `(T,)`; kept, active: `(T,)` boolean, active only where kept.
    """
    times, tau, sigma = (np.asarray(values, np.float64) for values in (times, tau, sigma))
    kept, active = np.asarray(kept, np.bool_), np.asarray(active, np.bool_)
    shapes = [values.shape for values in (times, tau, sigma, kept, active)]
    if times.ndim != 1 or len(set(shapes)) != 1:
        raise ValueError(f"times, tau, sigma, kept and active must be (T,), got {shapes}")
    if (active & ~kept).any():
        raise ValueError("a pruned position cannot be in the deep path")
    figure = new_figure(3.6)
    upper, middle, strip = figure.subplots(3, 1, sharex=True, height_ratios=(10, 7, 1.6))
    edges = position_edges(times)
    _draw_steps(upper, edges, tau, _DEPTH, "depth τ")
    upper.set(ylim=(0.0, 1.03), ylabel="τ")
    upper.yaxis.set_major_locator(MultipleLocator(0.5))
    if threshold is not None:
        upper.axhline(threshold, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)), label=f"threshold {threshold:.2g}")
    _draw_steps(middle, edges, sigma, _UNCERTAINTY, "uncertainty σ")  # noqa: RUF001
    middle.set(ylim=(0.0, 1.08 * sigma.max(initial=0.0) or 1.0), ylabel="σ")  # noqa: RUF001
    middle.yaxis.set_major_locator(MaxNLocator(3))
    boundaries = np.unique([truth.starts, truth.ends])
    for axes in (upper, middle):
        draw_boundaries(axes, boundaries, "true boundary" if axes is upper and len(boundaries) else "")
    _draw_fates(strip, edges, kept, active)
    for axes in (upper, middle, strip):
        axes.grid(axis="x", visible=False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, borderaxespad=0.1)
    for axes in (upper, middle):
        axes.tick_params(axis="x", length=0)
    if len(times):
        first, last = (times if len(times) > 1 else edges)[[0, -1]]
        time_axis(strip, float(first), float(last))
    else:
        strip.set_xticks([])
    return figure


@styled
def plot_tau_histogram(tau: Mapping[str, ArrayLike]) -> Figure:
    """How tau is distributed in groups of positions: the share of each group per bin of 0.05, and its mean.

    `tau[name]`: `(N,)` in 0..1.
    """
    figure = new_figure(2.6)
    axes = figure.subplots()
    palette, lines = colours(tau), {}
    edges = np.arange(_BINS + 1) / _BINS
    for name, values in tau.items():
        values = np.asarray(values, np.float64).reshape(-1)
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError(f"tau of {name!r} must be within 0 and 1")
        shares = np.histogram(values, edges)[0] / max(len(values), 1)
        axes.stairs(shares, edges, fill=True, facecolor=(palette[name], 0.14), linewidth=0)
        label = f"{name} (no positions)"
        if len(values):
            # No outline around nothing: the zeros of one group would hide the axis and the other groups
            axes.stairs(np.where(shares > 0, shares, np.nan), edges, color=palette[name], linewidth=1.2)
            label = f"{name} (mean {values.mean():.2f})"
            axes.axvline(values.mean(), color=palette[name], linewidth=1.0, linestyle=(0, (4, 2)))
        lines[label] = Line2D([], [], color=palette[name])
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(bottom=0.0)
    axes.xaxis.set_major_locator(MultipleLocator(0.1))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=None))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.grid(axis="x", visible=False)
    axes.set(xlabel="depth τ", ylabel="positions (%)")
    legend_above(figure, lines)
    return figure


@styled
def plot_budget_curve(
    points: Mapping[str, Sequence[tuple[float, float]]],
    xlabel: str = "executed FLOPs relative to uniform-6",
    ylabel: str = "average mAP (%)",
) -> Figure:
    """Accuracy over cost, `points[system] = [(cost, score), ...]`: a line where a system has several, else a marker.

    Cost as given, from zero; scores in percent, on an axis of at least ten points. Names stand next to the points if
    all of them fit.
    """
    figure = new_figure(3.2)
    axes = figure.subplots()
    palette, lines = colours(points), {}
    for i, (system, pairs) in enumerate(points.items()):
        known = np.array(sorted(pairs), np.float64).reshape(-1, 2)
        known = known[np.isfinite(known).all(axis=1)]
        if len(known):
            (lines[system],) = axes.plot(
                *known.T,
                color=palette[system],
                linestyle="-" if len(known) > 1 else "none",
                marker=_MARKERS[i % len(_MARKERS)],
                markersize=5.5,
                markeredgecolor="white",
                markeredgewidth=0.6,
                zorder=3,
            )
    axes.margins(0.08)
    axes.set_xlim(left=0.0)
    axes.set_ylim(*score_limits(float(score) for pairs in points.values() for _, score in pairs))
    axes.ticklabel_format(useOffset=False)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    figure.draw_without_rendering()  # lays out: from here on it is known where the points are
    labels = _place_labels(axes, lines, figure.dpi)
    if labels is None:
        legend_above(figure, lines)
        return figure
    for system, box in labels.items():
        axes.annotate(
            system,
            ((box.left + box.right) / 2 if box.side == "center" else getattr(box, box.side), box.bottom),
            xycoords="figure points",
            ha=box.side,
            va="baseline",
            fontsize=_LABEL_SIZE,
            color=palette[system],
            in_layout=False,
        )
    return figure


def position_edges(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """`(T + 1,)` limits of the positions at `times` `(T,)`: halfway to the neighbours, as far out at both ends."""
    if len(times) < 2:
        return np.concatenate([times - 0.5, times + 0.5]) if len(times) else np.zeros(1)
    steps = np.diff(times)
    if not (steps > 0).all():
        raise ValueError("times must ascend")
    return np.concatenate([[times[0] - steps[0] / 2], times[:-1] + steps / 2, [times[-1] + steps[-1] / 2]])


def _draw_steps(axes: Axes, edges: NDArray[np.float64], values: NDArray[np.float64], colour: str, name: str) -> None:
    """A filled area with a flat piece per position, so that it agrees with the strip below to the position."""
    if len(values):
        axes.stairs(values, edges, fill=True, facecolor=(colour, 0.18), linewidth=0)
        axes.stairs(values, edges, baseline=None, color=colour, linewidth=1.0, label=name)


def _draw_fates(axes: Axes, edges: NDArray[np.float64], kept: NDArray[np.bool_], active: NDArray[np.bool_]) -> None:
    """The strip: one bar per run of positions with the same fate; the legend says the share of each."""
    for name, chosen, colour in (
        ("pruned", ~kept, RULE),
        ("kept", kept & ~active, (_DEPTH, 0.42)),
        ("in the deep path", active, _DEPTH),
    ):
        # Where a run begins the padded mask goes up, where it ends it goes down
        begin, end = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).reshape(-1, 2).T
        spans = list(zip(edges[begin], edges[end] - edges[begin], strict=True))
        share = f" ({chosen.mean():.0%})" if len(chosen) else ""
        axes.broken_barh(spans, (0.0, 1.0), facecolor=colour, linewidth=0, label=name + share)
    axes.set(ylim=(0.0, 1.0), yticks=[])
    axes.spines["left"].set_visible(False)


def _place_labels(axes: Axes, lines: Mapping[str, Line2D], dpi: float) -> dict[str, Box] | None:
    """Where each name fits next to one of its points, covering no point, line or other name; None if one does not."""
    scale = 72 / dpi
    paths = {name: axes.transData.transform(line.get_xydata()) * scale for name, line in lines.items()}
    taken = [Box(x - 4, y - 4, x + 4, y + 4) for path in paths.values() for x, y in path]
    for a, b in (ends for path in paths.values() for ends in pairwise(path)):
        along = np.linspace(a, b, 2 + int(np.hypot(*(b - a)) / 3))
        taken += [Box(x - 1.5, y - 1.5, x + 1.5, y + 1.5) for x, y in along]
    frame = Box(*np.multiply(axes.get_window_extent().extents, scale))
    placed: dict[str, Box] = {}
    for name, path in paths.items():
        width = text_width(name, _LABEL_SIZE)
        candidates = (box for x, y in path[::-1] for box in _around(x, y, width))
        box = next((box for box in candidates if _fits(box, frame, taken)), None)
        if box is None:
            return None
        placed[name] = box
        taken.append(Box(box.left - 4, box.bottom - 2, box.right + 4, box.top + 2))
    return placed


def _around(x: float, y: float, width: float) -> Iterator[Box]:
    """Boxes for a text right of a point, left of it, above and below."""
    gap, height = 6.0, 0.75 * _LABEL_SIZE
    for left, bottom, side in (
        (x + gap, y - height / 2, "left"),
        (x - gap - width, y - height / 2, "right"),
        (x - width / 2, y + gap, "center"),
        (x - width / 2, y - gap - height, "center"),
    ):
        yield Box(left, bottom, left + width, bottom + height, side)


def _fits(box: Box, frame: Box, taken: Sequence[Box]) -> bool:
    inside = box.left > frame.left and box.right < frame.right and box.bottom > frame.bottom and box.top < frame.top
    return inside and not any(
        box.left < other.right and other.left < box.right and box.bottom < other.top and other.bottom < box.top
        for other in taken
    )
