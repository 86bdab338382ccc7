"""Times in tables: seconds, milliseconds, frames, clocks and dates as text; a question where two readings would do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from temporalzoom.errors import InputError
from temporalzoom.formats.interface import ImportOptions
from temporalzoom.formats.table_columns import TIMES, UNITS, Column, Table

DECIMALS = ("point", "comma")
ORDERS = ("day", "month")
DAY = 86_400.0
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+")
_DATE = re.compile(r"(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})[ T]+(\d{1,2}:\d{1,2}(?::\d{1,2}(?:[.,]\d+)?)?)(.*)")


@dataclass(frozen=True)
class TimeReading:
    """How the texts of one table become seconds."""

    fps: float | None = None
    unit: str | None = None  # what --time-unit says, for all columns
    decimal_comma: bool = False
    day_first: bool = True
    starts_at: tuple[str, ...] = ()

    def seconds(self, text: str, column: Column, recording: str, where: str) -> float:
        """where: opens messages, with the name of the column's role."""
        if _DATE.fullmatch(text):
            return self._since_start(text, recording, where)
        plain = text
        if self.decimal_comma:
            plain = text.replace(".", "").replace(",", ".") if "," in text else text
        elif "," in text and re.fullmatch(_THOUSANDS.pattern + r"(\.\d*)?", text):
            plain = text.replace(",", "")
        parts = plain.split(":")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = [float("nan")]
        clock = all(number >= 0 for number in numbers) and all(number < 60 for number in numbers[1:])
        if not all(abs(number) < 1e300 for number in numbers) or len(numbers) > 3 or (len(numbers) > 1 and not clock):
            raise InputError(f"{where} must be seconds or hours:minutes:seconds, got {text!r}")
        if len(numbers) > 1:
            return sum(number * 60**power for power, number in enumerate(reversed(numbers)))
        return numbers[0] * self._factor(column, where)

    def _factor(self, column: Column, where: str) -> float:
        unit = self.unit or column.unit or "seconds"
        if unit == "frames":
            if self.fps is None:
                raise InputError(
                    f"{where}: {column.name!r} counts frames; say how many there are per second with --fps"
                )
            return 1 / self.fps
        factors = {"seconds": 1.0, "milliseconds": 0.001, "minutes": 60.0}
        if unit not in factors and ":" not in unit:  # (hh:mm:ss) says how it is written
            raise InputError(
                f"{where}: unit {unit!r} of column {column.name!r} is unknown; say --time-unit {', '.join(UNITS)}"
            )
        return factors.get(unit, 1.0)

    def _since_start(self, text: str, recording: str, where: str) -> float:
        by_name = dict(entry.rpartition("=")[::2] for entry in self.starts_at)
        start = by_name.get(recording, by_name.get("", ""))
        if not start:
            raise InputError(
                f'{where} is a date, {text!r}; say when recording {recording!r} began with --starts-at "YYYY-MM-DD '
                f'HH:MM:SS", or "{recording}=..." for this one alone'
            )
        try:
            return (parse_date(text, self.day_first) - datetime.fromisoformat(start)).total_seconds()
        except (ValueError, TypeError) as error:  # a time zone on one side only is a TypeError
            raise InputError(f"{where}: {text!r} since the start {start!r}: {error}") from error


def parse_date(text: str, day_first: bool) -> datetime:
    """Year first is always read as year, month, day."""
    match = _DATE.fullmatch(text)
    assert match is not None
    first, second, third, clock, rest = match.groups()
    if len(first) == 4:
        year, month, day = first, second, third
    else:
        year, month, day = third, *((second, first) if day_first else (first, second))
    year = year if len(year) == 4 else f"20{int(year):02d}"
    hours, *more = clock.replace(",", ".").split(":")
    padded = ":".join([hours.zfill(2), *(part.zfill(2) if "." not in part else part.rjust(2, "0") for part in more)])
    afternoon = rest.strip().lower()
    date = f"{year}-{int(month):02d}-{int(day):02d}"
    if afternoon in ("am", "pm"):
        when = datetime.fromisoformat(f"{date} {padded}")
        return when.replace(hour=when.hour % 12 + (12 if afternoon == "pm" else 0))
    return datetime.fromisoformat(f"{date} {padded}{rest.strip()}")


