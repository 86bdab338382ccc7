"""Tables of text (.csv, .tsv) and Parquet as named columns, numbers or text; what they mean is decided elsewhere."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError

MISSING = frozenset(["", "nan", "na", "n/a", "null", "none", "nil", "-", "?"])  # of a cell that should hold a number
BOOLEANS = {"true": 1.0, "false": 0.0}
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
CHUNK = 20_000  # rows that are held as text at a time
MOSTLY = 0.9  # a column of which this share is numbers should be all numbers


@dataclass(frozen=True, eq=False)
class Column:
    """values: (N,) float64 with NaN, or text (objects) with "" where empty; is_time: seconds, as the file declares."""

    name: str
    values: NDArray[Any]
    is_time: bool = False

    @property
    def is_text(self) -> bool:
        return self.values.dtype.kind == "O"


@dataclass(frozen=True)
class Table:
    """header: whether the names are those of the file; else they are the columns' numbers."""

    columns: tuple[Column, ...]
    header: bool

    def __len__(self) -> int:
        return len(self.columns[0].values)


def read_lines(path: Path, notes: list[str]) -> tuple[list[str], str]:
    """The lines of a text file without comments and empty ones, and the last comment before the first of them."""
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    else:
        encoding = "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
        notes.append("Not UTF-8: read as Windows-1252.")
    if "\0" in text[:10_000]:
        raise InputError(f"{path}: not a table of text")
    comment = ""
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.lstrip().startswith("#"):
            comment = line.lstrip().lstrip("#").strip() if not lines else comment
        elif line.strip(" ,;\t"):
            lines.append(line)
    if not lines:
        raise InputError(f"{path}: an empty table")
    return lines, comment


def separator(lines: Sequence[str], path: Path) -> str:
    """The one that splits the first lines into most columns, all of them into equally many."""
    first = lines[:20]

    def columns(mark: str) -> tuple[bool, int]:
        counts = [len(cells) for cells in split_rows(first, mark, path)]
        return len(set(counts)) == 1, min(counts)

    # With semicolons or tabs, commas are decimal ones, and just as regular.
    return max(";\t,", key=lambda mark: (columns(mark)[1] > 1, columns(mark)[0], mark != ",", columns(mark)[1]))


def text_table(lines: Sequence[str], comment: str, path: Path) -> Table:
    """The lines of a file as a table. The header may be missing, or stand in the comment before the first row."""
    mark = separator(lines, path)
    rows = split_rows(lines, mark, path)
    first, second = next(rows), next(rows, None)
    commas = mark != ","
    if second is not None and _is_header(first, second, commas):
        names, given = first, True
        rows = itertools.chain([second], rows)
    else:
        names = [cell.strip() for cell in next(split_rows([comment], mark, path), [])] if comment else []
        given = len(names) == len(first) and not any(_is_number(name, commas) for name in names)
        names = names if given else [str(place) for place in range(len(first))]
        rows = itertools.chain([first], [] if second is None else [second], rows)
    names = [name.strip() for name in names]
    _check_names(names, path)
    return Table(tuple(_columns(names, rows, commas, path)), given)


