"""From the cells of a table, be it text or a spreadsheet, to recordings and their actions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from temporalzoom.errors import InputError
from temporalzoom.formats.interface import (
    Imported,
    ImportOptions,
    checked_instance,
    durations_by_name,
    has_media_suffix,
    name_of_file,
    name_of_media,
    positive,
    short,
)
from temporalzoom.formats.table_columns import TIMES, Column, Table, find_columns
from temporalzoom.formats.table_times import TimeReading, ask_for_unit, time_reading

COLUMNS = ("video", "start", "end", "label", "score")  # that are written
_WHOLE = re.compile(r"\d+(\.0*)?")


@dataclass
class Row:
    """One row with its times in seconds; `span` is None where the row only names a recording."""

    where: str
    recording: str
    span: tuple[float, float] | None
    label: str
    subset: str
    duration: float | None
    subject: str


@dataclass
class Gathered:
    imported: Imported
    subjects: set[str] = field(default_factory=set)


def recordings_of_table(path: Path, table: Table, options: ImportOptions, notes: list[str]) -> list[Imported]:
    """Recordings in the order of their first rows. A row with a name only is a recording without actions."""
    columns = find_columns(table, options)
    if not table.rows:
        raise InputError(f"{table.where}: no rows below the header")
    table = _with_whole_rows(table, columns, options)
    reading = time_reading(table, columns, options)
    if "recording" not in columns:
        name = name_of_file(path)
        notes.append(f"{table.where}: no column names the recording; all rows are of recording {name!r}, as the file")
    rows = [_row(path, table, place, cells, columns, reading) for place, cells in table.rows]
    if "end" in columns and "duration" in columns and _holds_lengths(rows):
        rows = [replace(row, duration=None) for row in rows]
    _include_last_frames(table, columns, reading, rows, notes)
    gathered = _gathered(rows)
    _check_units(table, columns, options, rows, gathered)
    _check_durations(gathered)
    differing = [name for name, found in gathered.items() if len(found.subjects) > 1]
    if differing:
        notes.append(
            f"{table.where}: {columns['subject'].name!r} differs within {len(differing)} recordings "
            f"({', '.join(differing[:3])}{', ...' * (len(differing) > 3)}), and is not kept for these"
        )
    for found in gathered.values():
        if len(found.subjects) == 1:
            found.imported.extra["subject"] = next(iter(found.subjects))
    return [found.imported for found in gathered.values()]


def _with_whole_rows(table: Table, columns: Mapping[str, Column], options: ImportOptions) -> Table:
    """A row with more cells than the header: decimal commas between commas tear numbers apart."""
    width = len(table.header)
    times = sorted(columns[role].index for role in TIMES if role in columns)
    rows = []
    for place, cells in table.rows:
        full = len(cells)
        while full > width and not cells[full - 1].strip():
            full -= 1
        if full > width:
            joined = _joined(cells[:full], width, times)
            if joined is None or options.decimal != "comma":
                torn = {role: cells[column.index].strip() for role, column in columns.items()}
                shown = ", ".join(f"{role} {text!r}" for role, text in torn.items())
                message = (
                    f"{table.where}: {place}: {full} cells below {width} columns: {shown} and {full - width} cells over"
                )
                if joined is not None:
                    whole = ", ".join(f"{role} {joined[column.index]!r}" for role, column in columns.items())
                    message += f"; or, with decimal commas (--decimal comma), {whole}?"
                raise InputError(message)
            cells = joined
        rows.append((place, cells))
    return replace(table, rows=tuple(rows))


def _joined(cells: Sequence[str], width: int, times: Sequence[int]) -> list[str] | None:
    """The cells with each time made of two, if that is what is too much; None if it is not."""
    if len(cells) - width != len(times):
        return None
    rest, joined = list(cells), []
    for index in range(width):
        cell = rest.pop(0)
        if index in times:
            more = rest.pop(0)
            if not (cell.strip().isdigit() and more.strip().isdigit()):
                return None
            cell = f"{cell.strip()},{more.strip()}"
        joined.append(cell)
    return joined


def _row(
    path: Path, table: Table, place: str, cells: Sequence[str], columns: Mapping[str, Column], reading: TimeReading
) -> Row:
    where = f"{table.where}: {place}"
    texts = {role: cells[column.index].strip() for role, column in columns.items()}
    name = _name(texts["recording"], where) if "recording" in columns else name_of_file(path)
    known = "duration" in columns and texts["duration"]
    duration = reading.seconds(texts["duration"], columns["duration"], name, f"{where}: duration") if known else None
    if duration is not None:
        positive(duration, where)
    span = None
    last = "end" if "end" in columns else "length"
    if texts["start"] or texts[last] or texts["label"]:
        word = "end" if last == "end" else "duration"
        start = reading.seconds(texts["start"], columns["start"], name, f"{where}: start")
        end = reading.seconds(texts[last], columns[last], name, f"{where}: {word}")
        span = (start, end if last == "end" else start + end)
    return Row(where, name, span, texts["label"], texts.get("subset", ""), duration, texts.get("subject", ""))


def _name(text: str, where: str) -> str:
    if not text:
        raise InputError(f"{where}: the name of the recording is empty")
    if not has_media_suffix(text):
        return text
    if re.match(r"[/\\~]|[A-Za-z]:[/\\]|\w+://", text):
        return name_of_media(text)
    return text[: text.rindex(".")]  # the features of match7.mp4 are those of match7


def _holds_lengths(rows: Sequence[Row]) -> bool:
    """Whether the column `duration` has the lengths of actions, as many tables have beside start and end."""
    both = [(row.duration, row.span[1] - row.span[0]) for row in rows if row.duration is not None and row.span]
    return bool(both) and all(abs(duration - length) <= 0.002 + 1e-6 * length for duration, length in both)


def _include_last_frames(
    table: Table, columns: Mapping[str, Column], reading: TimeReading, rows: Sequence[Row], notes: list[str]
) -> None:
    """End frames are the first after the action, unless an action of one frame shows that the last one is meant."""
    if "end" not in columns or (reading.unit or columns["end"].unit) != "frames" or reading.fps is None:
        return
    if any(row.span and row.span[0] == row.span[1] for row in rows):
        for row in rows:
            row.span = (row.span[0], row.span[1] + 1 / reading.fps) if row.span else None
        notes.append(f"{table.where}: end frames belong to the action, as those of one frame show")
    else:
        notes.append(f"{table.where}: end frames are taken for the first frame after the action")


def _gathered(rows: Sequence[Row]) -> dict[str, Gathered]:
    found: dict[str, Gathered] = {}
    for row in rows:
        gathered = found.setdefault(row.recording, Gathered(Imported(row.recording, row.where, [])))
        recording = gathered.imported
        for what, old, new in (
            ("subset", recording.subset, row.subset or None),
            ("duration", recording.duration, row.duration),
        ):
            if old is not None and new is not None and old != new:
                raise InputError(
                    f"{row.where}: {what} of recording {row.recording!r} is {new!r}, but an earlier row says {old!r}"
                )
        recording.subset = recording.subset or row.subset or None
        recording.duration = recording.duration or row.duration
        if row.subject:
            gathered.subjects.add(row.subject)
        if row.span is not None:
            recording.instances.append(checked_instance(*row.span, row.label, row.where))
    return found


def _check_units(
    table: Table,
    columns: Mapping[str, Column],
    options: ImportOptions,
    rows: Sequence[Row],
    gathered: Mapping[str, Gathered],
) -> None:
    """Asks for the unit where nothing says it and seconds make no sense."""
    last = columns.get("end") or columns["length"]
    if options.time_unit or columns["start"].unit or last.unit or table.header == COLUMNS:  # our own are seconds
        return
    texts = [(cells[columns["start"].index].strip(), cells[last.index].strip()) for _, cells in table.rows]
    if not all(_WHOLE.fullmatch(text) for pair in texts for text in pair if text):
        return
    spans = [(row.span, row) for row in rows if row.span is not None]
    if not spans:
        return
    general, by_name = durations_by_name(options.durations)
    (_, latest), row = max(spans, key=lambda entry: entry[0][1])
    duration = gathered[row.recording].imported.duration or by_name.get(row.recording, general)
    (start, end), shown = spans[0]
    place = shown.where.removeprefix(f"{table.where}: ")
    typical = median(b - a for (a, b), _ in spans)
    ask_for_unit(table, (place, shown.label, str(start), str(end)), latest, typical, duration, options.fps)


def _check_durations(gathered: Mapping[str, Gathered]) -> None:
    for found in gathered.values():
        recording = found.imported
        latest = max((instance.start for instance in recording.instances), default=0.0)
        if recording.duration is not None and recording.duration <= latest:
            # Many tables have the length of the action there.
            raise InputError(
                f"{recording.where}: duration {recording.duration:g} of recording {short(recording.name)}, where an "
                f"action starts at {latest:g}; the column holds the length of the whole recording, rename it if it "
                "does not"
            )
