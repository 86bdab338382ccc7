"""`tzoom budget`: how often, how long and when each behaviour happens, per recording and over all of them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table
from rich.text import Text

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import durations_by_name, no_formula
from temporalzoom.metrics.time_budget import TimeBudget, pool, time_budget
from temporalzoom.segments import Segments

COLUMNS = (
    "recording", "behaviour", "from", "to", "bouts", "total", "share", "share_of", "mean", "median", "sd",
    "mean_interval", "median_interval", "latency",
)  # fmt: skip
RECORDING, LAST_END = "recording", "last end"  # what shares are shares of


@dataclass(frozen=True)
class RecordingBudget:
    """duration: seconds, of the recording, or where that is unknown, until the last end (`known` is False)."""

    name: str
    duration: float
    known: bool
    rows: list[TimeBudget]


def budget_recordings(
    recordings: Mapping[str, Segments],
    durations: Mapping[str, float],
    labels: Sequence[str] = (),
    width: float | None = None,
) -> list[RecordingBudget]:
    """The budget of every behaviour in every recording and bin; see `time_budget`.

    durations: of the recordings of which they are known. labels: behaviours to report even if none of the recordings
    has them; those that any has are reported for all. width: of the bins, in seconds.
    """
    found = {str(label) for segments in recordings.values() for label in segments.labels}
    names = [*labels, *sorted(found - set(labels))]
    budgets = []
    for name, segments in recordings.items():
        known = name in durations
        duration = durations[name] if known else max(float(segments.ends.max(initial=0.0)), 0.0)
        try:
            rows = time_budget(segments, duration, names, width)
        except InputError as error:
            hint = f"; --duration {name}=SECONDS corrects it" if known and (segments.starts > duration).any() else ""
            raise InputError(f"{name}: {error}{hint}") from None
        budgets.append(RecordingBudget(name, duration, known, rows))
    return budgets


def with_durations(
    names: Sequence[str], known: Mapping[str, float | None], given: Sequence[str] = ()
) -> dict[str, float]:
    """Durations that files say, and those that a user gives: `seconds` for all others, `name=seconds` for one."""
    found = {name: seconds for name, seconds in known.items() if seconds is not None}
    general, by_name = durations_by_name(given)
    for name, seconds in by_name.items():
        if name not in names:
            raise InputError(f"--duration {name}={seconds:g}: no recording is called {name!r}")
        found[name] = seconds
    return found if general is None else {**dict.fromkeys(names, general), **found}


def budget_notes(budgets: Sequence[RecordingBudget], recordings: Mapping[str, Segments]) -> Iterator[str]:
    """What a reader of the numbers should know."""
    unknown = [budget.name for budget in budgets if not budget.known]
    if unknown:
        shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        yield f"duration unknown, shares are of the time until the last end (--duration says it): {shown}"
    for budget in budgets:
        segments = recordings[budget.name]
        beyond = (segments.starts < -1e-6) | (segments.ends > budget.duration + 1e-6)
        if beyond.any():
            count = int(beyond.sum())
            yield f"{budget.name}: {count} of its segments cut off at its start or its end, {budget.duration:g} s"


def totals(budgets: Sequence[RecordingBudget]) -> list[TimeBudget]:
    """Every behaviour and bin over all recordings; a bin that a recording does not reach has nothing of it."""
    parts: dict[tuple[str, float], list[TimeBudget]] = {}
    for budget in budgets:
        for row in budget.rows:
            parts.setdefault((row.behaviour, row.start), []).append(row)
    order = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in parts))}
    keys = sorted(parts, key=lambda key: (order[key[0]], key[1]))
    return [pool(parts[key]) for key in keys]


def budget_tables(budgets: Sequence[RecordingBudget]) -> list[Table]:
    """One table per recording, and one over all of them where there are several."""
    tables = []
    for budget in budgets:
        of = "" if budget.known else " until the last end"
        tables.append(_table(f"{budget.name}: {budget.duration:.2f} s{of}", budget.rows))
    if len(budgets) > 1:
        seconds = sum(budget.duration for budget in budgets)
        tables.append(_table(f"all {len(budgets)} recordings: {seconds:.2f} s", totals(budgets)))
    return tables


def write_budget(path: Path, budgets: Sequence[RecordingBudget]) -> None:
    """One row per recording, behaviour and bin; seconds; what is not defined is empty. Tabs for `.tsv`, else commas."""
    check_target(path)
    with replacing(path) as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        writer.writerow(COLUMNS)
        for budget in budgets:
            of = RECORDING if budget.known else LAST_END
            for row in budget.rows:
                names = [no_formula(name) for name in (budget.name, row.behaviour)]
                times = [_cell(value) for value in (row.total, row.share)]
                more = [_cell(value) for value in _statistics(row)]
                writer.writerow([*names, _cell(row.start), _cell(row.end), row.count, *times, of, *more])


def check_target(path: Path) -> None:
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise InputError(f"{path}: a budget is written as .csv or .tsv, not as {path.suffix!r}")


def _statistics(row: TimeBudget) -> tuple[float, ...]:
    return (row.mean, row.median, row.sd, row.mean_interval, row.median_interval, row.latency)


def _cell(value: float) -> str:
    return "" if math.isnan(value) else repr(round(value, 6))


def _table(title: str, rows: Sequence[TimeBudget]) -> Table:
    """Narrow enough for a terminal of 80 columns. Names are plain text, never markup."""
    binned = len({row.start for row in rows}) > 1
    table = Table(title=Text(title), title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("behaviour", overflow="fold")
    heads = ["bouts", "total\ns", "share\n%", "mean\ns", "median\ns", "sd\ns", "gap:\nmean", "gap:\nmedian"]
    for head in [*(["time"] if binned else []), *heads, "latency\ns"]:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        span = [f"{row.start:g}-{row.end:g}"] if binned else []
        numbers = (f"{value:.2f}" for value in _statistics(row))
        cells = [str(row.count), f"{row.total:.2f}", f"{100 * row.share:.1f}", *numbers]
        table.add_row(Text(row.behaviour), *span, *(cell.replace("nan", "") for cell in cells))
    return table
