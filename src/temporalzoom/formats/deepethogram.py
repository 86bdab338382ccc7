"""DeepEthogram (.deepethogram.csv): one row per frame, a column of 0 and 1 per behaviour, and one for the background.

One recording per file, `match7_labels.csv` of recording `match7`. Times are whole frames; two actions of one label that
touch or overlap come back as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import AMBIGUOUS
from temporalzoom.formats.framewise import instances_of_mask, needed_fps, peek, read_frames, write_frames
from temporalzoom.formats.interface import ExportOptions, Imported, ImportOptions, name_of_file
from temporalzoom.segments import Segments

BACKGROUND = "background"
UNLABELLED = -1  # frames that nobody has looked at


def write_deepethogram(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    write_frames(path, results, options, background=True)


def is_deepethogram(path: Path) -> bool:
    found = peek(path)
    return found is not None and BACKGROUND in (name.strip() for name in found[0])


def read_deepethogram(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """Frames that are -1, not labelled, are ambiguous spans: they count neither for nor against a detector."""
    return [_read(path, options, notes) for path in paths]


def _read(path: Path, options: ImportOptions, notes: list[str]) -> Imported:
    fps = needed_fps(path, options.fps)
    table = read_frames(path)
    behaviours = [name for name in table.names if name != BACKGROUND]
    for name in options.behaviours:
        if name not in behaviours:
            raise InputError(f"{path}: no behaviour {name!r} (--behaviours); there are {', '.join(behaviours)}")
    instances = []
    unlabelled = np.zeros(len(table.values), bool)
    for name in options.behaviours or behaviours:
        values = table.column(name)
        bad = np.flatnonzero(~np.isin(values, (0, 1, UNLABELLED)))
        if len(bad):
            raise InputError(f"{path}: line {bad[0] + 2}: {name!r} must be 0, 1 or -1, got {values[bad[0]]:g}")
        instances += instances_of_mask(values == 1, name, fps, str(path))
        unlabelled |= values == UNLABELLED
    if unlabelled.any():
        notes.append(f"{path}: {unlabelled.sum()} frames are not labelled (-1): they become ambiguous spans")
        instances += instances_of_mask(unlabelled, AMBIGUOUS, fps, str(path))
    name = name_of_file(path)
    name = name.removesuffix("_labels") or name
    return Imported(name, str(path), instances, duration=len(table.values) / fps, fps=fps)
