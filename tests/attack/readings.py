"""What reads wrong files, and what makes its result right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import specimens

from temporalzoom.config import dump_tree, load_config, parse_config
from temporalzoom.formats import read_annotations, read_any_annotations, write_annotations
from temporalzoom.formats.annotations import Annotations
from temporalzoom.formats.json_file import read_predictions
from temporalzoom.inference.localizer import Localizer
from temporalzoom.runs.description import ModelDescription
from temporalzoom.segments import Segments
from temporalzoom.signals.archived_rows import stored_rows
from temporalzoom.signals.feature_files import feature_length, read_features
from temporalzoom.signals.feature_rows import open_rows
from temporalzoom.signals.signal_files import find_recordings, read_signal


def right_segments(segments: Segments) -> None:
    for start, end, label, score in segments:
        assert np.isfinite([start, end, score]).all() and isinstance(label, str), (start, end, label, score)
        label.encode()


def right_annotations(annotations: Annotations, folder: Path) -> None:
    """They can be written, and come back."""
    for recording in annotations.recordings.values():
        right_segments(recording.segments)
        assert recording.duration is None or np.isfinite(recording.duration)
    write_annotations(folder / "again.json", annotations)
    again = read_annotations(folder / "again.json")
    assert again.recordings.keys() == annotations.recordings.keys()
    for name, recording in annotations.recordings.items():
        assert list(again.recordings[name].segments) == list(recording.segments)


def right_array(array: Any) -> None:
    assert isinstance(array, np.ndarray) and array.dtype == np.float32 and array.ndim == 2 and array.shape[1] > 0
    assert array.size < 2**29
    array.sum()


def read_an_annotation_file(path: Any) -> None:
    right_annotations(read_any_annotations(path, fps=10.0), path.parent)


def read_label_studio_file(path: Any) -> None:
    right_annotations(read_any_annotations(path, fps=10.0, predictions=True), path.parent)


def read_own_annotations(path: Any) -> None:
    right_annotations(read_annotations(path), path.parent)
    right_annotations(read_annotations(path, allow_unlabelled=True, label_keys=("label", "name")), path.parent)


def read_prediction_file(path: Any) -> None:
    for segments in read_predictions(path).values():
        right_segments(segments)


def read_an_array(path: Any) -> None:
    array = read_features(path)
    right_array(array)
    right_array(np.asarray(open_rows(path)))
    np.testing.assert_array_equal(stored_rows(path), array)
    np.testing.assert_array_equal(open_rows(path), array)
    assert feature_length(path) == len(array)


def read_a_signal(path: Any) -> None:
    for found in find_recordings(path).values():
        signal = read_signal(found)
        right_array(signal.values)
        assert signal.fps is None or 0 < signal.fps < np.inf
        assert not signal.channels or len(signal.channels) == signal.values.shape[1]
        if signal.labels is not None:
            right_segments(signal.labels)


def read_configuration(path: Any) -> None:
    config = load_config(path)
    assert parse_config(dump_tree(config)) == config


def read_overrides(overrides: Any) -> None:
    config = load_config(None, [*specimens.TINY, *overrides])
    assert parse_config(dump_tree(config)) == config


def read_a_description(document: Any) -> None:
    described = ModelDescription.from_json(document, "checkpoint.json")
    assert described.channels >= 0 and described.grid.duration(10) >= 0
    json.dumps(described.to_json())


def localize_with(path: Any) -> None:
    localizer = Localizer.load(path, device="cpu")
    features = np.zeros((20, localizer.description.channels), np.float32)
    right_segments(localizer(features))


def read_a_video(path: Any) -> None:
    from temporalzoom.signals.decoding import clock_frames, probe

    info = probe(path)
    assert info.fps > 0 and np.isfinite(info.duration)
    for number, _ in enumerate(clock_frames(path, min(info.fps, 100.0), (16, 16))):
        if number > 20:
            break
