"""SBHAR (HAPT): smartphone inertial signals of daily activities and postural transitions, as UCI publishes it.

Citation: J.-L. Reyes-Ortiz et al., Transition-Aware Human Activity Recognition Using Smartphones, Neurocomputing 2016.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import DataConfig
from temporalzoom.datasets.known import needed_root
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, Recording
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_store import FeatureStore

FPS = 50.0
TEST_SUBJECTS = frozenset((2, 4, 9, 10, 12, 13, 18, 20, 24))  # UCI's own split
FILE = re.compile(r"acc_(exp(\d+)_user(\d+))\.txt")


def open_sbhar(data: DataConfig) -> tuple[Annotations, FeatureStore]:
    """`activity_labels.txt`, `RawData/labels.txt` and `RawData/{acc,gyro}_expXX_userYY.txt` of the UCI folder."""
    root = needed_root(data, "RawData/labels.txt", "activity_labels.txt")
    folder = root / "RawData"
    classes = _classes(root / "activity_labels.txt")
    rows = _table(folder / "labels.txt", 5).astype(int)
    recordings = {}
    for file in sorted(folder.glob("acc_exp*.txt")):
        match = FILE.fullmatch(file.name)
        if match is None:
            raise InputError(f"{file}: not named like acc_exp01_user01.txt")
        name, experiment, user = match[1], int(match[2]), int(match[3])
        mine = rows[(rows[:, 0] == experiment) & (rows[:, 1] == user)]
        if len(mine) and not (1 <= mine[:, 2].min() and mine[:, 2].max() <= len(classes)):
            raise InputError(
                f"{folder / 'labels.txt'}: experiment {experiment} has an activity outside 1..{len(classes)}"
            )
        # Samples count from 1, and both the first and the last one belong to the activity.
        segments = Segments((mine[:, 3] - 1) / FPS, mine[:, 4] / FPS, [classes[i - 1] for i in mine[:, 2]])
        subset = data.test_subset if user in TEST_SUBJECTS else data.train_subset
        recordings[name] = Recording(name, subset, None, FPS, segments, extra={"subject": f"user{user:02d}"})
    if not recordings:
        raise InputError(f"{folder}: no file acc_expXX_userYY.txt")
    sensors = data.sensors.split("+")

    def read(name: str) -> NDArray[np.float32] | None:
        files = [folder / f"{sensor}_{name}.txt" for sensor in sensors]
        if not all(file.is_file() for file in files):
            return None
        tables = [_table(file, 3) for file in files]
        if len({len(table) for table in tables}) > 1:
            raise InputError(f"{files[0]} and {files[1]}: {len(tables[0])} and {len(tables[1])} samples")
        return np.concatenate(tables, axis=1).astype(np.float32)

    return Annotations(recordings, classes, declared=True), FeatureStore(f"no file {sensors[-1]}_{{}}.txt", read)


def _classes(path: Path) -> tuple[str, ...]:
    """The names in lines such as `1 WALKING`, which must count from 1."""
    lines = [line.split() for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    for number, words in enumerate(lines, 1):
        if len(words) != 2 or words[0] != str(number):
            raise InputError(f"{path}: line {number} must be '{number} NAME', is {' '.join(words)!r}")
    return tuple(name for _, name in lines)


def _table(path: Path, columns: int) -> NDArray[np.float64]:
    try:
        table = np.loadtxt(path, ndmin=2)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as a table of numbers: {error}") from None
    if table.shape[1] != columns:
        raise InputError(f"{path}: must have {columns} columns, has {table.shape[1]}")
    return table
