"""Two writers of one file, a clock that jumps."""

import itertools
import os
import threading
import time
from pathlib import Path

import specimens

from temporalzoom.atomic import replacing
from temporalzoom.formats import read_predictions, write_segments
from temporalzoom.segments import Segments
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
