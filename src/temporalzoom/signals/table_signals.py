"""From the columns of a table to a signal: which one is the clock, which the labels, and which are channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.segments import Labels, Segments
from temporalzoom.signals.clock import Stamped, on_regular_clock, stamped_rows, usual_step
from temporalzoom.signals.container import Floats, Signal, listed
from temporalzoom.signals.resampling import Seconds
from temporalzoom.signals.row_labels import label_column as find_label_column
from temporalzoom.signals.row_labels import label_note, label_runs, label_texts
from temporalzoom.signals.tables import Column, Table
from temporalzoom.signals.time_columns import (
    SCALES,
    TimeName,
    check_forward,
    column_seconds,
    counts_rows,
    is_time_text,
    looks_like_a_clock,
    time_name,
    time_unit,
)


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are. clock, frames (a counter of frames), labels: None where there is none."""

    clock: Column | None
    frames: Column | None
    labels: Column | None
    channels: tuple[Column, ...]


def table_signal(
    table: Table,
    path: Path,
    notes: Sequence[str] = (),
    *,
    fps: float | None = None,
    label_column: str | None = None,
    columns: Sequence[str | int] | None = None,
) -> Signal:
    """The signal of a table; arguments as in `read_signal`. What is wrong raises InputError that names the file."""
    said = list(notes)
    try:
        roles = find_roles(table, label_column, columns, said)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    signal = signal_of_columns(roles, path, said, fps)
    return signal if table.header else replace(signal, channels=())


def signal_of_columns(roles: Roles, path: Path, notes: list[str], fps: float | None) -> Signal:
    """The signal of columns of which it is known what they are."""
    values = np.stack([column.values for column in roles.channels], axis=1)
    with np.errstate(over="ignore"):  # what overflows becomes Inf, which is reported later
        values = values.astype(np.float32)
    labels = None if roles.labels is None else label_texts(roles.labels)
    if roles.clock is not None:
        signal = _timed(roles.clock, values, labels, fps, path, notes)
    else:
        signal = _counted(roles.frames, values, labels, fps, path, notes)
    if roles.labels is not None and labels is not None and signal.labels is not None:
        notes.append(label_note(roles.labels, labels, signal.labels))
    return replace(signal, channels=tuple(column.name for column in roles.channels), notes=tuple(notes))


def find_roles(
    table: Table, asked_labels: str | None, asked_columns: Sequence[str | int] | None, notes: list[str]
) -> Roles:
    """Which column is what; those that are nothing are noted."""
    columns = list(table.columns)
    clock, times = _find_clock(columns, table.header)
    counters = [column for column in columns if column not in times and _is_counter(column, table.header)]
    rest = [column for column in columns if not any(column is taken for taken in (*times, *counters))]
    labels = find_label_column(rest, asked_labels)
    numbers = [c for c in rest if c is not labels and not c.is_text and not np.isnan(c.values).all()]
    frames = next((column for column in counters if "frame" in column.name.lower()), None)
    if asked_columns is not None:
        numbers = _asked(asked_columns, columns if table.header else numbers, numbers)
    elif not numbers:
        raise InputError(f"no column of numbers besides the time; it has {listed([c.name for c in columns])}")
    used = [*numbers, *(column for column in (clock, labels, frames) if column is not None)]
    unused = [column for column in columns if not any(column is taken for taken in used)]
    if unused and asked_columns is None:
        notes.append(f"Left out: {', '.join(f'{column.name!r} ({_why(column, times)})' for column in unused)}.")
    return Roles(clock, frames, labels, tuple(numbers))


def _why(column: Column, times: Sequence[Column]) -> str:
    if any(column is other for other in times):
        return "another clock"
    if column.is_text:
        return "text"
    return "empty" if np.isnan(column.values).all() else "counts rows"


def _asked(asked: Sequence[str | int], columns: Sequence[Column], numbers: Sequence[Column]) -> list[Column]:
    """The columns asked for, by name among all of the file, by number among its channels."""
    if not asked:
        raise InputError("columns: none is named")
    found: list[Column] = []
    for name in asked:
        if isinstance(name, int):
            same = [numbers[name]] if 0 <= name < len(numbers) else []
        else:
            same = [c for c in columns if c.name == name] or [
                c for c in columns if c.name.casefold() == name.casefold()
            ]
        if len(same) != 1:
            raise InputError(f"no channel {name!r}; it has {listed([column.name for column in numbers])}")
        if same[0].is_text:
            raise InputError(f"column {name!r} does not hold numbers")
        if any(same[0] is other for other in found):
            raise InputError(f"columns: {name!r} is named twice")
        found += same
    return found


def _find_clock(columns: Sequence[Column], header: bool) -> tuple[Column | None, list[Column]]:
    """The column of time stamps, and all that are clocks."""
    ranked: list[tuple[int, Column]] = []
    for column in columns:
        name = time_name(column.name) if header else None
        rank = _clock_rank(column, name)
        if rank is not None:
            ranked.append((rank, column))
    if ranked:
        return min(ranked, key=lambda pair: pair[0])[1], [column for _, column in ranked]
    # Without a name that says so: the only column that rises like a clock.
    numbers = [c for c in columns if not c.is_text and not _is_counter(c, header)]
    rising = [c for c in numbers if looks_like_a_clock(c.values)]
    return (rising[0], rising) if len(rising) == 1 else (None, [])


