"""Spreadsheets (.xlsx): the same columns as tables, all recordings in one sheet.

Times are seconds to 16 digits. Labels come back as they were, except for what the format cannot hold: such
characters become U+FFFD, and every kind of line end becomes a line feed.
"""

from __future__ import annotations

import datetime
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import ExportOptions, Imported, ImportOptions, no_formula, read_bytes
from temporalzoom.formats.table_columns import Table
from temporalzoom.formats.tables import COLUMNS, recordings_of_table
from temporalzoom.segments import Segments

_UNWRITABLE = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _openpyxl(path: Path) -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(f'{path}: spreadsheets need openpyxl: pip install "temporalzoom[spreadsheet]"') from error
    return openpyxl


# Writing


def write_spreadsheet(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """One row per segment, times in seconds. A label that begins with `=` is text, no formula."""
    book = _openpyxl(path).Workbook()
    sheet = book.active
    sheet.title = "segments"
    sheet.append(COLUMNS)
    for video, segments in results.items():
        for start, end, label, score in segments:
            sheet.append((None, start, end, None, score))
            for column, text in ((1, video), (4, label)):
                cell = sheet.cell(sheet.max_row, column)
                cell.value = writable(text)
                cell.data_type = "s"
                cell.quotePrefix = cell.value != no_formula(cell.value)  # stays text when somebody edits it
    sheet.freeze_panes = "A2"
    content = io.BytesIO()
    book.save(content)
    with replacing(path, "wb") as file:
        file.write(content.getvalue())


def writable(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", re.sub("\r\n?", "\n", text))


# Reading


def read_spreadsheets(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """The only sheet with rows, or the one that `options.sheet` names."""
    return [r for path in paths for r in recordings_of_table(path, _table(path, options.sheet), options, notes)]


def _table(path: Path, sheet: str | None) -> Table:
    where, [(_, header), *below] = chosen_rows(path, sheet)
    return Table(where, tuple(header), tuple(below))


def chosen_rows(path: Path, sheet: str | None) -> tuple[str, list[tuple[str, list[str]]]]:
    """What opens messages, and the rows of the only sheet that has some, or of that with the name `sheet`."""
    filled = filled_sheets(path)
    if not filled:
        raise InputError(f"{path}: the spreadsheet is empty")
    if sheet is not None and sheet not in filled:
        raise InputError(f"{path}: no sheet {sheet!r} with cells (--sheet); there are {', '.join(filled)}")
    if sheet is None and len(filled) > 1:
        raise InputError(f"{path}: {len(filled)} sheets have cells, {', '.join(filled)}; choose one with --sheet NAME")
    title = next(iter(filled)) if sheet is None else sheet
    return (str(path) if len(filled) == 1 else f"{path}: sheet {title!r}"), filled[title]


def filled_sheets(path: Path) -> dict[str, list[tuple[str, list[str]]]]:
    """By their names, the sheets that have cells: rows that are not empty, each with its place, `row 3`, as text."""
    openpyxl = _openpyxl(path)
    content = read_bytes(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and such
            book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
    except Exception as error:  # of its own, of zip, zlib and XML, whatever its parser stumbles over
        raise InputError(f"{path}: not a spreadsheet (.xlsx): {' '.join(str(error).split())}") from error
    sheets = {}
    for sheet in book.worksheets:
        rows = [(f"row {number}", [_text(cell) for cell in row]) for number, row in enumerate(sheet.values, 1)]
        sheets[sheet.title] = [row for row in rows if any(row[1])]
    return {title: rows for title, rows in sheets.items() if rows}


def _text(value: Any) -> str:
    """A cell as a table of text would have it: a whole number without decimals, a time of day as a clock."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime.timedelta):
        return repr(value.total_seconds())
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)  # a time of day, `00:01:02.500000`, included
