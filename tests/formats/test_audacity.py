"""Label tracks of Audacity: written to the letter, those of others read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from format_strategies import any_segments, rows
from hypothesis import given

from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.segments import Segments


def test_a_track_is_exactly_this(tmp_path: Path) -> None:
    found = Segments([2, 0.5], [3.25, 1], ["two\nlines\tand a tab", "song"], [0.5, 1])
    [path] = write_segments(tmp_path / "r.audacity.txt", {"v": found})
    assert path.read_bytes() == b"0.500000\t1.000000\tsong\n2.000000\t3.250000\ttwo lines and a tab\n"


@given(any_segments())
def test_every_line_has_two_numbers_and_a_text(tmp_path_factory: pytest.TempPathFactory, found: Segments) -> None:
    [path] = write_segments(tmp_path_factory.mktemp("audacity") / "r.audacity.txt", {"v": found})
    lines = path.read_bytes().decode().split("\n")[:-1]
    assert len(lines) == len(found)
    for line, (start, end, label, _) in zip(lines, found.sort("start"), strict=True):
        first, last, text = line.split("\t")
        assert float(first) == pytest.approx(start, abs=1e-6)
        assert float(last) == pytest.approx(max(start, end), abs=1e-6)
        assert text.split() == label.split()


def test_tracks_of_others(tmp_path: Path) -> None:
    """With frequencies, a decimal comma, a label at a point in time, Windows line ends."""
    path = tmp_path / "day1.txt"
    path.write_bytes(b"0.5\t1.25\tsong\r\n\\\t400.0\t8000.0\r\n2,0\t2,5\tcall \r\n3\t3\tclick\r\n")
    read = import_annotations([path])
    assert rows(read.truth()["day1"]) == [("call", 2.0, 2.5), ("song", 0.5, 1.25)]
    assert "1 point events" in read.notes[0] and "'click'" in read.notes[0]
    assert ("click", 2.95, 3.05) in rows(import_annotations([path], point_events=0.1).truth()["day1"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no annotation"]),
        ("a song\n", ["line 1", "between tabs", "'a song'"]),
        ("0\t1\tx\n0 1 x\n", ["line 2"]),
        ("0\tinf\tx\n", ["line 1"]),
        ("2\t1\tx\n", ["line 1", "end 1", "start 2"]),
        ("1\t2\t\n", ["line 1", "label is empty"]),
    ],
)
def test_faults_of_tracks(tmp_path: Path, fails: Callable[..., None], text: str, words: list[str]) -> None:
    path = tmp_path / "day1.txt"
    path.write_text(text)
    fails([path], [str(path), *words])
