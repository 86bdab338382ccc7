"""SimBA (.simba.csv): one row per frame, columns of features and, behind them, one of 0 and 1 per behaviour.

Files of `targets_inserted` and `machine_results`, and any table of 0 and 1 per frame. One recording per file. Times are
whole frames; two actions of one label that touch or overlap come back as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalzoom.errors import InputError
from temporalzoom.formats.framewise import (
    FrameTable,
    instances_of_mask,
    is_index,
    needed_fps,
    peek,
    read_frames,
    write_frames,
)
from temporalzoom.formats.interface import ExportOptions, Imported, ImportOptions, name_of_file, short
from temporalzoom.segments import Segments

# Features of SimBA that may be 0 or 1 in every frame of a file.
_FEATURE = re.compile(r"Low_prob_detections_.*|Probability_.*|.*_(x|y|p)\Z|Sum_probabilities.*", re.IGNORECASE)


def write_simba(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """The behaviours only: SimBA appends such columns to its features."""
    write_frames(path, results, options, background=False)


def is_simba(path: Path) -> bool:
    """Whether all cells are numbers, and a column holds nothing but 0 and 1."""
    found = peek(path)
    if found is None:
        return False
    header, rows = found
    columns = [set(column) for name, column in zip(header, zip(*rows, strict=True), strict=True) if not is_index(name)]
    return any(cells <= {"0", "1", "0.0", "1.0"} for cells in columns)


def read_simba(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """The behaviours are those that `options.behaviours` names; else the columns of 0 and 1 behind all others. What is
    a column of 0 and 1 is decided over all files: a feature may be so in one of them by chance."""
    tables = []
    features: set[str] = set()
    for path in paths:
        needed_fps(path, options.fps)
        table = read_frames(path)
        features |= set(table.names) - set(table.binary())
        tables.append(_only(table, options.behaviours) if options.behaviours else table)
    found = {table.path: list(options.behaviours) or _behaviours(table, features) for table in tables}
    every = list(dict.fromkeys(name for names in found.values() for name in names))
    for path, names in found.items():
        absent = [name for name in every if name not in names]
        if absent:
            notes.append(f"{path}: no column {', '.join(absent)}: taken for a recording without it")
    return [_recording(table, found[table.path], options.fps or 0) for table in tables]


def _only(table: FrameTable, behaviours: Sequence[str]) -> FrameTable:
    for name in behaviours:
        if name not in table.names:
            raise InputError(
                f"{table.path}: no column {name!r} (--behaviours); there are {short(', '.join(table.names))}"
            )
        if name not in table.binary():
            raise InputError(f"{table.path}: column {name!r} (--behaviours) has other values than 0 and 1")
    return FrameTable(table.path, tuple(behaviours), table.values[:, [table.names.index(name) for name in behaviours]])


def _behaviours(table: FrameTable, features: set[str]) -> list[str]:
    """All columns of 0 and 1 where they stand behind those of other values; a question where they do not."""
    found = [name for name in table.names if name not in features]
    behind = [name for i, name in enumerate(table.names) if not features & set(table.names[i:])]
    likely = [name for name in behind if not _FEATURE.fullmatch(name)]
    if not found:
        raise InputError(f"{table.path}: no column holds nothing but 0 and 1; a behaviour has one")
    if found != likely:
        other = likely or found[-1:]
        first = {name: int(table.column(name)[0]) for name in found}
        readings = [", ".join(f"{name}={first[name]}" for name in names) for names in (found, other)]
        raise InputError(
            f"{table.path}: several columns are 0 or 1 in all frames: the first frame is {readings[0]}; or, of these, "
            f"only {readings[1]} are behaviours? Name them with --behaviours {','.join(other)}"
        )
    return found


def _recording(table: FrameTable, behaviours: Sequence[str], fps: float) -> Imported:
    where = str(table.path)
    instances = [i for name in behaviours for i in instances_of_mask(table.column(name) == 1, name, fps, where)]
    return Imported(name_of_file(table.path), where, instances, duration=len(table.values) / fps, fps=fps)
