"""Segments for the eye: rows of text, a table for the terminal, a table for a notebook, a plot."""

from __future__ import annotations

from html import escape
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from .columns import Columns
from .intervals import Floats, lanes

if TYPE_CHECKING:  # matplotlib is slow to load, and few need it
    from matplotlib.axes import Axes

TEXT_ROWS, HTML_ROWS = 10, 25
STEPS = (1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 86400)  # seconds between two times of an axis
BAR = 0.8  # height of a bar in a lane of height 1


def as_text(segments: Columns) -> str:
    """The first rows, one per line, times in seconds; labels as Python writes them, so that none can break a line."""
    count = len(segments.starts)
    shown = [(f"{s:.2f}", f"{e:.2f}", f"{p:.2f}", repr(label)) for s, e, label, p in islice(segments.rows(), TEXT_ROWS)]
    widths = [max((len(row[column]) for row in shown), default=0) for column in range(3)]
    lines = [f"Segments({count})"]
    for start, end, score, label in shown:
        lines.append(f"  {start:>{widths[0]}} - {end:>{widths[1]}} s  {score:>{widths[2]}}  {label}")
    return "\n".join(lines + ([f"  ... {count - len(shown)} more"] if count > len(shown) else []))


def as_html(segments: Columns) -> str:
    """A table with a bar for each of the first rows, where it lies between the first start and the last end."""
    count, cell = len(segments.starts), '<td style="text-align:right">'
    lines = [f"<div><p>{count} segment{'' if count == 1 else 's'}</p><table><thead><tr>"]
    lines += [f"<th>{name}</th>" for name in ("start", "end", "label", "score", "")]
    lines.append("</tr></thead><tbody>")
    times = np.concatenate([segments.starts, segments.ends])
    times = times[np.isfinite(times)]
    first, span = (float(times.min()), float(np.ptp(times))) if len(times) else (0.0, 0.0)
    for start, end, label, score in islice(segments.rows(), HTML_ROWS):
        bar = ""
        if span > 0 and np.isfinite([start, end]).all():
            left, width = 100 * (start - first) / span, 100 * (end - start) / span
            bar = (
                f'<div style="margin-left:{left:.1f}%;width:{width:.1f}%;min-width:1px;height:0.8em;'
                'background:#4477aa"></div>'
            )
        lines.append(f"<tr>{cell}{start:.2f}</td>{cell}{end:.2f}</td>")
        lines.append(f'<td style="text-align:left">{escape(label)}</td>{cell}{score:.3f}</td>')
        lines.append(f'<td><div style="width:16em;overflow:hidden">{bar}</div></td></tr>')
    lines.append("</tbody></table>")
    if count > HTML_ROWS:
        lines.append(f"<p>{count - HTML_ROWS} more</p>")
    return "".join([*lines, "</div>"])


def as_table(segments: Columns, title: str | None, limit: int | None) -> Table:
    """A table of rich."""
    # Text, because rich would take square brackets in a name for markup.
    table = Table(title=None if title is None else Text(title), title_justify="left")
    for name in ("start", "end", "length", "label", "score"):
        table.add_column(name, justify="left" if name == "label" else "right")
    rows = list(islice(segments.rows(), limit))
    for start, end, label, score in rows:
        table.add_row(f"{start:.2f}", f"{end:.2f}", f"{end - start:.2f}", Text(label), f"{score:.3f}")
    if len(rows) < len(segments.starts):
        table.caption = f"{len(segments.starts) - len(rows)} more"
    return table


def draw(segments: Columns, axes: Axes | None, truth: Columns | None, duration: float | None) -> Axes:
    """See `Segments.plot`. Per class from top to bottom: the lanes of the annotations, those of the detections."""
    both = [segments] if truth is None else [truth, segments]
    labels = np.concatenate([part.labels[np.argsort(part.starts, kind="stable")] for part in both])
    classes: list[str] = list(dict.fromkeys(labels.tolist()))
    blocks = [(index, part, np.flatnonzero(part.labels == name)) for index, name in enumerate(classes) for part in both]
    stacked = [lanes(part.starts[rows], part.ends[rows]) for _, part, rows in blocks]
    total = sum(int(lane.max(initial=-1)) + 1 for lane in stacked)
    if axes is None:
        from matplotlib import pyplot

        axes = pyplot.subplots(figsize=(9, 0.9 + 0.3 * max(total, 1)), layout="constrained")[1]

    top, edges = 0, [0]
    for (index, part, rows), lane in zip(blocks, stacked, strict=True):
        height = int(lane.max(initial=-1)) + 1
        for row in range(height):
            _draw_bars(axes, part, rows[lane == row], top + row, f"C{index % 10}", outlined=part is truth)
        top += height
        if part is segments:
            edges.append(top)
            axes.axhline(top, color="0.85", linewidth=0.8, zorder=0)
    axes.set_ylim(max(top, 1), 0)
    # A class may be called "pay $5 or $10": that is no formula.
    axes.set_yticks([(a + b) / 2 for a, b in pairwise(edges)], [name.replace("$", r"\$") for name in classes])
    axes.tick_params(axis="y", length=0)
    _set_time_axis(
        axes, np.concatenate([[0.0], *(column for part in both for column in (part.starts, part.ends))]), duration
    )
    if truth is not None:
        _add_legend(axes)
    return axes


def _draw_bars(axes: Axes, part: Columns, rows: NDArray[np.intp], top: int, colour: str, outlined: bool) -> None:
    """One lane of one class. Annotations are outlined; detections are filled, the higher their score the darker."""
    spans = np.stack([part.starts[rows], part.ends[rows] - part.starts[rows]], 1).tolist()
    place = (top + (1 - BAR) / 2, BAR)
    if outlined:
        axes.broken_barh(spans, place, facecolor="none", edgecolor=colour, linewidth=1.2)
    else:
        opacity = 0.25 + 0.75 * np.clip(np.nan_to_num(part.scores[rows]), 0, 1)
        axes.broken_barh(spans, place, facecolor=colour, edgecolor=colour, linewidth=0.8, alpha=opacity)


def _set_time_axis(axes: Axes, times: Floats, duration: float | None) -> None:
    """From 0 to the duration, or over all times; m:ss for more than two minutes."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    times = times[np.isfinite(times)]
    first, last = (float(times.min()), float(times.max())) if duration is None else (0.0, duration)
    if last > first:
        axes.set_xlim(first, last)
    if last <= 120:
        axes.set_xlabel("time (s)")
        return
    axes.xaxis.set_major_locator(
        MultipleLocator(next((x for x in STEPS if last - first <= 10 * x), (last - first) / 10))
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: clock(seconds)))
    axes.set_xlabel("time (h:mm:ss)" if last >= 3600 else "time (m:ss)")


def clock(seconds: float) -> str:
    """`75` -> `1:15`, `3675` -> `1:01:15`."""
    sign, whole = "-" if seconds < 0 else "", abs(round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}" if hours else f"{sign}{minutes}:{rest:02d}"


def _add_legend(axes: Axes) -> None:
    from matplotlib.patches import Patch

    grey = "0.3"
    handles = [
        Patch(facecolor="none", edgecolor=grey, label="truth"),
        Patch(facecolor=grey, edgecolor=grey, label="found"),
    ]
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
