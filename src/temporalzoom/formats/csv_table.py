"""Tables (.csv, .tsv): one row per action, columns by name, all recordings in one file.

Times are seconds and come back exactly, labels too. A name or label that a spreadsheet would take for a formula is
written behind an apostrophe, which is taken away again on reading.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import ExportOptions, Imported, ImportOptions, as_meant, no_formula, read_text
from temporalzoom.formats.table_columns import Table
from temporalzoom.formats.tables import COLUMNS, recordings_of_table
from temporalzoom.segments import Segments


def write_table(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """One row per segment, times in seconds; tabs for `.tsv`, else commas. A video without segments leaves no row."""
    with replacing(path) as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        writer.writerow(COLUMNS)
        for video, segments in results.items():
            name = no_formula(video)
            writer.writerows((name, start, end, no_formula(label), score) for start, end, label, score in segments)


def read_tables(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """The header decides between commas, semicolons and tabs; see `recordings_of_table`."""
    return [r for path in paths for r in recordings_of_table(path, _table(path), options, notes)]


def _table(path: Path) -> Table:
    text = read_text(path, "a table")
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[str, list[str]]] = []
    header: list[str] | None = None
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = cells
            else:
                cells = [as_meant(cell) for cell in cells]
                rows.append((f"line {reader.line_num}", cells + [""] * (len(header) - len(cells))))
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not a row of a table: {error}") from error
    if header is None:
        raise InputError(f"{path}: no header with the names of the columns")
    return Table(str(path), tuple(header), tuple(rows))
