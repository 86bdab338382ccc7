"""Report: text, tables and figures, one after the other, written as a single HTML file that needs nothing else."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.viewer.embed import figure_html
from temporalzoom.viewer.page import page

Cell = str | float | int | None
Best = Literal["max", "min"] | None

# A number, alone or with an interval or unit behind it: "82.1", "-0.4 ± 0.2", "12.5 [11.9, 13.0]", "35 %", "1.8 ms"
_NUMBER = re.compile(r"([+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:±.*|[(\[].*|%|[^\W\d]{1,3})?$", re.IGNORECASE)
_VIDEO_TYPES = {".mp4": "video/mp4", ".mov": "video/quicktime", ".mkv": "video/x-matroska", ".webm": "video/webm"}
_MINUS, _MISSING = "\N{MINUS SIGN}", "\N{EN DASH}"


class Report:
    """A report under construction. The methods append and return the report; the same calls give the same bytes.

    >>> Report("Run 7", "three seeds").heading("Results").table(["system"], [["tzn"]], caption="Systems.")
    """

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self.subtitle = subtitle
        self._parts: list[str] = []
        self._sections: list[tuple[str, str]] = []
        self._figures = 0
        self._tables = 0

    def heading(self, text: str) -> Report:
        anchor = f"section-{len(self._sections) + 1}"
        self._sections.append((anchor, text))
        return self._append(f'<h2 id="{anchor}">{escape(text)}</h2>')

    def text(self, text: str) -> Report:
        """Paragraphs, parted by blank lines; `words in backticks` are set as code."""
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            self._append(f"<p>{_inline(paragraph.strip())}</p>")
        return self

    def sentences(self, sentences: Sequence[str], *, lead: bool = False) -> Report:
        """A list, one sentence each; `words in backticks` are set as code. lead: what the page is about, set larger."""
        items = "".join(f"<li>{_inline(sentence)}</li>" for sentence in sentences)
        return self._append(f'<ul class="sentences{" lead" if lead else ""}">{items}</ul>')

    def commands(self, lines: Sequence[str]) -> Report:
        """Lines for a terminal, to be copied as they are."""
        return self._append(f"<pre><code>{escape(chr(10).join(lines))}</code></pre>")

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[Cell]],
        *,
        caption: str,
        highlight: Best | Sequence[Best] = None,
        digits: int = 1,
    ) -> Report:
        """Columns of numbers are set to the right, floats with `digits` decimals; None and NaN become a dash.

        highlight: which value of a column is bold, `"max"` or `"min"`, one entry per column, or one for all columns
        of numbers. Values are compared as printed: what looks equal is marked equally.
        """
        for row in rows:
            if len(row) != len(headers):
                raise ValueError(f"a row of {len(row)} cells under {len(headers)} headers: {list(row)}")
        best = [highlight] * len(headers) if highlight is None or isinstance(highlight, str) else list(highlight)
        if len(best) != len(headers) or any(mode not in ("max", "min", None) for mode in best):
            raise ValueError(f"highlight must be 'max', 'min' or None for each of {len(headers)} columns, got {best}")
        columns = [
            _column([_printed(row[j], digits) for row in rows], best[j], first=j == 0) for j in range(len(headers))
        ]
        head = "".join(
            f'<th scope="col"{_class(numeric)}>{escape(header)}</th>'
            for header, (numeric, _) in zip(headers, columns, strict=True)
        )
        body = "".join(f"<tr>{''.join(cells[i] for _, cells in columns)}</tr>\n" for i in range(len(rows)))
        self._tables += 1
        return self._append(
            f'<figure class="table">{_caption("Table", self._tables, caption)}<div class="scroll"><table>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div></figure>"
        )

    def matrix(
        self, corner: str, rows: Sequence[str], columns: Sequence[str], counts: Sequence[Sequence[int]], *, caption: str
    ) -> Report:
        """A table of counts, shaded by their share of the row; another hue where row and column have the same name.

        corner: what rows and columns are. Zeros are left blank.
        """
        head = "".join(f'<th scope="col"><span>{escape(name)}</span></th>' for name in columns)
        body = ""
        for name, row in zip(rows, counts, strict=True):
            total = max(sum(row), 1)
            cells = (_shaded(n, n / total, name == column) for column, n in zip(columns, row, strict=True))
            body += f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>\n'
        self._tables += 1
        return self._append(
            f'<figure class="table matrix">{_caption("Table", self._tables, caption)}<div class="scroll"><table>\n'
            f'<thead><tr><th scope="col">{escape(corner)}</th>{head}</tr></thead>\n<tbody>\n{body}</tbody>'
            "</table></div></figure>"
        )

    def figure(self, figure: Figure, caption: str, *, alt: str | None = None) -> Report:
        """`alt` says what the picture shows to those who cannot see it; without it the caption does."""
        self._figures += 1
        drawing = figure_html(figure, alt or caption, f"figure{self._figures}")
        return self._append(
            f'<figure class="plot"><div class="scroll">{drawing}</div>'
            f"{_caption('Figure', self._figures, caption)}</figure>"
        )

    def video(self, path: Path, caption: str) -> Report:
        """A short video file, held inside the page like everything else: it plays wherever the page is sent."""
        self._figures += 1
        kind = _VIDEO_TYPES.get(path.suffix.lower(), "video/mp4")
        try:
            data = base64.b64encode(path.read_bytes()).decode()
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
        return self._append(
            f'<figure class="plot"><video controls preload="metadata" src="data:{kind};base64,{data}"></video>'
            f"{_caption('Figure', self._figures, caption)}</figure>"
        )

    def links(self, targets: Sequence[tuple[str, str]]) -> Report:
        """(text, relative path) of files beside the report."""
        items = "".join(f'<li><a href="{escape(path)}">{escape(text)}</a></li>' for text, path in targets)
        return self._append(f"<ul>{items}</ul>")

    def html(self) -> str:
        return page(self.title, self.subtitle, self._sections, "".join(f"{part}\n" for part in self._parts))

    def write(self, path: str | Path) -> Path:
        """Write the file at once or not at all: a reader never sees half a report."""
        with replacing(path) as file:
            file.write(self.html())
        return Path(path)

    def _append(self, html: str) -> Report:
        self._parts.append(html)
        return self


def _printed(cell: Cell, digits: int) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return _MISSING
    if isinstance(cell, str):
        return cell
    return str(cell) if isinstance(cell, int) else f"{float(cell):.{digits}f}"


def _value(text: str) -> float | None:
    match = _NUMBER.match(text.strip().replace(_MINUS, "-"))
    return float(match[1].replace(",", "")) if match else None


def _column(texts: list[str], best: Best, first: bool) -> tuple[bool, list[str]]:
    """Whether it is a column of numbers, and its cells as HTML. A `first` column of words names the rows."""
    values = [_value(text) for text in texts]
    known = [value for value in values if value is not None]
    numeric = bool(known) and all(v is not None or t in (_MISSING, "") for v, t in zip(values, texts, strict=True))
    target = None if best is None or not numeric or len(known) < 2 else max(known) if best == "max" else min(known)
    cells = []
    for text, value in zip(texts, values, strict=True):
        content = escape(text)
        if target is not None and value == target:
            content = f"<b>{content}</b>"
        cells.append(
            f'<th scope="row">{content}</th>' if first and not numeric else f"<td{_class(numeric)}>{content}</td>"
        )
    return numeric, cells


def _inline(text: str) -> str:
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"(?<=\d) (?=%|s\b)", "&nbsp;", coded)  # a number and its unit stay on one line


def _shaded(count: int, share: float, right: bool) -> str:
    if not count:
        return "<td></td>"
    return f'<td class="{"right" if right else "wrong"}" style="--share:{0.08 + 0.62 * share:.2f}">{count}</td>'


def _class(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _caption(kind: str, number: int, caption: str) -> str:
    return f"<figcaption><b>{kind} {number}.</b> {escape(caption)}</figcaption>"
