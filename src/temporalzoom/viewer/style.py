"""The look shared by all plots: palette, fonts, blank figures and the time axis."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, ParamSpec

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, MultipleLocator
from numpy.typing import ArrayLike

P = ParamSpec("P")

WIDTH = 7.6  # inches; the page shows it about 1.6 times larger, so that 8 pt become 13 px
INK, MUTED, RULE = "#1f2933", "#64707d", "#dfe3e8"
# Distinct in hue and in lightness, so that the colours survive colour blindness and grey print
PALETTE = ("#2b5c8a", "#d0663c", "#3d958b", "#c4982f", "#7a4a8f", "#8f3b4b", "#6f9fca", "#6b7a3a", "#c77fa3", "#7c8691")

_RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same layout on every machine
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlelocation": "left",
    "axes.edgecolor": "#9aa5b1",
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": RULE,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.4,
    "lines.solid_joinstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.6,
    "text.color": INK,
    "text.parse_math": False,  # a class may be called "pay $5 or $10"
    "xtick.color": "#9aa5b1",
    "ytick.color": "#9aa5b1",
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0.0,
    "xtick.major.width": 0.6,
    "svg.fonttype": "none",  # text stays text: set in the reader's own font, and it can be searched and copied
    "svg.hashsalt": "temporalzoom",  # ids that are the same in every run
}
_TICK_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200)


@contextmanager
def house_style() -> Iterator[None]:
    """The same look, to draw and to save, whatever the settings of the calling program."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        # Names in any script are drawn by the browser, with its fonts
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def styled(plot: Callable[P, Figure]) -> Callable[P, Figure]:
    """Make a plot function draw in the house style."""

    @wraps(plot)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with house_style():
            return plot(*args, **kwargs)

    return wrapper


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour per distinct name, in order of first appearance: ten hues, then their light and their dark tones."""
    tones = [_tone(colour, amount) for amount in (0.0, 0.5, -0.45) for colour in PALETTE]
    return {name: tones[i % len(tones)] for i, name in enumerate(dict.fromkeys(names))}


def class_colours(classes: Iterable[str], found: Iterable[str] = ()) -> dict[str, str]:
    """A colour per class, by its place in the sorted list of `classes`: the same whatever a model found.

    found: labels in use; those that are none of the classes come behind them.
    """
    known = sorted(set(classes))
    return colours([*known, *sorted(set(found) - set(known))])


def score_limits(values: Iterable[float], span: float = 10.0) -> tuple[float, float]:
    """Limits of an axis of percentages, multiples of five at least `span` apart: one point stays a small step.

    They leave room around the values where that stays within 0 and 100.
    """
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=100.0)
    room = 0.04 * max(high - low, span)
    low, high = 5 * math.floor((low - room) / 5), 5 * math.ceil((high + room) / 5)
    within = min(known, default=0.0) >= 0 and max(known, default=100.0) <= 100
    if within:
        low, high = max(low, 0), min(high, 100)
    while high - low < span:  # downward first where there is nothing above
        low, high = (low - 5, high) if within and high >= 100 else (low, high + 5)
    return float(low), float(high)


def text_colour(background: str, opacity: float = 1.0) -> str:
    """Ink or white, whichever is easier to read on `background` laid over white paper with `opacity`."""
    red, green, blue = (1 - opacity * (1 - channel) for channel in to_rgb(background))
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.56 else "white"


@lru_cache(maxsize=10_000)
def text_width(text: str, size: float) -> float:
    """Width in points."""
    return float(TextPath((0, 0), text, size=size, usetex=False).get_extents().width) if text.strip() else 0.0


def new_figure(height: float, gap: float = 0.02) -> Figure:
    """A blank figure, `height` inches, that lays itself out; `gap` between its axes as a fraction of their size."""
    return Figure(
        figsize=(WIDTH, height), layout=ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=gap, hspace=gap)
    )


def legend_above(figure: Figure, lines: Mapping[str, Line2D]) -> None:
    """One legend for the whole figure, above its axes, in as many columns as fit."""
    if lines:
        figure.legend(
            list(lines.values()), list(lines), loc="outside upper left", ncols=legend_columns(lines), borderaxespad=0.2
        )


def legend_columns(names: Collection[str]) -> int:
    """How many columns of a legend fit side by side in a figure."""
    widest = max((text_width(name, 8.0) for name in names), default=0.0) + 32
    return max(1, min(len(names), int((WIDTH - 0.8) * 72 / widest)))


def time_axis(axes: Axes, start: float, end: float) -> None:
    """Limit the x-axis to `[start, end]` seconds; round ticks, as m:ss for long recordings."""
    span = max(end - start, 1e-3)
    axes.set_xlim(start, start + span)
    step = next((step for step in _TICK_STEPS if span / step <= 10), span / 10)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    if end > 120 and step >= 1:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _clock(x)))
        axes.set_xlabel("time (h:mm:ss)" if end >= 3600 else "time (m:ss)")
    else:
        axes.set_xlabel("time (s)")


def draw_boundaries(axes: Axes, times: ArrayLike, label: str = "") -> None:
    """True boundaries, thin lines over the whole height."""
    across = axes.get_xaxis_transform()
    axes.vlines(times, 0, 1, transform=across, color=INK, linewidth=0.7, alpha=0.75, label=label)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _tone(colour: str, amount: float) -> str:
    """Lighter (amount > 0) or darker (< 0), up to white at 1 and black at -1."""
    red, green, blue = (channel + abs(amount) * ((amount > 0) - channel) for channel in to_rgb(colour))
    return to_hex((red, green, blue))
