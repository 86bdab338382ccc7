"""TUG: timed-up-and-go runs with a phone in the pocket, acceleration and rotation (Matey-Sanz et al. 2023, CC BY)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import DataConfig
from temporalzoom.datasets.known import needed_root
from temporalzoom.datasets.splits import subject
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, read_annotations
from temporalzoom.signals.feature_store import FeatureStore, open_features

TEST_SUBJECTS = 7
BACKGROUND = "SEATED"


def open_tug(data: DataConfig) -> tuple[Annotations, FeatureStore]:
    """`phone.json` and `phone.npz`. The last seven subjects are the test subset; sitting still is background."""
    root = needed_root(data, "phone.json", "phone.npz")
    annotations = read_annotations(root / "phone.json")
    subjects = sorted({subject(recording) for recording in annotations.recordings.values()})
    test = set(subjects[-TEST_SUBJECTS:])
    recordings = {
        name: replace(
            recording,
            subset=data.test_subset if subject(recording) in test else data.train_subset,
            segments=recording.segments[recording.segments.labels != BACKGROUND],
        )
        for name, recording in annotations.recordings.items()
    }
    classes = tuple(label for label in annotations.classes if label != BACKGROUND)
    store = open_features(root / "phone.npz")

    def acceleration_only(name: str) -> NDArray[np.float32] | None:
        signal = store.read(name)
        if signal is not None and signal.shape[1] != 6:
            raise InputError(f"{root / 'phone.npz'}: {name} must have 6 channels, has {signal.shape[1]}")
        return None if signal is None else signal[:, :3].copy()

    return replace(annotations, recordings=recordings, classes=classes), (
        replace(store, read=acceleration_only) if data.sensors == "acc" else store
    )
