"""Tables (.csv, .tsv): one row per action, columns by name, all recordings in one file.

Times are seconds and come back exactly, labels too. A cell is written as it is: a spreadsheet may take a label that
begins with `=` for a formula.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import (
    ExportOptions,
    Imported,
    ImportOptions,
    checked_instance,
    positive,
    read_text,
    short,
)
from temporalzoom.segments import Segments

COLUMNS = ("video", "start", "end", "label", "score")  # that are written
# That are read: names that people give to a column; the first one is ours.
NAMES = {
    "video": ("video", "recording", "file", "filename", "name", "video_id", "media"),
    "start": ("start", "begin", "onset", "t1", "start_time", "start_seconds", "from"),
    "end": ("end", "stop", "offset", "t2", "end_time", "end_seconds", "to"),
    "label": ("label", "class", "action", "category", "behavior", "behaviour", "event"),
    "subset": ("subset", "split"),
    "duration": ("duration", "video_duration", "recording_duration"),
}
NEEDED = ("video", "start", "end", "label")
MEDIA = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".wav", ".mp3", ".csv", ".npy", ".npz", ".pt", ".h5")


def write_table(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """One row per segment, times in seconds; tabs for `.tsv`, else commas. A video without segments leaves no row."""
    with replacing(path) as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        writer.writerow(COLUMNS)
        for video, segments in results.items():
            writer.writerows((video, start, end, label, score) for start, end, label, score in segments)


def read_tables(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """Recordings in the order of their first rows. A row with a name only is a recording without actions.

    The header decides between commas, semicolons and tabs. Times are seconds or `hours:minutes:seconds`.
    """
    return [recording for path in paths for recording in _read(path, options.subset_column)]


def _read(path: Path, subset_column: str | None) -> list[Imported]:
    text = read_text(path, "a table")
    header = text.lstrip().splitlines()[0]
    delimiter = max(",;\t", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        columns = _columns(path, [name or "" for name in reader.fieldnames or []], subset_column)
        found: dict[str, Imported] = {}
        for row in reader:
            cells = {key: (row.get(column) or "").strip() for key, column in columns.items()}
            if any(cells.values()):
                _add_row(found, cells, f"{path}: line {reader.line_num}", comma_is_decimal=delimiter != ",")
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not a row of a table: {error}") from error
    if not found:
        raise InputError(f"{path}: no rows below the header")
    for recording in found.values():
        latest = max((instance.start for instance in recording.instances), default=0.0)
        if recording.duration is not None and recording.duration <= latest:
            # Many tables have the length of the action there.
            raise InputError(
                f"{recording.where}: duration {recording.duration:g} of recording {recording.name!r}, where an action "
                f"starts at {latest:g}; the column holds the length of the whole recording, rename it if it does not"
            )
    return list(found.values())


def _columns(path: Path, header: list[str], subset_column: str | None) -> dict[str, str]:
    """`{our name: the file's name}`. Upper and lower case, spaces and hyphens do not count."""
    plain: dict[str, str] = {}
    for name in header:
        plain.setdefault("_".join(name.strip().casefold().replace("-", " ").split()), name)
    columns = {ours: plain[n] for ours, names in NAMES.items() for n in names[::-1] if n in plain}
    for needed in NEEDED:
        if needed not in columns:
            known = ", ".join(NAMES[needed][1:])
            raise InputError(f"{path}: no column {needed!r} (or {known}); the header is {short(','.join(header))}")
    if subset_column is not None:
        if subset_column not in header:
            raise InputError(f"{path}: no column {subset_column!r}; the header is {short(','.join(header))}")
        columns["subset"] = subset_column
    return columns


def _add_row(found: dict[str, Imported], cells: Mapping[str, str], where: str, comma_is_decimal: bool) -> None:
    name = cells["video"]
    if not name:
        raise InputError(f"{where}: the name of the recording is empty")
    if name.lower().endswith(MEDIA):  # the features of match7.mp4 are those of match7
        name = name[: name.rindex(".")]
    recording = found.setdefault(name, Imported(name, where, []))
    subset = cells.get("subset") or None
    length = cells.get("duration") or None
    duration = None if length is None else positive(_seconds(length, f"{where}: duration", comma_is_decimal), where)
    for what, old, new in (("subset", recording.subset, subset), ("duration", recording.duration, duration)):
        if old is not None and new is not None and old != new:
            raise InputError(f"{where}: {what} of recording {name!r} is {new!r}, but an earlier row says {old!r}")
    recording.subset = recording.subset or subset
    recording.duration = recording.duration or duration
    if not (cells["start"] or cells["end"] or cells["label"]):
        return
    start, end = (_seconds(cells[key], f"{where}: {key}", comma_is_decimal) for key in ("start", "end"))
    recording.instances.append(checked_instance(start, end, cells["label"], where))


def _seconds(text: str, where: str, comma_is_decimal: bool) -> float:
    """`75.5` or `1:15.5`."""
    parts = (text.replace(",", ".") if comma_is_decimal else text).split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = [math.nan]
    clock = all(number >= 0 for number in numbers) and all(number < 60 for number in numbers[1:])
    if not all(abs(number) < 1e300 for number in numbers) or len(numbers) > 3 or (len(numbers) > 1 and not clock):
        raise InputError(f"{where} must be seconds or hours:minutes:seconds, got {text!r}")
    return sum(number * 60**power for power, number in enumerate(reversed(numbers)))
