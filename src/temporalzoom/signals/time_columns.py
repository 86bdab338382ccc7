"""Time stamps as files write them: which column holds them, in which unit, as text or as numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError

Seconds = NDArray[np.float64]
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}  # those that are told apart by magnitude
SCALES = UNITS | {"min": 60.0, "h": 3600.0}  # those that a name may say
_SPELLINGS = {
    "s": "s sec secs second seconds",
    "ms": "ms msec msecs milli millis millisecond milliseconds",
    "us": "us µs μs usec usecs micro micros microsecond microseconds",
    "ns": "ns nsec nsecs nano nanos nanosecond nanoseconds",
    "min": "min mins minute minutes",
    "h": "h hr hour hours",
}
UNIT_OF = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}
CLOCKS = frozenset("time times timestamp timestamps stamp datetime clock elapsed epoch unixtime ts".split())
BESIDE = frozenset("unix utc gmt local since start sensor sample system device host recording session relative".split())
BESIDE |= frozenset("in of the date iso iso8601 boot".split())
COUNTERS = frozenset("frame frames framenumber frameid index idx row rows sample samples counter unnamed".split())
BESIDE_COUNTERS = frozenset("number no nr num id level".split())
PLAUSIBLE = (0.01, 1e5)  # rows per second of any recording
LIKELY = (0.3, 1000.0)  # rows per second where a unit is guessed, and at least this many seconds in all:
LIKELY_SECONDS = 1.0
YEARS = (6.3e8, 4.1e9)  # Unix time from 1990 to 2099
TIME_OF_DAY = re.compile(r"(\d{1,3}):([0-5]?\d)(?::([0-5]?\d))?([.,]\d+)?")


@dataclass(frozen=True)
class TimeName:
    """What the name of a column says. kind: `clock`, `perhaps` (a clock if its values are like one) or `counter`
    (of rows or frames); unit: one of SCALES, None where it does not say."""

    kind: str
    unit: str | None = None


def time_name(name: str) -> TimeName | None:
    """`time_ms`, `Time (s)`, `timestamp`, `seconds_elapsed`, `frame`; None for what speaks of something else."""
    split = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    words = [word for word in re.findall(r"[a-zµμ]+(?:8601)?", split.lower()) if word]
    units = [UNIT_OF[word] for word in words if word in UNIT_OF]
    others = [word for word in words if word not in UNIT_OF]
    unit = units[-1] if len(set(units)) == 1 else None
    if not words:
        return TimeName("counter") if not name.strip() else None
    if not others:  # `seconds`, `ms`; a lone s or h may be anything
        return TimeName("clock", unit) if unit and words[0] not in ("s", "h", "min") else None
    if all(word in CLOCKS | BESIDE for word in others) and any(word in CLOCKS for word in others):
        return TimeName("clock", unit)
    if others == ["t"]:
        return TimeName("clock" if unit else "perhaps", unit)
    if all(word in COUNTERS | BESIDE_COUNTERS for word in others) and any(word in COUNTERS for word in others):
        return TimeName("counter")
    if any(word in ("time", "timestamp", "datetime") for word in others):
        return TimeName("perhaps", unit)
    return None


def text_seconds(text: str) -> float:
    """ISO 8601 (Unix time; without a zone taken for UTC) or `hours:minutes:seconds`; ValueError for anything else."""
    text = text.strip()
    clock = TIME_OF_DAY.fullmatch(text)
    if clock:
        parts = [int(part) for part in clock.groups()[:3] if part is not None]
        whole = sum(part * 60**power for power, part in enumerate(reversed(parts)))
        return whole + float((clock[4] or ".0").replace(",", "."))
    if not re.match(r"\d{4}-?\d\d-?\d\d", text) or not re.search(r"[-T:]", text):
        raise ValueError(text)
    # Python reads six digits of a fraction, and so does what follows it.
    moment = datetime.fromisoformat(re.sub(r"(\d\.\d{6})\d+", r"\1", text.replace(",", ".")))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def is_time_text(text: str) -> bool:
    try:
        text_seconds(text)
    except ValueError:
        return False
    return True


def column_seconds(cells: Sequence[str], where: str) -> Seconds:
    """Text (N,) -> seconds (N,), NaN where empty. A cell that is no time raises InputError with its row."""
    seconds = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell:
            try:
                seconds[row] = text_seconds(cell)
            except ValueError:
                raise InputError(f"{where}, row {row + 1}: {cell[:60]!r} is not a time (ISO 8601 or h:m:s)") from None
    return seconds


def check_forward(stamps: Seconds, where: str) -> None:
    """Complain about the first of time stamps (N,), NaN where unknown, that is earlier than the one before it."""
    rows = np.flatnonzero(np.isfinite(stamps))
    steps = np.diff(stamps[rows])
    if (steps < 0).any():
        row = int(rows[int(np.argmax(steps < 0)) + 1])
        raise InputError(f"{where}, row {row + 1}: time runs backwards; a file is one recording, in order")


def looks_like_a_clock(values: Seconds) -> bool:
    """Whether numbers (N,) rise strictly in steps that are nearly all the same."""
    if len(values) < 10 or not np.isfinite(values).all():
        return False
    steps = np.diff(values)
    usual = np.median(steps)
    return bool((steps > 0).all() and (np.abs(steps - usual) <= 0.1 * usual).mean() >= 0.95)


def counts_rows(values: Seconds) -> bool:
    """Whether numbers (N,) are 0, 1, 2, ... from wherever: a counter, not a clock."""
    return bool(np.isfinite(values).all() and (values == np.rint(values)).all() and (np.diff(values) == 1).all())


def time_unit(stamps: Seconds, name: str, named: str | None, fps: float | None, where: str) -> tuple[str, str]:
    """The unit of rising time stamps (N,), finite and not all the same, and why it is that one.

    Args:
        name: of the column, "" if it has none.
        named: the unit that the name says.
        fps: rows per second, where the user says so.
        where: begins messages.

    Raises:
        InputError: no unit is plausible, or two are.
    """
    steps = np.diff(stamps)
    step, span = float(np.median(steps[steps > 0])), float(stamps[-1] - stamps[0])
    rates = {unit: 1 / (step * scale) for unit, scale in (SCALES if named else UNITS).items()}
    if named is not None:
        if not PLAUSIBLE[0] <= rates[named] <= PLAUSIBLE[1]:
            raise InputError(f"{where} would be {rates[named]:.3g} rows per second in {named}, as its name says")
        return named, f"as the name {name!r} says"
    possible = {unit: rate for unit, rate in rates.items() if PLAUSIBLE[0] <= rate <= PLAUSIBLE[1]}
    if fps is not None and possible:
        unit = min(possible, key=lambda unit: abs(np.log(possible[unit] / fps)))
        return unit, f"which is nearest to the {fps:g} Hz asked for"
    likely = {unit: rate for unit, rate in possible.items() if LIKELY[0] <= rate <= LIKELY[1]}
    for unit in likely:
        if YEARS[0] <= stamps[0] * UNITS[unit] <= YEARS[1]:
            return unit, f"Unix time, from {datetime.fromtimestamp(stamps[0] * UNITS[unit], UTC):%Y-%m-%d %H:%M:%S} UTC"
    long_enough = {unit: rate for unit, rate in likely.items() if span * UNITS[unit] >= LIKELY_SECONDS}
    choices = long_enough or likely or possible
    if len(choices) == 1:
        [(unit, rate)] = choices.items()
        return unit, f"because {rate:.3g} Hz is the only likely rate"
    if not choices:
        readings = ", ".join(f"{rate:.3g} Hz in {unit}" for unit, rate in rates.items())
        raise InputError(f"{where}: no unit of time gives a plausible rate ({readings})")
    readings = " or ".join(f"{rate:.4g} Hz in {unit}" for unit, rate in choices.items())
    raise InputError(
        f"{where} may be {readings}; say which: give the rate (fps), or name the column with its unit (time_ms)"
    )
