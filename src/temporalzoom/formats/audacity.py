"""Audacity's label tracks (.audacity.txt): start, end and label between tabs. One recording per file.

Times are seconds to the microsecond. Tabs and line ends in a label become spaces. The name of the recording is that of
the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import (
    ExportOptions,
    Imported,
    ImportOptions,
    checked_instance,
    name_of_file,
    note_point_events,
    point_event,
    read_text,
    short,
)
from temporalzoom.segments import Segments

FREQUENCIES = "\\"  # opens a line with the range of frequencies of the label above


def write_audacity(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """In order of the starts. Scores are left out: Audacity shows the text as it is."""
    [segments] = results.values()
    with replacing(path) as file:
        for start, end, label, _ in segments.sort("start"):
            file.write(f"{start:.6f}\t{max(start, end):.6f}\t{one_line(label)}\n")


def one_line(label: str) -> str:
    return re.sub(r"[\t\r\n]", " ", label).strip()


def read_audacity(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """An empty file is a recording without actions. Labels at a point in time are point events: they get the length
    `options.point_events` or are left out."""
    return [_read(path, options.point_events, notes) for path in paths]


def _read(path: Path, length: float | None, notes: list[str]) -> Imported:
    instances = []
    points: Counter[str] = Counter()
    for number, line in enumerate(re.split("\r\n|\r|\n", read_text(path, "a label track", may_be_empty=True)), 1):
        if not line.strip() or line.startswith(FREQUENCIES):
            continue
        where = f"{path}: line {number}"
        start, end, label = _fields(line, where)
        if start != end:
            instances.append(checked_instance(start, end, label, where))
        elif length is not None:
            instances.append(point_event(start, label, length, where))
        else:
            points[label.strip()] += 1
    note_point_events(path, points, notes)
    return Imported(name_of_file(path), str(path), instances)


def _fields(line: str, where: str) -> tuple[float, float, str]:
    try:
        start, end, label = line.split("\t", 2)
        first, last = (float(text.replace(",", ".")) for text in (start, end))  # some languages write commas
    except ValueError:
        first = last = float("nan")
    if not (abs(first) < 1e300 and abs(last) < 1e300):
        raise InputError(f"{where}: start, end and label between tabs make a label of Audacity, got {short(line)}")
    return first, last, label
