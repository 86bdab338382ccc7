"""CSV: one row per segment, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments

COLUMNS = ("video", "start", "end", "label", "score")


def write_csv(path: str | Path, results: Mapping[str, Segments]) -> None:
    """One row per segment, times in seconds. A video without segments leaves no row."""
    with replacing(path) as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for video, segments in results.items():
            writer.writerows((video, start, end, label, score) for start, end, label, score in segments)


def read_csv(path: str | Path) -> dict[str, Segments]:
    """The inverse of `write_csv`; further columns and any order of the columns are taken, `score` may be absent."""
    rows: dict[str, list[tuple[float, float, str, float]]] = {}
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            absent = [column for column in COLUMNS[:4] if column not in (reader.fieldnames or [])]
            if absent:
                raise InputError(f"{path}: no column {absent[0]!r}; expected are {','.join(COLUMNS)}")
            for row in reader:
                where = f"{path}: line {reader.line_num}"
                start, end = _number(row["start"], "start", where), _number(row["end"], "end", where)
                score = _number(row["score"], "score", where) if "score" in row else 1.0
                if not row["video"] or not row["label"]:
                    raise InputError(f"{where}: video and label must not be empty")
                rows.setdefault(row["video"], []).append((start, end, row["label"], score))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV file in UTF-8: {error}") from error
    return {video: Segments(*zip(*found, strict=True)) for video, found in rows.items()}


def _number(text: str | None, column: str, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {column} must be a number, got {text!r}")
    return value
