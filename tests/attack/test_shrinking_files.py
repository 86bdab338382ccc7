"""Feature files that become shorter, or others, while they are read: one line that names the file, and exit code 2."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from known import refused

from temporalzoom.datasets.check import check_data
from temporalzoom.formats import read_annotations
from temporalzoom.signals.feature_files import write_features
from temporalzoom.signals.feature_store import open_features
from temporalzoom.timegrid import TimeGrid
from tiny import TINY


@pytest.fixture
def data(tzoom, tmp_path: Path) -> Path:
    made = tzoom("data", "make-zoombench", "--out", tmp_path / "data", "sequences=4", "test_sequences=2", "length=80")
    assert made[0] == 0, made
    return tmp_path / "data"


def shortened(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(300)


def replaced(path: Path) -> None:
    write_features(path, np.zeros((2, 3), np.float32))


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [shortened, replaced, removed])
def test_training_ends_with_one_line_and_keeps_its_checkpoint(tzoom, tmp_path: Path, data: Path, change):
    run = tmp_path / "run"

    def wait_and_change() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end and not any(run.glob("checkpoints/step-*[0-9]")):
            time.sleep(0.005)
        for path in (data / "features").glob("*.npy"):
            change(path)

    config = tmp_path / "own.yaml"
    config.write_text(
        f"data:\n  source: folder\n  features: {data}/features\n  annotations: {data}/annotations.json\n"
        "  stride: 4\n  window: 16\n"
    )
    settings = [s for s in TINY if not s.startswith(("data.", "training.steps"))]
    other = threading.Thread(target=wait_and_change)
    other.start()
    code, _, err = tzoom(
        "train", config, *settings, "training.steps=100000", "training.checkpoint_every=5", "--out", run
    )
    other.join()
    words = [line for line in err.splitlines() if "error:" in line]
    assert code == 2 and len(words) == 1 and ".npy" in words[0] and "Traceback" not in err, err
    assert any(run.glob("checkpoints/step-*[0-9]"))


def test_the_data_check_lists_it(data: Path):
    annotations, store = read_annotations(data / "annotations.json"), open_features(data / "features")
    names = list(annotations.recordings)
    opened = {name: store.read(name) for name in names}
    shortened(data / "features" / f"{names[0]}.npy")

    problems = check_data(annotations, type(store)("", opened.__getitem__), lambda _: TimeGrid(4, 16, 25))
    assert [(p.video, p.kind) for p in problems if p.kind == "unreadable"] == [(names[0], "unreadable")]
    assert "became shorter" in next(p.detail for p in problems if p.kind == "unreadable")


@pytest.mark.parametrize("change", [shortened, replaced, removed])
def test_rows_that_are_gone(tmp_path: Path, change):
    path = tmp_path / "x.npy"
    write_features(path, np.ones((50, 4), np.float32))
    rows = open_features(tmp_path).read("x")
    change(path)
    assert str(path) in refused(lambda: rows[20:50])
