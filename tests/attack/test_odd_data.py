"""Data that is odd and valid is trained on and localized; the same seed gives the same bytes."""

import json
from pathlib import Path

import numpy as np
import pytest
import specimens
import torch

from temporalzoom.inference.localizer import Localizer
from temporalzoom.signals.feature_store import open_features
from temporalzoom.workflows.train import train

SETTINGS = [s for s in specimens.TINY if not s.startswith("data.")]
Spans = list[tuple[float, float, str]]


def write_data(folder: Path, recordings: dict[str, tuple[np.ndarray, Spans]]) -> list[str]:
    """Features at one position per second; returns the settings that name them."""
    (folder / "features").mkdir(parents=True)
    database = {}
    for name, (features, spans) in recordings.items():
        np.save(folder / "features" / f"{name}.npy", features.astype(np.float32))
        found = [{"label": label, "segment": [start, end]} for start, end, label in spans]
        database[name] = {"subset": "train", "duration": len(features), "fps": 1, "annotations": found}
    (folder / "a.json").write_text(json.dumps({"database": database}))
    (folder / "mine.yaml").write_text("seed: 0\n")
    return [
        f"data.annotations={folder}/a.json",
        f"data.features={folder}/features",
        "data.source=folder",
        "data.stride=1",
    ]


def noise(length: int, width: int = 4) -> np.ndarray:
    return np.random.default_rng(length).normal(size=(length, width))


ODD: dict[str, dict[str, tuple[np.ndarray, Spans]]] = {
    "constant channels": {"a": (np.concatenate([noise(60), np.ones((60, 3))], 1), [(5, 9, "run")])},
    "all constant": {"a": (np.zeros((60, 4)), [(5, 9, "run")])},
    "one class": {n: (noise(60), [(5, 9, "run")]) for n in "ab"},
    "500 classes": {"a": (noise(1200), [(2 * n, 2 * n + 1.5, f"class {n}") for n in range(500)])},
    "no instances": {"a": (noise(60), [(5, 9, "run")]), "b": (noise(60), []), "c": (noise(5), [])},
    "one position": {"a": (noise(1), [(0, 1, "run")]), "b": (noise(60), [(3, 4, "run")])},
    "only one position": {"a": (noise(1), [(0, 1, "run")])},
    "longer than a crop": {"a": (noise(300), [(0, 300, "run"), (10, 290, "walk")])},
    "one channel": {"a": (noise(60, 1), [(5, 9, "run")])},
    "odd names": {"a b [red]": (noise(60), [(5, 9, "=run\u202e")]), "-x": (noise(60), [(5, 9, "漢")])},
}


@pytest.mark.parametrize("standardize", ["false", "true"])
@pytest.mark.parametrize("name", ODD)
def test_odd_data_trains_and_localizes(name: str, standardize: str, tmp_path: Path):
    settings = write_data(tmp_path, ODD[name])
    more = [f"model.standardize={standardize}", "training.steps=3"]
    run = train(tmp_path / "mine.yaml", tmp_path / "run", overrides=[*SETTINGS, *settings, *more])
    localizer = Localizer.load(run.checkpoint, device="cpu")
    assert all(bool(weight.isfinite().all()) for weight in localizer.model.parameters())
    for features, _ in ODD[name].values():
        found = localizer(features, threshold=0.0)
        assert np.isfinite(found.starts).all() and (found.ends <= len(features)).all()


@pytest.mark.slow
def test_a_million_positions(tmp_path: Path):
    settings = write_data(tmp_path, ODD["one class"])
    more = ["training.steps=1", "model.name=uniform-0", "model.width=8"]
    plain = [
        setting for setting in SETTINGS if not setting.startswith(("model.heads", "model.drop_path", "model.layer"))
    ]
    run = train(tmp_path / "mine.yaml", tmp_path / "run", overrides=[*plain, *settings, *more])
    found = Localizer.load(run.checkpoint, device="cpu")(noise(10**6), top=5)
    assert len(found) <= 5


@pytest.mark.slow
def test_ten_thousand_recordings(tmp_path: Path):
    """One step; a recording is looked at once, not once for every other."""
    small = noise(10)
    settings = write_data(tmp_path, {f"r{n}": (small, [(2, 4, "run")]) for n in range(10_000)})
    run = train(tmp_path / "mine.yaml", tmp_path / "run", overrides=[*SETTINGS, *settings, "training.steps=1"])
    assert run.checkpoint.is_dir()
    assert open_features(tmp_path / "features").read("r9999") is not None


def weights(tmp_path: Path, name: str, threads: int, tzoom, *flags: str) -> bytes:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        (tmp_path / "mine.yaml").write_text("seed: 5\n")
        settings = [*specimens.TINY, "training.steps=3", "model.width=64"]
        code, _, err = tzoom("train", tmp_path / "mine.yaml", *settings, "--out", tmp_path / name, *flags)
        assert code == 0, err
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    return (tmp_path / name / "checkpoints" / "step-0000003" / "weights.safetensors").read_bytes()


@pytest.mark.parametrize("threads", [1, 2])
def test_same_seed_same_bytes(threads: int, tmp_path: Path, tzoom):
    assert weights(tmp_path, "one", threads, tzoom) == weights(tmp_path, "two", threads, tzoom)


def test_deterministic_training_does_not_depend_on_threads(tmp_path: Path, tzoom):
    one, two = (weights(tmp_path, str(n), n, tzoom, "--deterministic") for n in (1, 2))
    assert one == two and not torch.are_deterministic_algorithms_enabled()
