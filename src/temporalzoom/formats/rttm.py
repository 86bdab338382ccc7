"""RTTM (.rttm): who speaks when, one line per segment, all recordings in one file.

`SPEAKER recording channel start duration <NA> <NA> label score <NA>`. Times are seconds to the microsecond. Fields are
separated by spaces, so that those in a name become `_`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import ExportOptions, Imported, ImportOptions, checked_instance, read_text, short
from temporalzoom.segments import Segments

MISSING = "<NA>"


def write_rttm(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """One line per segment, with its score as confidence. A recording without segments leaves no line."""
    with replacing(path) as file:
        for recording, segments in results.items():
            for start, end, label, score in segments:
                times = f"{start:.6f} {end - start:.6f}"
                file.write(
                    f"SPEAKER {field(recording)} 1 {times} {MISSING} {MISSING} {field(label)} {score:.6g} {MISSING}\n"
                )


def field(text: str) -> str:
    """One word: what separates fields becomes `_`."""
    return "_".join(text.split()) or MISSING


def read_rttm(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """The lines of type SPEAKER; `notes` counts those of other types."""
    return [recording for path in paths for recording in _read(path, notes)]


def _read(path: Path, notes: list[str]) -> list[Imported]:
    recordings: dict[str, Imported] = {}
    others: Counter[str] = Counter()
    for number, line in enumerate(read_text(path, "an RTTM file").split("\n"), 1):
        fields = line.split()
        if not fields or line.startswith(";"):
            continue
        where = f"{path}: line {number}"
        if fields[0] != "SPEAKER":
            others[fields[0]] += 1
            continue
        if len(fields) < 8:
            raise InputError(
                f"{where}: at least 8 fields make a line of RTTM, got {len(fields)}: {short(line.strip())}"
            )
        start, length = (_seconds(text, where) for text in fields[3:5])
        label = "" if fields[7] == MISSING else fields[7]
        recording = recordings.setdefault(fields[1], Imported(fields[1], where, []))
        recording.instances.append(checked_instance(start, start + length, label, where))
    if others:
        kinds = ", ".join(f"{count} {short(kind)}" for kind, count in others.most_common())
        notes.append(f"{path}: left out lines that are not of type SPEAKER: {kinds}")
    if not recordings:
        raise InputError(f"{path}: no line of type SPEAKER")
    return list(recordings.values())


def _seconds(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < 1e300:
        raise InputError(f"{where}: start and duration must be seconds, got {text!r}")
    return value
