"""Known sets of inertial signals: SBHAR (HAPT) as UCI publishes it, and TUG.

SBHAR: daily activities and postural transitions with a smartphone at the waist. J.-L. Reyes-Ortiz et al.,
Transition-Aware Human Activity Recognition Using Smartphones, Neurocomputing 2016.
TUG: timed-up-and-go runs with a phone in the pocket, acceleration and rotation (Matey-Sanz et al. 2023, CC BY).
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import DataConfig
from temporalzoom.datasets.splits import subject
from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording, read_annotations
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_store import FeatureStore, open_features

SBHAR_FPS = 50.0
SBHAR_TEST_SUBJECTS = frozenset((2, 4, 9, 10, 12, 13, 18, 20, 24))  # UCI's own split
SBHAR_FILE = re.compile(r"acc_(exp(\d+)_user(\d+))\.txt")
TUG_TEST_SUBJECTS = 7
TUG_BACKGROUND = "SEATED"


def open_sbhar(data: DataConfig) -> tuple[Annotations, FeatureStore]:
    """`activity_labels.txt`, `RawData/labels.txt` and `RawData/{acc,gyro}_expXX_userYY.txt` of the UCI folder."""
    root = _needed_root(data, "RawData/labels.txt", "activity_labels.txt")
    folder = root / "RawData"
    classes = _classes(root / "activity_labels.txt")
    rows = _table(folder / "labels.txt", 5).astype(int)
    recordings = {}
    for file in sorted(folder.glob("acc_exp*.txt")):
        match = SBHAR_FILE.fullmatch(file.name)
        if match is None:
            raise InputError(f"{file}: not named like acc_exp01_user01.txt")
        name, experiment, user = match[1], int(match[2]), int(match[3])
        mine = rows[(rows[:, 0] == experiment) & (rows[:, 1] == user)]
        if len(mine) and not (1 <= mine[:, 2].min() and mine[:, 2].max() <= len(classes)):
            raise InputError(
                f"{folder / 'labels.txt'}: experiment {experiment} has an activity outside 1..{len(classes)}"
            )
        # Samples count from 1, and both the first and the last one belong to the activity.
        segments = Segments((mine[:, 3] - 1) / SBHAR_FPS, mine[:, 4] / SBHAR_FPS, [classes[i - 1] for i in mine[:, 2]])
        subset = data.test_subset if user in SBHAR_TEST_SUBJECTS else data.train_subset
        recordings[name] = Recording(name, subset, None, SBHAR_FPS, segments, extra={"subject": f"user{user:02d}"})
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


def open_tug(data: DataConfig) -> tuple[Annotations, FeatureStore]:
    """`phone.json` and `phone.npz`. The last seven subjects are the test subset; sitting still is background."""
    root = _needed_root(data, "phone.json", "phone.npz")
    annotations = read_annotations(root / "phone.json")
    subjects = sorted({subject(recording) for recording in annotations.recordings.values()})
    test = set(subjects[-TUG_TEST_SUBJECTS:])
    recordings = {
        name: replace(
            recording,
            subset=data.test_subset if subject(recording) in test else data.train_subset,
            segments=recording.segments[recording.segments.labels != TUG_BACKGROUND],
        )
        for name, recording in annotations.recordings.items()
    }
    classes = tuple(label for label in annotations.classes if label != TUG_BACKGROUND)
    store = open_features(root / "phone.npz")

    def acceleration_only(name: str) -> NDArray[np.float32] | None:
        signal = store.read(name)
        if signal is not None and signal.shape[1] != 6:
            raise InputError(f"{root / 'phone.npz'}: {name} must have 6 channels, has {signal.shape[1]}")
        return None if signal is None else np.asarray(signal)[:, :3].copy()

    return replace(annotations, recordings=recordings, classes=classes), (
        replace(store, read=acceleration_only) if data.sensors == "acc" else store
    )


def _needed_root(data: DataConfig, *files: str) -> Path:
    """The folder of the data set, which must hold these files."""
    if data.root is None:
        raise InputError(f"data.root: the folder of {data.source} is needed; it holds {', '.join(files)}")
    for file in files:
        if not (data.root / file).is_file():
            raise InputError(f"data.root: {data.root} is no folder of {data.source}: it has no file {file}")
    return data.root


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