def _clock_rank(column: Column, name: TimeName | None) -> int | None:
    """The lower the surer that it is the clock; None: it is none."""
    kind = None if name is None else name.kind
    first = next((cell for cell in column.values if cell), "") if column.is_text else ""
    if column.is_time or (column.is_text and is_time_text(first)):
        return 0 if kind == "clock" else 3
    if kind == "clock" and name is not None:
        return 1 if name.unit else 2
    if kind == "perhaps" and not column.is_text:
        known = column.values[np.isfinite(column.values)]
        return 4 if len(known) > 1 and (np.diff(known) >= 0).all() and known[-1] > known[0] else None
    return None


def _is_counter(column: Column, header: bool) -> bool:
    """Whole numbers that rise: 0, 1, 2, ..., or with holes where the name says that it counts."""
    if column.is_text or len(column.values) < 2 or not np.isfinite(column.values).all():
        return False
    name = time_name(column.name) if header else None
    whole = (column.values == np.rint(column.values)).all() and (np.diff(column.values) > 0).all()
    return bool(whole and (counts_rows(column.values) or (name is not None and name.kind == "counter")))


def _timed(
    column: Column, values: Floats, labels: Labels | None, fps: float | None, path: Path, notes: list[str]
) -> Signal:
    """Rows with a clock. values: (N, C), labels: (N,)."""
    where = f"{path}: times of column {column.name!r}"
    if len(values) < 2:
        notes.append(f"Column {column.name!r} is the time, of one row only.")
        return Signal(values, fps=fps, labels=None if labels is None else _rows(labels, fps))
    seconds = _seconds(column, fps, where, notes)
    stamped = stamped_rows(seconds, values, where, notes)
    step = usual_step(stamped.times)
    regular, rate = on_regular_clock(stamped, fps, where, notes)
    segments = None if labels is None else _labelled(labels, stamped, step, len(regular) / rate)
    return Signal(regular, (), rate, float(stamped.times[0]), segments)


def _labelled(labels: Labels, stamped: Stamped, step: float, duration: float) -> Segments:
    """Segments within the recording: the rows of a regular clock last as long as that says."""
    found = label_runs(labels[stamped.rows], stamped.times, step)
    return found if not len(found) or found.ends.max() <= duration else found.clip(duration)


def _seconds(column: Column, fps: float | None, where: str, notes: list[str]) -> Seconds:
    """Of each row (N,), NaN where unknown; says in which unit they were."""
    if column.is_time:
        notes.append(f"Column {column.name!r} is the time, as the file declares.")
        return column.values
    if column.is_text:
        seconds = column_seconds(column.values.tolist(), where)
        first = next(cell for cell in column.values if cell)
        kind = "ISO 8601" if "-" in first or "T" in first else "hours:minutes:seconds"
        notes.append(f"Column {column.name!r} is the time, {kind} such as {first}.")
        return seconds
    check_forward(column.values, where)
    known = column.values[np.isfinite(column.values)]
    if len(known) < 2 or known[-1] == known[0]:
        raise InputError(f"{where}: all rows have the same time, or none")
    named = time_name(column.name)
    unit, why = time_unit(known, column.name, None if named is None else named.unit, fps, where)
    notes.append(f"Column {column.name!r} is the time, in {unit}: {why}.")
    return column.values * SCALES[unit]


def _counted(
    frames: Column | None,
    values: Floats,
    labels: Labels | None,
    fps: float | None,
    path: Path,
    notes: list[str],
) -> Signal:
    """Rows without a clock; frame numbers that are missing become unknown rows."""
    if fps is None:
        notes.append("No time column: fps, the rows per second, is for the user to say.")
    places = np.arange(len(values))
    if frames is not None and len(values) > 1:
        steps = np.diff(frames.values)
        usual = float(np.median(steps))
        offsets = (frames.values - frames.values[0]) / usual
        missing = int(offsets[-1]) + 1 - len(values)
        if missing and (offsets == np.rint(offsets)).all():
            if missing > 20 * len(values) + 1000:
                raise InputError(f"{path}: column {frames.name!r} skips {missing} frames of {len(values)} rows")
            places = offsets.astype(np.intp)
            whole = np.full((places[-1] + 1, values.shape[1]), np.nan, np.float32)
            whole[places] = values
            values = whole
            notes.append(f"{missing} frames that column {frames.name!r} skips are unknown rows.")
        if usual != 1:
            notes.append(f"Rows are every {usual:g} frames; fps is the number of rows per second.")
    segments = None
    if labels is not None:
        segments = _rows(labels, fps, places)
        if fps is None:
            notes.append("Labels are timed in rows, because there is no clock.")
    return Signal(values, fps=fps, labels=segments)


def _rows(labels: Labels, fps: float | None, places: NDArray[np.intp] | None = None) -> Segments:
    step = 1 / (fps or 1.0)
    rows = np.arange(len(labels)) if places is None else places
    return label_runs(labels, rows.astype(np.float64) * step, step)
