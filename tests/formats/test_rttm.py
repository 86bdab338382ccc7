"""RTTM: as pyannote.database reads it, and files of others."""

from collections.abc import Callable
from pathlib import Path

import pytest
from format_strategies import importable_segments, rows
from hypothesis import given
from hypothesis import strategies as st
from pyannote.database.util import load_rttm

from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.segments import Segments

WORD = st.text("abcXYZ019-_.üé跳", min_size=1, max_size=8).filter(
    lambda word: word.lower() not in ("na", "nan", "null")
)


@st.composite
def words(draw: st.DrawFn) -> Segments:
    found = draw(importable_segments())
    return Segments(found.starts, found.ends, [f"x{draw(WORD)}" for _ in range(len(found))], found.scores)


@given(st.dictionaries(WORD.map("r{}".format), words(), min_size=1, max_size=3))
def test_rttm_by_another_program(tmp_path_factory: pytest.TempPathFactory, results: dict[str, Segments]) -> None:
    [path] = write_segments(tmp_path_factory.mktemp("rttm") / "r.rttm", results)
    read = load_rttm(path, keep_type="SPEAKER")
    assert set(read) == set(results)
    for name, found in results.items():
        theirs = sorted((label, s.start, s.end) for s, _, label in read[name].itertracks(yield_label=True))
        assert [row[0] for row in theirs] == [row[0] for row in rows(found)]
        for mine, other in zip(rows(found), theirs, strict=True):
            assert other[1:] == pytest.approx(mine[1:], abs=3e-6)


def test_rttm_of_others(tmp_path: Path) -> None:
    path = tmp_path / "r.rttm"
    path.write_text(
        ";; a comment\nSPKR-INFO day1 1 <NA> <NA> <NA> unknown ann <NA> <NA>\n"
        "SPEAKER day1 1 1.50 2.25 <NA> <NA> ann <NA> <NA>\nSPEAKER day1 1 2 1 <NA> <NA> bob 0.7 <NA>\r\n\n"
        "SPEAKER day2 1 0 1 <NA> <NA> ann\n"
    )
    read = import_annotations([path])
    assert {name: rows(found) for name, found in read.truth().items()} == {
        "day1": [("ann", 1.5, 3.75), ("bob", 2.0, 3.0)],
        "day2": [("ann", 0.0, 1.0)],
    }
    assert "1 'SPKR-INFO'" in read.notes[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["empty"]),
        ("LEXEME v 1 0 1 <NA> <NA> a <NA>\n", ["no line of type SPEAKER"]),
        ("SPEAKER v 1 0 1\n", ["line 1", "8 fields", "5"]),
        ("SPEAKER v 1 zero 1 <NA> <NA> a <NA>\n", ["line 1", "'zero'"]),
        ("SPEAKER v 1 0 nan <NA> <NA> a <NA>\n", ["line 1", "'nan'"]),
        ("SPEAKER v 1 5 0 <NA> <NA> a <NA>\n", ["line 1", "end 5"]),
        ("SPEAKER v 1 5 1 <NA> <NA> <NA> <NA>\n", ["line 1", "label is empty"]),
    ],
)
def test_faults_of_rttm(tmp_path: Path, fails: Callable[..., None], text: str, expected: list[str]) -> None:
    path = tmp_path / "r.rttm"
    path.write_text(text)
    fails([path], [str(path), *expected])
