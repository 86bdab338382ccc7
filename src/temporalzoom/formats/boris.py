"""BORIS (.boris.tsv, .boris.csv): events that observers of animals and people coded, exported as a table.

Two exports are read, of old and new versions alike: tabular events (a row for each START and STOP) and aggregated
events (a row with start and stop). Written are aggregated events; times are seconds and come back exactly, labels too.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.boris_media import MISSING, Event, Source, recordings_of_events
from temporalzoom.formats.interface import (
    ExportOptions,
    Imported,
    ImportOptions,
    Instance,
    as_meant,
    checked_instance,
    no_formula,
    note_point_events,
    point_event,
    read_bytes,
    read_text,
    short,
)
from temporalzoom.formats.spreadsheet import chosen_rows, filled_sheets
from temporalzoom.segments import Segments

WRITTEN = (
    *("Observation id", "Observation date", "Description", "Media file", "Total length", "FPS", "Subject", "Behavior"),
    *("Behavioral category", "Modifiers", "Behavior type", "Start (s)", "Stop (s)", "Duration (s)"),
    *("Comment start", "Comment stop"),
)
AGGREGATED = ("STATE", "POINT")  # kinds of events
TABULAR = ("START", "STOP", "POINT")
OBSERVATION = ("observation id", "source", "media file", "media duration", "total length", "fps", "time offset")
NOBODY = "No focal subject"


class Row(NamedTuple):
    """One row of an export. stop: the start again where the row has one time only."""

    where: str
    kind: str
    behaviour: str
    subject: str
    modifiers: tuple[str, ...]
    start: float
    stop: float
    source: Source


# Writing


def write_boris(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """Aggregated events of all recordings, each an observation; one without a medium is a live observation, as BORIS
    calls it, so that its name is kept. The score is in the comment of the start."""
    with replacing(path) as file:
        writer = csv.writer(file, delimiter="," if path.suffix.lower() == ".csv" else "\t")
        writer.writerow(WRITTEN)
        for recording, segments in results.items():
            media = str(options.media.get(recording, "LIVE"))
            length, rate = options.durations.get(recording, "NA"), options.fps or "NA"
            for start, end, label, score in segments:
                named, called = no_formula(recording), no_formula(label)
                first = (named, "", "", media, length, rate, NOBODY, called, "", "", AGGREGATED[0])
                writer.writerow((*first, start, end, end - start, f"score {score:.4g}", ""))


# Reading


def is_boris(path: Path) -> bool:
    """By the names of its columns or, of aggregated events without a header line, by the form of its first row."""
    if path.suffix.lower() == ".xlsx":
        return any(_fits(rows) for rows in filled_sheets(path).values())
    try:
        return _fits([*_lines(read_bytes(path, may_be_empty=True)[:65536].decode("utf-8-sig", errors="replace"))])
    except csv.Error:
        return False


def _fits(lines: Sequence[tuple[str, list[str]]]) -> bool:
    return any(_is_header(cells) for _, cells in lines) or bool(lines and _kind_at(lines[0][1]) is not None)


def read_boris(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """One recording per media file, or per live observation. State events are instances. Point events get the length
    `options.point_events`; without it they are left out, and `notes` names them."""
    return [recording for path in paths for recording in _read(path, options, notes)]


def _read(path: Path, options: ImportOptions, notes: list[str]) -> list[Imported]:
    where = str(path)
    if path.suffix.lower() == ".xlsx":
        where, lines = chosen_rows(path, options.sheet)
    else:
        try:
            lines = [*_lines(read_text(path, "a BORIS export"))]
        except csv.Error as error:
            raise InputError(f"{path}: not rows of a table: {error}") from error
    header = next((number for number, (_, cells) in enumerate(lines) if _is_header(cells)), None)
    if header is None:
        rows = [_row_without_header(cells, f"{where}: {place}") for place, cells in lines]
    else:
        above = {cells[0].strip(): cells[1].strip() for _, cells in lines[:header] if len(cells) > 1}
        rows = [*_rows(path.stem, where, lines[header][1], lines[header + 1 :], above, notes)]
    if not rows:
        raise InputError(f"{where}: no events below the header")
    left_out: Counter[str] = Counter()
    events: list[Event] = []
    for row, instance in _instances(rows, options.point_events):
        if instance is None:
            left_out[row.behaviour] += 1
        subject = "" if row.subject == NOBODY else row.subject
        events.append(Event(row.where, row.source, row.start, instance, subject))
    note_point_events(where, left_out, notes)
    return recordings_of_events(events, options.durations)


def _instances(rows: Sequence[Row], length: float | None) -> Iterator[tuple[Row, Instance | None]]:
    """Each event once, with its instance; None for a point event that has no length."""
    started: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = (row.source.observation, row.subject, row.behaviour, row.modifiers)
        if row.kind == "STATE":
            yield row, checked_instance(row.start, row.stop, row.behaviour, row.where)
        elif row.kind == "POINT":
            yield row, None if length is None else point_event(row.start, row.behaviour, length, row.where)
        elif row.kind == "START":
            if key in started:
                raise InputError(
                    f"{started[key].where}: START of {row.behaviour!r} without a STOP before the next START"
                )
            started[key] = row
        else:
            if key not in started:
                raise InputError(f"{row.where}: STOP of {row.behaviour!r} without a START")
            first = started.pop(key)
            yield first, checked_instance(first.start, row.start, row.behaviour, row.where)
    for row in started.values():
        raise InputError(f"{row.where}: START of {row.behaviour!r} without a STOP")


def _lines(text: str) -> Iterator[tuple[str, list[str]]]:
    """Lines that are not empty, with their places, `line 3`; tabs or commas, whichever there are more of."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max("\t,;", key=text.count))
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield f"line {reader.line_num}", [as_meant(cell) for cell in cells]


