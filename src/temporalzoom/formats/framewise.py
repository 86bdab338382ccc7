"""Tables with one row per frame and a column of 0 and 1 per behaviour, as DeepEthogram and SimBA have them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import ExportOptions, Instance, checked_instance, read_text
from temporalzoom.formats.table_columns import has_times
from temporalzoom.segments import Segments

INDEX = ("", "unnamed: 0", "frame", "frames", "index", "frame_number", "scorer")  # names of a column that counts rows
PEEK = 200  # rows that tell what a file is


@dataclass(frozen=True)
class FrameTable:
    """names: of the columns without that which counts the rows. values (T, C): NaN where a cell is empty."""

    path: Path
    names: tuple[str, ...]
    values: np.ndarray

    def column(self, name: str) -> np.ndarray:
        return self.values[:, self.names.index(name)]

    def binary(self) -> list[str]:
        """Columns with no other values than 0 and 1."""
        return [name for index, name in enumerate(self.names) if np.isin(self.values[:, index], (0, 1)).all()]


def is_index(name: str) -> bool:
    return name.strip().casefold() in INDEX


def read_frames(path: Path) -> FrameTable:
    text = read_text(path, "a table of frames")
    lines = csv.reader(io.StringIO(text, newline=""))
    header = next(lines, [])
    first = 1 if header and is_index(header[0]) else 0
    names = tuple(name.strip() for name in header[first:])
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: two columns are called {twice!r}")
    body = text.split("\n", 1)[1] if "\n" in text else ""
    if not body.strip():
        raise InputError(f"{path}: no frames below the header")
    try:  # most files are numbers only, and large
        values = np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2, dtype=float, comments=None)
    except ValueError:
        values = np.array([*_numbers(path, lines, len(header))], float).reshape(-1, len(header))
    if not len(values):
        raise InputError(f"{path}: no frames below the header")
    if values.shape[1] != len(header):
        raise InputError(f"{path}: {values.shape[1]} cells per row below {len(header)} columns")
    return FrameTable(path, names, values[:, first:])


def _numbers(path: Path, lines: Iterator[list[str]], width: int) -> Iterator[list[float]]:
    """Row by row, with an error that names the cell; an empty one is NaN."""
    for number, cells in enumerate(lines, 2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != width:
            raise InputError(f"{path}: line {number}: {len(cells)} cells below {width} columns")
        row = []
        for cell in cells:
            try:
                row.append(float(cell) if cell.strip() else float("nan"))
            except ValueError:
                raise InputError(f"{path}: line {number}: not a number: {cell!r}") from None
        yield row


def peek(path: Path) -> tuple[list[str], list[list[str]]] | None:
    """Header and first rows of a file whose cells are all numbers; None of other files and of tables of actions."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in islice(csv.reader(file), PEEK) if row]
        header, *below = rows
        numbers = all(len(row) == len(header) for row in below) and all(_is_number(c) for row in below for c in row)
    except (OSError, UnicodeDecodeError, csv.Error, ValueError):
        return None
    return (header, below) if below and numbers and not has_times(header) else None


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def needed_fps(path: Path, fps: float | None) -> float:
    if fps is None:
        raise InputError(f"{path}: it has one row per frame; say how many there are per second with --fps")
    return fps


def instances_of_mask(mask: np.ndarray, label: str, fps: float, where: str) -> list[Instance]:
    """mask (T,), boolean: one instance per run of True; frame n shows the seconds from n / fps to (n + 1) / fps."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return [checked_instance(a / fps, b / fps, label, where) for a, b in edges.reshape(-1, 2).tolist()]


# Writing


def frame_matrix(segments: Segments, labels: Sequence[str], fps: float, duration: float | None) -> np.ndarray:
    """0 and 1, (T, C) with the labels as columns. A segment has at least one frame; T is what the duration gives, or
    what the last segment needs."""
    spans = [(max(0, round(start * fps)), round(end * fps), label) for start, end, label, _ in segments]
    frames = max([0 if duration is None else round(duration * fps), *(max(a + 1, b) for a, b, _ in spans)])
    matrix = np.zeros((frames, len(labels)), np.int8)
    for first, last, label in spans:
        matrix[first : max(first + 1, last), labels.index(label)] = 1
    return matrix


def write_frames(path: Path, results: Mapping[str, Segments], options: ExportOptions, background: bool) -> None:
    """One recording. background: a first column that is 1 where no behaviour is."""
    [(recording, segments)] = results.items()
    if options.fps is None:
        raise InputError(f"{path}: it has one row per frame; writing it needs fps, the frames per second")
    labels = options.labels or tuple(sorted(set(segments.labels.tolist())))
    bad = next((label for label in labels if is_index(label) or (background and label == "background")), None)
    if bad is not None:
        raise InputError(f"{path}: {bad!r} cannot be the name of a behaviour in this format")
    matrix = frame_matrix(segments, labels, options.fps, options.durations.get(recording))
    columns = [*(["background"] if background else []), *labels]
    if background:
        matrix = np.concatenate([1 - matrix.max(axis=1, keepdims=True, initial=0), matrix], axis=1)
    with replacing(path) as file:
        writer = csv.writer(file)
        writer.writerow(["", *columns])
        writer.writerows([number, *row] for number, row in enumerate(matrix.tolist()))
