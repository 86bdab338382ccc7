"""TUG: an annotation file and an archive of signals, written small by these tests, and the real one where it is."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from temporalzoom.config import InertialData
from temporalzoom.datasets.sources import load_data, open_source
from temporalzoom.errors import InputError
from temporalzoom.formats import read_annotations

ROWS, FPS = 300, 100.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two runs each of nine subjects, written in no order."""
    annotations = [
        {"label": "SEATED", "segment": [0.0, 0.5], "label_id": 0},
        {"label": "STANDING_UP", "segment": [0.5, 1.2], "label_id": 2},
        {"label": "WALKING", "segment": [1.2, 2.9], "label_id": 1},
        {"label": "SEATED", "segment": [2.9, 3.0], "label_id": 0},
    ]
    database, signals = {}, {}
    for person in (5, 1, 9, 2, 8, 3, 7, 4, 6):
        for run in (1, 2):
            name = f"s{person:02d}_{run:02d}_sp"
            entry = {"subject": f"s{person:02d}", "fps": FPS, "duration": ROWS / FPS, "annotations": annotations}
            database[name] = entry
            signals[name] = np.full((ROWS, 6), person, np.float32) + np.arange(6, dtype=np.float32) / 10
    (tmp_path / "phone.json").write_text(json.dumps({"database": database}))
    np.savez(tmp_path / "phone.npz", **signals)
    return tmp_path


def settings(root: Path | None, **changes: Any) -> InertialData:
    return InertialData.model_validate({"source": "tug", "root": root, "stride": 10, "window": 20, **changes})


def complaint(data: InertialData) -> str:
    with pytest.raises(InputError) as caught:
        load_data(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_last_seven_subjects_are_the_test(root: Path):
    loaded = load_data(settings(root))
    assert loaded.train is not None and loaded.test is not None
    assert sorted(s.name for s in loaded.train.samples) == ["s01_01_sp", "s01_02_sp", "s02_01_sp", "s02_02_sp"]
    assert {s.name[:3] for s in loaded.test.samples} == {f"s{i:02d}" for i in range(3, 10)}
    assert loaded.train.input_width == 20 * 6


def test_sitting_still_is_background(root: Path):
    loaded = load_data(settings(root))
    assert loaded.train is not None and loaded.train.classes == ("WALKING", "STANDING_UP")  # by label_id
    for sample in loaded.train.samples:
        assert [(s, e, label) for s, e, label, _ in sample.segments] == [
            (0.5, 1.2, "STANDING_UP"), (1.2, 2.9, "WALKING"),
        ]  # fmt: skip


def test_acceleration_only(root: Path):
    annotations, store = open_source(settings(root, sensors="acc"))
    np.testing.assert_allclose(store.read("s03_01_sp"), np.full((ROWS, 3), [3.0, 3.1, 3.2]), rtol=1e-6)
    assert store.read("s99_01_sp") is None and len(annotations.recordings) == 18
    _, both = open_source(settings(root))
    signal = both.read("s03_01_sp")
    assert signal is not None and signal.shape == (ROWS, 6)


def test_acceleration_of_another_count_of_channels_is_refused(root: Path):
    np.savez(root / "phone.npz", s01_01_sp=np.zeros((ROWS, 4)))
    _, store = open_source(settings(root, sensors="acc"))
    with pytest.raises(InputError, match=r"phone\.npz: s01_01_sp must have 6 channels, has 4"):
        store.read("s01_01_sp")


def test_a_missing_root_or_file_is_named(root: Path):
    assert complaint(settings(None)) == "data.root: the folder of tug is needed; it holds phone.json, phone.npz"
    (root / "phone.npz").unlink()
    assert complaint(settings(root)) == f"data.root: {root} is no folder of tug: it has no file phone.npz"


def test_a_damaged_archive(root: Path):
    (root / "phone.npz").write_bytes(b"PK nothing")
    assert "phone.npz: not an .npz archive of arrays" in complaint(settings(root))


def test_the_real_one(shared_data: Path):
    if not (shared_data / "tug").is_dir():
        pytest.skip("TUG is not among the data sets beside this checkout (../shared/data/tug)")
    everything = read_annotations(shared_data / "tug" / "phone.json")
    counts = Counter(label for r in everything.recordings.values() for label in r.segments.labels)
    assert sum(counts.values()) == 1764 and counts["SEATED"] == 402
    loaded = load_data(settings(shared_data / "tug"))
    assert loaded.train is not None and loaded.test is not None
    samples = loaded.train.samples + loaded.test.samples
    assert len(samples) == 223 and sum(len(s.segments) for s in samples) == 1764 - 402
    assert not any("SEATED" in s.segments.labels for s in samples) and "SEATED" not in loaded.train.classes
    train, test = ({s.name.split("_")[0] for s in split.samples} for split in (loaded.train, loaded.test))
    assert len(train | test) == 23 and test == set(sorted(train | test)[-7:]) and not train & test
