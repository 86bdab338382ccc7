"""The data sets that pages name as `data/...`: some recordings of the real ones, or noise in the same form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

# By experiment, as UCI counts: the person. 2 and 4 are of the test subset.
SBHAR_PEOPLE = {1: 1, 3: 2, 5: 3, 7: 4, 9: 5, 11: 6}
TUG_RUNS = [f"s{person:02d}_01_sp" for person in range(1, 10)]
RATS = ("rat01", "rat02", "rat45", "rat50")
SALADS = {"07-1": "train", "11-1": "train", "03-1": "test", "06-1": "test"}
THUMOS_VIDEOS = ("video_validation_0000190", "video_validation_0000986", "video_test_0000062", "video_test_0000846")
Entries = dict[str, dict[str, Any]]


def write_data_sets(folder: Path, real: Path) -> None:
    """All of them below `folder`. real: the folder of the real ones, of which a few recordings are cut out; a data set
    that is not there is made of noise."""

    def source(name: str) -> Path | None:
        return real / name if (real / name).is_dir() else None

    write_sbhar(folder / "sbhar", source("sbhar"))
    write_tug(folder / "tug", source("tug"))
    write_rats(folder / "rats", source("rats"))
    write_salads(folder / "salads50", source("salads50"))
    write_thumos14(folder / "thumos14/annotations/thumos14.json", folder / "thumos14/i3d_features", source("thumos14"))
    write_thumos14(folder / "thumos14.json", folder / "i3d", source("thumos14"))


def write_sbhar(folder: Path, real: Path | None = None, rows: int = 2500) -> Path:
    """A folder as UCI publishes it: the first minute of six recordings of six people."""
    random = np.random.default_rng(0)
    raw = folder / "RawData"
    raw.mkdir(parents=True)
    names = "1 WALKING\n2 SITTING\n" if real is None else (real / "activity_labels.txt").read_text()
    (folder / "activity_labels.txt").write_text(names)
    labels = [f"{e} {p} {a} {600 * a} {600 * a + 400}" for e, p in SBHAR_PEOPLE.items() for a in (1, 2)]
    if real is not None:
        lines = (real / "RawData/labels.txt").read_text().splitlines()
        labels = [line for line in lines if int(line.split()[0]) in SBHAR_PEOPLE and int(line.split()[-1]) <= rows]
    (raw / "labels.txt").write_text("\n".join(labels) + "\n")
    for experiment, person in SBHAR_PEOPLE.items():
        for sensor in ("acc", "gyro"):
            name = f"{sensor}_exp{experiment:02d}_user{person:02d}.txt"
            if real is None:
                np.savetxt(raw / name, random.normal(size=(rows, 3)))
            else:
                lines = (real / "RawData" / name).read_text().splitlines()[:rows]
                (raw / name).write_text("\n".join(lines) + "\n")
    return folder


def write_tug(folder: Path, real: Path | None = None) -> None:
    """phone.json and phone.npz: one run each of nine people, of whom seven are the test."""
    folder.mkdir(parents=True)
    entries = noise_entries(TUG_RUNS, ("SEATED", "WALKING"), 100.0, 6.0)
    for name in TUG_RUNS:
        entries[name]["subject"] = name[:3]
    write_annotations(folder / "phone.json", real and real / "phone.json", entries)
    write_signals(folder / "phone.npz", real and real / "phone.npz", TUG_RUNS, (600, 6))


def write_rats(folder: Path, real: Path | None = None, frames: int = 3000) -> None:
    """Both annotation files and pose.npz: two recordings to train on and two of the test, their first frames."""
    folder.mkdir(parents=True)
    for name in ("coarse.json", "fine.json"):
        entries = noise_entries(RATS, ("social", "nonsocial"), 1.0, frames)
        write_annotations(folder / name, real and real / name, entries, frames)
    write_signals(folder / "pose.npz", real and real / "pose.npz", RATS, (frames, 30), frames)


def write_salads(folder: Path, real: Path | None = None, seconds: int = 240) -> None:
    """Two recordings to train on and two of the test, their first seconds."""
    folder.mkdir(parents=True)
    entries = noise_entries(SALADS, ("c00", "c01"), 1.0, seconds)
    for name, subset in SALADS.items():
        entries[name]["subset"] = subset
    write_annotations(folder / "annotations.json", real and real / "annotations.json", entries, seconds)
    write_signals(folder / "scores.npz", real and real / "scores.npz", list(SALADS), (seconds, 18), seconds)


def write_thumos14(annotations: Path, features: Path, real: Path | None = None) -> None:
    """The annotations of four videos, and features of noise, which are published for neither case."""
    random = np.random.default_rng(0)
    annotations.parent.mkdir(parents=True, exist_ok=True)
    features.mkdir(parents=True)
    entries = noise_entries(THUMOS_VIDEOS, ("CricketBowling", "Diving"), 30.0, 40.0)
    for name in THUMOS_VIDEOS:
        entries[name]["subset"] = "Test" if "test" in name else "Validation"
    for name, entry in write_annotations(annotations, real and real / "thumos14.json", entries).items():
        positions = int((entry["duration"] * entry["fps"] - 16) / 4) + 1  # 16 frames every 4
        np.save(features / f"{name}.npy", random.normal(size=(positions, 32)).astype(np.float32))


def noise_entries(names: Sequence[str], labels: Sequence[str], fps: float, seconds: float) -> Entries:
    """One instance of each label in every recording, one after the other with gaps between."""
    step = seconds / len(labels)
    instances = [{"label": label, "segment": [(i + 0.2) * step, (i + 0.7) * step]} for i, label in enumerate(labels)]
    return {name: {"fps": fps, "duration": seconds, "annotations": instances} for name in names}


def write_annotations(path: Path, real: Path | None, entries: Entries, seconds: float | None = None) -> Entries:
    """The entries, or those of the same names in the real file, of which the first seconds are kept. Returns them."""
    tree: dict[str, Any] = {"database": entries}
    if real is not None:
        tree = json.loads(real.read_text(encoding="utf-8"))
        tree["database"] = {name: first_seconds(tree["database"][name], seconds) for name in entries}
    path.write_text(json.dumps(tree))
    return tree["database"]


def first_seconds(entry: dict[str, Any], seconds: float | None) -> dict[str, Any]:
    if seconds is None:
        return entry
    kept = [instance for instance in entry["annotations"] if instance["segment"][1] <= seconds]
    return {**entry, "duration": seconds, "annotations": kept}


def write_signals(
    path: Path, real: Path | None, names: Sequence[str], shape: tuple[int, int], rows: int | None = None
) -> None:
    """An archive with a signal of each name: noise (samples, channels), or the real one, its first rows."""
    random = np.random.default_rng(0)
    if real is None:
        signals = {name: random.normal(size=shape).astype(np.float32) for name in names}
    else:
        with np.load(real) as archive:
            signals = {name: archive[name][:rows] for name in names}
    np.savez(path, **signals)