def read_parquet(path: Path, notes: list[str]) -> Table:
    """The columns of a Parquet file; those that are neither numbers, times nor text are left out, and noted."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(f'{path}: reading it needs pyarrow: pip install "temporalzoom[parquet]"') from error
    try:
        stored = pyarrow.parquet.read_table(path)
        columns, others = _arrow_columns(stored)
    except Exception as error:  # a damaged file fails in a dozen ways, some only where a column is looked at
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path}: cannot be read, damaged or not a Parquet file: {reason}") from error
    if others:
        notes.append(f"Left out, neither numbers nor text: {', '.join(others)}.")
    if not columns or not len(stored):
        raise InputError(f"{path}: an empty table")
    _check_names([column.name for column in columns], path)
    return Table(tuple(columns), True)


def _arrow_columns(stored: Any) -> tuple[list[Column], list[str]]:
    """The columns of a table of Arrow, and the names of those that are neither numbers, times nor text."""
    import pyarrow

    columns, others = [], []
    for name, data in zip(stored.column_names, stored.columns, strict=True):
        kind = data.type.value_type if pyarrow.types.is_dictionary(data.type) else data.type
        types = pyarrow.types
        if types.is_timestamp(kind) or types.is_duration(kind):
            to = pyarrow.duration("ns") if types.is_duration(kind) else pyarrow.timestamp("ns", tz=kind.tz)
            columns.append(Column(name, _arrow_numbers(data.cast(to).cast(pyarrow.int64())) * 1e-9, is_time=True))
        elif types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind):
            columns.append(Column(name, _arrow_numbers(data)))
        elif types.is_string(kind) or types.is_large_string(kind):
            columns.append(Column(name, np.array(["" if v is None else v.strip() for v in data.to_pylist()], object)))
        else:
            others.append(name)
    return columns, others


def _arrow_numbers(data: Any) -> NDArray[np.float64]:
    import pyarrow

    return np.array(data.cast(pyarrow.float64(), safe=False).fill_null(float("nan")).to_numpy(), np.float64)


def split_rows(lines: Sequence[str], mark: str, path: Path) -> Iterator[list[str]]:
    """The cells of each line; what is no row of a table raises InputError."""
    reader = csv.reader(lines, delimiter=mark, skipinitialspace=True)
    try:
        yield from reader
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not a row of a table: {error}") from error


def _is_header(first: Sequence[str], second: Sequence[str], commas: bool) -> bool:
    """Names are no numbers; 0, 1, 2, ... may be (pandas and numpy number nameless columns), after an empty cell."""
    numbers = [_is_number(cell, commas) for cell in first]
    if not any(numbers):
        return True
    named = [cell.strip() for cell in first]
    if named[0] == "" and named[1:] == [str(place) for place in range(len(first) - 1)]:
        return True
    # Where the next row has a number and this one has text.
    return any(
        not n and cell.strip() and _is_number(s, commas) for n, cell, s in zip(numbers, first, second, strict=False)
    )


def _columns(names: Sequence[str], rows: Iterator[list[str]], commas: bool, path: Path) -> Iterator[Column]:
    width = len(names)
    parts: list[list[NDArray[Any]]] = [[] for _ in names]
    done = 0
    while chunk := list(itertools.islice(rows, CHUNK)):
        for number, cells in enumerate(chunk, done + 1):
            if len(cells) == width + 1 and not cells[-1].strip():
                del cells[-1]  # a separator at the end of each row
            if len(cells) != width:
                raise InputError(f"{path}: row {number} has {len(cells)} cells, the first one {width}")
        done += len(chunk)
        for place, column in enumerate(zip(*chunk, strict=True)):
            parts[place].append(_numbers_or_text(column, commas))
    for name, part in zip(names, parts, strict=True):
        yield Column(name, _joined(part, name, commas, path))


def _numbers_or_text(cells: Sequence[str], commas: bool) -> NDArray[Any]:
    """(n,) float64, or text where a cell is neither a number nor missing."""
    try:
        return np.array(cells, np.float64)  # nearly always, and fast
    except ValueError:
        pass
    stripped = [cell.strip() for cell in cells]
    try:
        return np.array([_number(cell, commas) for cell in stripped], np.float64)
    except ValueError:
        return np.array(stripped, object)


def _joined(parts: Sequence[NDArray[Any]], name: str, commas: bool, path: Path) -> NDArray[Any]:
    """One column of its chunks. Text, if one of them is; but a few words among numbers raise InputError."""
    if not any(part.dtype.kind == "O" for part in parts):
        return np.concatenate(parts)
    texts = np.concatenate([part if part.dtype.kind == "O" else _as_text(part) for part in parts])
    given = [(row, cell) for row, cell in enumerate(texts, 1) if cell.lower() not in MISSING]
    words = [(row, cell) for row, cell in given if not _is_number(cell, commas)]
    if len(words) < (1 - MOSTLY) * len(given):
        row, cell = words[0]
        raise InputError(f"{path}: column {name!r}, row {row}: {cell[:60]!r} is not a number")
    return texts


def _as_text(numbers: NDArray[np.float64]) -> NDArray[Any]:
    return np.array(["" if np.isnan(number) else f"{number:.15g}" for number in numbers.tolist()], object)


def _number(cell: str, commas: bool) -> float:
    if commas and DECIMAL_COMMA.fullmatch(cell):
        return float(cell.replace(",", "."))
    lower = cell.lower()
    if lower in MISSING:
        return float("nan")
    if lower in BOOLEANS:
        return BOOLEANS[lower]
    if "_" in cell:  # Python reads 1_000
        raise ValueError(cell)
    return float(cell)


def _is_number(cell: str, commas: bool) -> bool:
    try:
        return cell.strip().lower() not in MISSING and _number(cell.strip(), commas) is not None
    except ValueError:
        return False


def _check_names(names: Sequence[str], path: Path) -> None:
    twice = [name for name in dict.fromkeys(names) if name and names.count(name) > 1]
    if twice:
        raise InputError(f"{path}: two columns are called {twice[0]!r}")