def _plain(name: str) -> str:
    """`FPS (frame/s)` and `FPS` are the same column."""
    return re.sub(r"\(.*?\)", "", name).strip().casefold()


def _is_header(cells: Sequence[str]) -> bool:
    names = {_plain(cell) for cell in cells}
    return "behavior" in names and (
        {"start", "stop", "behavior type"} <= names or ("time" in names and bool(names & {"status", "behavior type"}))
    )


def _rows(
    name: str,
    file: str,
    header: Sequence[str],
    lines: Sequence[tuple[str, list[str]]],
    above: Mapping[str, str],
    notes: list[str],
) -> Iterator[Row]:
    """name: of an observation that says none. above: names and values of the block above the header, which old exports
    of tabular events have."""
    names = [_plain(name) for name in header]
    aggregated = {"start", "stop"} <= set(names)
    kind_column = "status" if "status" in names else "behavior type"
    modifiers = [index for index, name in enumerate(names) if name.startswith("modifier")]
    offsets = set()
    for place, given in lines:
        where = f"{file}: {place}"
        cells = [cell.strip() for cell in given] + [""] * (len(names) - len(given))
        # Variables of the observation, which users name, stand between its own columns and those of the event.
        row = dict(zip(names, cells, strict=False))
        row |= {name: cells[names.index(name)] for name in OBSERVATION if name in names}
        kind = row[kind_column].upper()
        if kind not in (AGGREGATED if aggregated else TABULAR):
            valid = ", ".join(AGGREGATED if aggregated else TABULAR)
            raise InputError(f"{where}: {kind_column!r} must be one of {valid}, got {short(row[kind_column])}")
        media = row.get("media file name") or row.get("media file") or row.get("media file path") or ""
        source = Source.of_cells(
            row.get("observation id") or above.get("Observation id", "") or name,
            media,
            row.get("source", ""),
            row.get("media duration", ""),
            _number(row.get("total length", ""), f"{where}: total length"),
            row.get("fps", ""),
        )
        offsets.add(row.get("time offset") or above.get("Time offset (s)", ""))
        times = [row["start"], row["stop"]] if aggregated else [row["time"]]
        start, *rest = (_time(text, f"{where}: {row['behavior']!r}") for text in times)
        found = tuple(cells[index] for index in modifiers)
        yield Row(where, kind, row["behavior"], row.get("subject", ""), found, start, (rest or [start])[0], source)
    for offset in sorted(offsets):
        if _number(offset, f"{file}: time offset"):
            notes.append(f"{file}: the observation has a time offset of {offset} s; times are taken as they stand")


def _kind_at(cells: Sequence[str]) -> int | None:
    """Where a row of aggregated events without a header says STATE or POINT."""
    for index in range(4, len(cells) - 2):
        if cells[index].strip() in AGGREGATED and all(_is_number(cell) for cell in cells[index + 1 : index + 3]):
            return index
    return None


def _row_without_header(cells: Sequence[str], where: str) -> Row:
    """Observation, date, perhaps a description, medium, length, fps, any number of variables; then subject, behaviour,
    category, modifiers, type, start, stop."""
    kind = _kind_at(cells)
    media = next((i for i in (2, 3) if i + 2 < len(cells) and _is_number(cells[i + 1])), None)
    if kind is None or media is None:
        raise InputError(f"{where}: not a row of BORIS's aggregated events, got {short(list(cells))}")
    observation, _, *_ = cells
    source = Source.of_cells(
        observation.strip(), cells[media].strip(), "", "", _number(cells[media + 1], where), cells[media + 2].strip()
    )
    start, stop = (_time(cell.strip(), where) for cell in cells[kind + 1 : kind + 3])
    subject, behaviour, _, modifiers = (cell.strip() for cell in cells[kind - 4 : kind])
    return Row(where, cells[kind].strip(), behaviour, subject, (modifiers,), start, stop, source)


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < 1e300
    except ValueError:
        return False


def _number(text: str, where: str) -> float | None:
    if text.strip() in MISSING:
        return None
    return _time(text, where)


def _time(text: str, where: str) -> float:
    if not _is_number(text):
        hint = "; observations of pictures have no times" if text in MISSING else ""
        raise InputError(f"{where}: not a number of seconds, got {text!r}{hint}")
    return float(text)
