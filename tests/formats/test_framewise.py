"""One row per frame: DeepEthogram and SimBA, compared with a walk over the frames one by one, and with pandas."""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from format_strategies import LABELS, rows
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.formats.framewise import INDEX
from temporalzoom.segments import Segments

FPS = 25
SUFFIXES = (".deepethogram.csv", ".simba.csv")
NAMED = LABELS.filter(lambda label: label.casefold() not in (*INDEX, "background"))


@st.composite
def whole_frames(draw: st.DrawFn) -> list[tuple[int, int, str]]:
    """`(first frame, frame after the last, label)`"""
    row = st.tuples(st.integers(0, 60), st.integers(1, 20), NAMED)
    return [(first, first + length, label) for first, length, label in draw(st.lists(row, min_size=1, max_size=5))]


def joined(spans: list[tuple[int, int, str]]) -> list[tuple[str, float, float]]:
    """The slow way: frame by frame, which labels are there; runs of frames are actions."""
    found = []
    for label in {label for _, _, label in spans}:
        present = [any(a <= frame < b for a, b, other in spans if other == label) for frame in range(100)]
        for there, run in groupby(range(100), key=present.__getitem__):
            if there:
                frames = list(run)
                found.append((label, frames[0] / FPS, (frames[-1] + 1) / FPS))
    return sorted(found)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(spans=whole_frames())
def test_frames_come_back(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, spans: list[tuple[int, int, str]]
) -> None:
    starts, ends, labels = zip(*spans, strict=True)
    found = Segments(np.array(starts) / FPS, np.array(ends) / FPS, labels)
    target = tmp_path_factory.mktemp("frames") / f"day1{suffix}"
    [path] = write_segments(target, {"day1": found}, fps=FPS, durations={"day1": 4})
    read = import_annotations([path], fps=FPS).recordings["day1"]
    assert rows(read.segments) == joined(spans)
    assert (read.duration, read.fps) == (4, FPS)
    frame = pd.read_csv(path, index_col=0, keep_default_na=False)
    assert len(frame) == 100 and set(np.unique(frame.to_numpy())) <= {0, 1}
    if suffix == ".deepethogram.csv":
        assert frame.columns[0] == "background"
        assert ((frame["background"] == 1) == (frame.iloc[:, 1:].sum(axis=1) == 0)).all()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_writing_needs_the_rate(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InputError, match="fps"):
        write_segments(tmp_path / f"r{suffix}", {"v": Segments([0], [1], ["run"])})


def test_deepethogram_labels(tmp_path: Path, fails: Callable[..., None]) -> None:
    """Recognized by content; frames that nobody has labelled are ambiguous."""
    path = tmp_path / "day1_labels.csv"
    path.write_text(",background,face_groom,dig\n0,1,0,0\n1,0,1,0\n2,0,1,1\n3,-1,-1,-1\n4,-1,-1,-1\n5,0,0,1\n")
    read = import_annotations([path], fps=10)
    recording = read.recordings["day1"]
    assert rows(recording.segments) == [("dig", 0.2, 0.3), ("dig", 0.5, 0.6), ("face_groom", 0.1, 0.3)]
    assert rows(recording.ambiguous) == [("Ambiguous", 0.3, 0.5)]
    assert recording.duration == 0.6 and "2 frames are not labelled" in read.notes[0]
    assert import_annotations([path], fps=10, behaviours=["dig"]).classes == ("dig",)
    fails([path], ["one row per frame", "--fps"])
    fails([path], ["'swim'", "face_groom"], fps=10, behaviours=["swim"])
    path.write_text(",background,dig\n0,1,0\n1,0,3\n")
    fails([path], ["line 3", "'dig'", "3"], fps=10)


def simba_file(path: Path, frames: int = 50, **columns: np.ndarray) -> Path:
    random = np.random.default_rng(3)
    features = {"Ear_left_1_x": random.normal(200, 9, frames), "Movement_mouse_1": random.random(frames)}
    pd.DataFrame({**features, **columns}).to_csv(path)
    return path


def test_simba_targets(tmp_path: Path) -> None:
    """Behaviours stand behind the features. A feature may be 0 and 1 in one file by chance, but not in all."""
    attack = np.arange(50) // 10 % 2
    low = np.zeros(50, int)
    one = simba_file(tmp_path / "one.csv", Low=low, Attack=attack, Sniffing=1 - attack)
    two = simba_file(tmp_path / "two.csv", Low=low + 7, Attack=attack, Sniffing=attack)
    read = import_annotations([one, two], fps=10)
    assert read.classes == ("Attack", "Sniffing")
    assert rows(read.truth()["one"])[:2] == [("Attack", 1.0, 2.0), ("Attack", 3.0, 4.0)]
    assert read.recordings["two"].duration == 5


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_file_of_several_has_all_behaviours(tmp_path: Path, suffix: str) -> None:
    found = {"a": Segments([0], [1], ["run"]), "b": Segments([0], [1], ["rest"]), "c": Segments.empty()}
    written = write_segments(tmp_path / f"all{suffix}", found, fps=10, durations=dict.fromkeys(found, 2.0))
    for path in written:
        assert list(pd.read_csv(path, index_col=0).columns)[-2:] == ["rest", "run"]
    read = import_annotations([tmp_path / "all"], fps=10)
    assert {name: rows(segments) for name, segments in read.truth().items()} == {
        "a": [("run", 0.0, 1.0)], "b": [("rest", 0.0, 1.0)], "c": [],
    }  # fmt: skip
    assert [recording.duration for recording in read.recordings.values()] == [2, 2, 2]


def test_a_file_without_one_of_the_behaviours_is_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("frame,run,rest\n0,1,0\n1,1,0\n")
    (tmp_path / "b.csv").write_text("frame,run\n0,1\n1,0\n")
    read = import_annotations([tmp_path / "a.csv", tmp_path / "b.csv"], fps=10)
    assert "b.csv: no column rest" in read.notes[0]


def test_simba_behaviours_that_are_in_doubt(tmp_path: Path, fails: Callable[..., None]) -> None:
    attack = np.arange(50) // 10 % 2
    path = simba_file(tmp_path / "one.csv", Low_prob_detections_0_1=np.zeros(50, int), Attack=attack)
    fails([path], ["Low_prob_detections_0_1=0, Attack=0", "only Attack=0", "--behaviours Attack"], fps=10)
    assert import_annotations([path], fps=10, behaviours=["Attack"]).classes == ("Attack",)
    fails([path], ["'Ear_left_1_x'", "0 and 1"], fps=10, behaviours=["Ear_left_1_x"])
    fails([path], ["'Bite'", "--behaviours"], fps=10, behaviours=["Bite"])
    fails([path], ["--fps"])
    path = simba_file(tmp_path / "two.csv", Attack=attack, Distance=attack * 0.3)
    fails([path], ["Attack=0", "--behaviours"], fps=10)


def test_faults_of_tables_of_frames(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = tmp_path / "a.simba.csv"
    for text, words in (
        (",Attack\n", ["no frames"]),
        (",Attack\n0,1\n1,x\n", ["line 3", "'x'"]),
        (",Attack\n0,1\n1,1,1\n", ["line 3", "3 cells"]),
        (",Attack,Attack\n0,1,1\n", ["'Attack'", "two columns"]),
        (",Attack\n0,0.5\n", ["0 and 1"]),
    ):
        path.write_text(text)
        fails([path], [str(path), *words], fps=10)
    (tmp_path / "t.csv").write_text("video,start,end,label\nv,1,2,a\n")
    fails([tmp_path / "t.csv"], ["--behaviours", "SimBA"], behaviours=["a"])
