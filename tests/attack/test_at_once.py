"""Two writers of one file, a file that changes while it is read, a clock that jumps."""

import itertools
import json
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import specimens

from temporalzoom.atomic import replacing
from temporalzoom.config import load_config
from temporalzoom.errors import InputError
from temporalzoom.formats import read_annotations, read_any_annotations, read_predictions, write_segments
from temporalzoom.segments import Segments
from temporalzoom.signals.signal_files import find_recordings, read_signal
from temporalzoom.workflows.train import train


def test_of_two_writers_one_wins_whole(tmp_path: Path):
    path = tmp_path / "found.json"
    sides = [{"a": Segments([n], [n + 1], [f"label {n}"])} for n in range(2)]
    write_segments(path, sides[0])
    done = threading.Event()

    def write(side: int) -> None:
        while not done.is_set():
            write_segments(path, sides[side])

    writers = [threading.Thread(target=write, args=(side,)) for side in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(200):
            found = read_predictions(path)["a"]
            assert list(found) in [list(side["a"]) for side in sides]
    finally:
        done.set()
        for writer in writers:
            writer.join()
    assert [file.name for file in tmp_path.iterdir()] == ["found.json"]


@pytest.mark.parametrize("name", ["annotations.json", "table.csv", "signals.npz", "signal.csv", "mine.yaml"])
def test_a_file_that_changes_while_it_is_read_is_one_line_or_a_right_result(name: str, tmp_path: Path):
    """Another program writes it in place: now half, now whole, now longer."""
    path = tmp_path / name
    wholes = [content(name, tmp_path / "made", count) for count in (3, 300)]
    done = threading.Event()

    def write() -> None:
        for whole in itertools.cycle(wholes):
            if done.is_set():
                break
            with path.open("wb") as file:  # cut to nothing, then written in two pieces
                file.write(whole[: len(whole) // 2])
                file.flush()
                file.write(whole[len(whole) // 2 :])

    path.write_bytes(wholes[0])
    counts: set[int] = set()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(150):
            with suppress(InputError):
                counts.add(READERS[name](path))
    finally:
        done.set()
        writer.join()
    if not name.endswith(".csv"):  # half a table is a table
        assert counts <= {3, 300, 1200}  # the last: the default of an empty configuration
    path.write_bytes(wholes[1])
    assert READERS[name](path) == 300


READERS = {
    "annotations.json": lambda path: len(read_annotations(path).recordings["a"].segments),
    "table.csv": lambda path: len(read_any_annotations(path).recordings["a"].segments),
    "signals.npz": lambda path: len(read_signal(find_recordings(path)["a"]).values),
    "signal.csv": lambda path: len(read_signal(path).values),
    "mine.yaml": lambda path: load_config(path).training.steps,
}


def content(name: str, path: Path, count: int) -> bytes:
    if name == "annotations.json":
        rows = [{"label": "x", "segment": [n, n + 0.5]} for n in range(count)]
        return json.dumps({"database": {"a": {"annotations": rows}}}).encode()
    if name == "table.csv":
        return ("recording,start,end,label\n" + "".join(f"a,{n},{n + 0.5},x\n" for n in range(count))).encode()
    if name == "signal.csv":
        return ("time,ax\n" + "".join(f"{n / 10:.1f},{n % 7}\n" for n in range(count))).encode()
    if name == "signals.npz":
        with path.open("wb") as file:
            np.savez(file, a=np.ones((count, 2), np.float32))
        return path.read_bytes()
    return (f"training: {{steps: {count}}}\n" + "#\n" * 400).encode()


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "x.txt"
    path.write_text("old")
    try:
        with replacing(path) as file:
            file.write("new")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["x.txt"]


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch):
    (tmp_path / "mine.yaml").write_text("seed: 1\n")
    settings = [*specimens.TINY, "training.steps=4", "training.checkpoint_every=2"]
    one = train(tmp_path / "mine.yaml", tmp_path / "one", overrides=settings).checkpoint
    jumps = itertools.cycle([0.0, 4e9, -1e6, 1.0])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    two = train(tmp_path / "mine.yaml", tmp_path / "two", overrides=settings).checkpoint
    assert (one / "weights.safetensors").read_bytes() == (two / "weights.safetensors").read_bytes()
