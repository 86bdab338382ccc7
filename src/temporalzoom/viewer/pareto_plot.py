"""What accuracy systems reach at which cost, at several budgets each: one panel per overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from temporalzoom.viewer.style import INK, colours, legend_above, new_figure, score_limits, styled

_MARKERS = "osD^vph*<>"

Points = Mapping[str, Sequence[tuple[float, float]]]


@styled
def plot_pareto(panels: Mapping[str, Points], xlabel: str, highlight: str | None = None) -> Figure:
    """`panels[title][system] = [(cost, score), ...]`: a line where a system has several, else a marker.

    Scores in percent. highlight: the system that is drawn thicker, and above the others. Points that are not finite are
    left out.
    """
    names = list(dict.fromkeys(name for points in panels.values() for name in points))
    figure = new_figure(3.6 + 0.18 * (len(names) // 4))
    grid = np.atleast_1d(figure.subplots(1, max(len(panels), 1), sharex=True)).tolist()
    palette = colours(names)
    lines: dict[str, Line2D] = {}
    for axes, (title, points) in zip(grid, panels.items(), strict=False):
        for name, pairs in points.items():
            known = np.array(sorted(pairs), np.float64).reshape(-1, 2)
            known = known[np.isfinite(known).all(axis=1)]
            if not len(known):
                continue
            place, first = names.index(name), name == highlight
            (lines[name],) = axes.plot(
                *known.T,
                color=INK if first else palette[name],
                linestyle="-" if len(known) > 1 else "none",
                linewidth=2.0 if first else 1.1,
                marker=_MARKERS[place % len(_MARKERS)],
                markersize=5.5 if first else 4.5,
                markeredgecolor="white",
                markeredgewidth=0.5,
                zorder=4 if first else 3,
            )
        axes.set_title(title)
        axes.set_ylim(*score_limits(float(score) for pairs in points.values() for _, score in pairs))
        axes.ticklabel_format(useOffset=False)
        axes.set(xlabel=xlabel, ylabel="mAP (%)")
    legend_above(figure, {name: lines[name] for name in names if name in lines})
    return figure