def time_reading(table: Table, columns: Mapping[str, Column], options: ImportOptions) -> TimeReading:
    """What the options say; where they say nothing, what the cells themselves show."""
    for value, valid, flag in (
        (options.time_unit, tuple(UNITS), "--time-unit"),
        (options.decimal, DECIMALS, "--decimal"),
        (options.date_order, ORDERS, "--date-order"),
    ):
        if value is not None and value not in valid:
            raise InputError(f"{flag} must be one of {', '.join(valid)}, got {value!r}")
    used = [columns[role] for role in (*TIMES, "duration") if role in columns]
    cells = [(place, row[column.index].strip(), column) for place, row in table.rows for column in used]
    return TimeReading(
        options.fps,
        options.time_unit,
        _decimal_comma(table, cells, options.decimal),
        _day_first(table, cells, options.date_order),
        options.starts_at,
    )


def _decimal_comma(table: Table, cells: Sequence[tuple[str, str, Column]], given: str | None) -> bool:
    if given is not None:
        return given == "comma"
    with_comma = [cell for cell in cells if "," in cell[1] and not _DATE.fullmatch(cell[1])]
    if not with_comma or any(
        re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+\.\d*|\d{1,3}(,\d{3}){2,}", t) for _, t, _ in with_comma
    ):
        return False
    if all(_THOUSANDS.fullmatch(text) for _, text, _ in with_comma):
        place, text, column = with_comma[0]
        raise InputError(
            f"{table.where}: {place}: {column.name!r} is {text!r}: {float(text.replace(',', '.')):g} with a decimal "
            f"comma (--decimal comma), or {text.replace(',', '')} with a comma between thousands (--decimal point)?"
        )
    return True


def _day_first(table: Table, cells: Sequence[tuple[str, str, Column]], given: str | None) -> bool:
    if given is not None:
        return given == "day"
    doubtful = None
    for place, text, column in cells:
        match = _DATE.fullmatch(text)
        if match is None or len(match[1]) == 4:
            continue
        first, second = int(match[1]), int(match[2])
        if first > 12 or second > 12:
            return first > 12
        if first != second:
            doubtful = doubtful or (place, text, column)
    if doubtful is not None:
        place, text, column = doubtful
        try:
            readings = [parse_date(text, day_first).strftime("%-d %B %Y") for day_first in (True, False)]
        except ValueError as error:  # the 31st of a month without one, the month 0
            raise InputError(
                f"{table.where}: {place}: {column.name!r} is {text!r}, which is no date ({error})"
            ) from None
        raise InputError(
            f"{table.where}: {place}: {column.name!r} is {text!r}: {readings[0]} (--date-order day) or {readings[1]} "
            "(--date-order month)?"
        )
    return True


def ask_for_unit(
    table: Table,
    first: tuple[str, str, str, str],
    longest: float,
    typical: float,
    duration: float | None,
    fps: float | None,
) -> None:
    """Whole numbers without a unit that make no sense as seconds are a question.

    first: place, label, start and end of the first row as they stand there. longest: the latest end; typical: the
    median length; duration: of the recording that has the latest end, where it is known.
    """
    beyond = longest > 3 * duration if duration is not None else longest > DAY or typical > 600
    if not beyond:
        return
    place, label, start, end = first
    a, b = float(start), float(end)
    readings = [f"{a:g} to {b:g} s (--time-unit seconds)", f"{a / 1000:g} to {b / 1000:g} s (--time-unit milliseconds)"]
    if fps is None:
        readings.append("frames (--time-unit frames --fps RATE)")
    else:
        readings.append(f"{a / fps:g} to {b / fps:g} s at {fps:g} frames per second (--time-unit frames)")
    known = "" if duration is None else f", and the recording has {duration:g} s"
    raise InputError(
        f"{table.where}: times are whole numbers up to {longest:g}{known}: "
        f"{place}, {label!r}, is {', or '.join(readings)}?"
    )
