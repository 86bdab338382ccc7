"""SBHAR as UCI publishes it: written small by these tests, and the real one where it is."""

import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from temporalzoom.config import InertialData
from temporalzoom.datasets.check import DataProblems
from temporalzoom.datasets.inertial_sets import SBHAR_FPS as FPS
from temporalzoom.datasets.inertial_sets import SBHAR_TEST_SUBJECTS as TEST_SUBJECTS
from temporalzoom.datasets.report import report_data
from temporalzoom.datasets.sources import load_data, open_source
from temporalzoom.errors import InputError

ROWS = 200


def signal(sensor: str, experiment: int) -> np.ndarray:
    """Values that say where they come from, with few digits."""
    base = experiment + (100 if sensor == "gyro" else 0)
    return base + np.arange(ROWS * 3).reshape(ROWS, 3) / 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two experiments of user 1, one of user 2, who is in the test subset."""
    raw = tmp_path / "RawData"
    raw.mkdir()
    (tmp_path / "activity_labels.txt").write_text("1 WALKING           \n2 SITTING\n3 STAND_TO_SIT\n")
    (raw / "labels.txt").write_text("1 1 2 11 60\n1 1 3 61 75\n2 1 1 1 200\n3 2 1 101 150\n")
    for experiment, user in ((1, 1), (2, 1), (3, 2)):
        for sensor in ("acc", "gyro"):
            np.savetxt(raw / f"{sensor}_exp{experiment:02d}_user{user:02d}.txt", signal(sensor, experiment), "%.10g")
    return tmp_path


def settings(root: Path | None, **changes: Any) -> InertialData:
    return InertialData.model_validate({"source": "sbhar", "root": root, "stride": 10, "window": 20, **changes})


def complaint(data: InertialData) -> str:
    with pytest.raises(InputError) as caught:
        load_data(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_samples_and_times(root: Path):
    loaded = load_data(settings(root))
    assert loaded.train is not None and loaded.test is not None
    assert [s.name for s in loaded.train.samples] == ["exp01_user01", "exp02_user01"]
    assert [s.name for s in loaded.test.samples] == ["exp03_user02"]
    assert loaded.train.classes == loaded.test.classes == ("WALKING", "SITTING", "STAND_TO_SIT")
    first = loaded.train.samples[0]
    # Rows 11..60, both included and counted from 1, are the time from the begin of row 11 to the end of row 60.
    assert [(s, e, label) for s, e, label, _ in first.segments] == [(0.2, 1.2, "SITTING"), (1.2, 1.5, "STAND_TO_SIT")]
    assert first.duration == ROWS / FPS and loaded.train.samples[1].segments.ends[0] == ROWS / FPS
    both = np.concatenate([signal("acc", 1), signal("gyro", 1)], axis=1)
    np.testing.assert_allclose(first.signal, both, rtol=1e-6)
    assert first.input_width == 20 * 6 and first.features.shape == (19, 120)
    np.testing.assert_allclose(first.features[2], both[20:40].ravel(), rtol=1e-6)


def test_acceleration_only_needs_no_gyroscope(root: Path):
    for file in (root / "RawData").glob("gyro_*"):
        file.unlink()
    loaded = load_data(settings(root, sensors="acc"))
    assert loaded.train is not None and loaded.train.input_width == 20 * 3
    np.testing.assert_allclose(loaded.train.samples[1].signal, signal("acc", 2), rtol=1e-6)


def test_subjects_can_be_left_out(root: Path):
    loaded = load_data(settings(root, leave_out="user01"))
    assert loaded.train is not None and [s.name for s in loaded.train.samples] == ["exp03_user02"]
    assert complaint(settings(root, leave_out="01")).endswith("no subject '01'; there are user01, user02")


def test_a_missing_root_or_file_is_named(root: Path):
    assert complaint(settings(None)) == (
        "data.root: the folder of sbhar is needed; it holds RawData/labels.txt, activity_labels.txt"
    )
    (root / "activity_labels.txt").unlink()
    said = f"data.root: {root} is no folder of sbhar: it has no file activity_labels.txt"
    assert complaint(settings(root)) == said


def test_a_missing_signal_is_a_problem_of_its_recording(root: Path):
    (root / "RawData" / "gyro_exp02_user01.txt").unlink()
    with pytest.raises(DataProblems) as caught:
        load_data(settings(root))
    (problem,) = caught.value.problems
    assert (problem.video, problem.detail) == ("exp02_user01", "no file gyro_exp02_user01.txt")
    loaded = load_data(settings(root), allow_missing=True)
    assert loaded.skipped == ("exp02_user01",)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("activity_labels.txt", "WALKING\n", "line 1 must be '1 NAME', is 'WALKING'"),
        ("activity_labels.txt", "1 WALKING\n3 SITTING\n", "line 2 must be '2 NAME', is '3 SITTING'"),
        ("RawData/labels.txt", "1 1 4 11 60\n", "experiment 1 has an activity outside 1..3"),
        ("RawData/labels.txt", "1 1 2 11\n", "must have 5 columns, has 4"),
        ("RawData/labels.txt", "1 1 2 eleven 60\n", "cannot be read as a table of numbers"),
        ("RawData/acc_exp02_user01.txt", "1 2\n3 4\n", "must have 3 columns, has 2"),
        ("RawData/acc_exp02_user01.txt", "1 2 3\n4 5 6\n", "2 and 200 samples"),
        ("RawData/acc_exp2.txt", "1 2 3\n", "not named like acc_exp01_user01.txt"),
    ],
)
def test_damaged_files_are_named(root: Path, file: str, text: str, said: str):
    (root / file).write_text(text)
    message = complaint(settings(root))
    assert str(root / file) in message and said in message


def test_a_folder_without_signals(root: Path):
    for file in (root / "RawData").glob("acc_*"):
        file.unlink()
    assert complaint(settings(root)).endswith("RawData: no file acc_expXX_userYY.txt")


def test_the_real_one(shared_data: Path):
    if not (shared_data / "sbhar").is_dir():
        pytest.skip("SBHAR is not among the data sets beside this checkout (../shared/data/sbhar)")
    data = settings(shared_data / "sbhar", stride=25, window=50)
    annotations, store = open_source(data)
    recordings = annotations.recordings.values()
    people = {int(r.extra["subject"].removeprefix("user")): r.subset for r in recordings}
    assert len(recordings) == 61 and len(people) == 30 and len(annotations.classes) == 12
    assert sum(len(r.segments) for r in recordings) == 1214
    assert {who for who, subset in people.items() if subset == "test"} == TEST_SUBJECTS
    assert TEST_SUBJECTS == {2, 4, 9, 10, 12, 13, 18, 20, 24}
    labels = Counter(label for r in recordings for label in r.segments.labels)
    assert set(labels) == set(annotations.classes)
    for name in ("exp01_user01", "exp61_user30"):
        rows = store.read(name)
        assert rows is not None and rows.shape[1] == 6 and np.isfinite(rows).all()
        assert annotations.recordings[name].segments.ends.max() <= len(rows) / FPS
        gravity = np.linalg.norm(rows[:, :3], axis=1).mean()
        assert 0.9 < gravity < 1.1  # acceleration is in units of g


def test_the_check_knows_how_long_recordings_are(root: Path):
    """The labels do not say it: the signals do."""
    parts, problems = report_data(settings(root))
    console = Console(file=io.StringIO(), width=200)
    for part in parts:
        console.print(part)
    assert problems == [] and "background 75.0%" in console.file.getvalue()  # type: ignore[attr-defined]
