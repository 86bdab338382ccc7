"""Tables: written exactly, those of others read, and every fault named in one line."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from format_strategies import TEXT, any_segments, rows
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.formats.interface import as_meant
from temporalzoom.segments import Segments


@given(st.dictionaries(TEXT, any_segments(min_size=1), max_size=3))
def test_tables_as_the_csv_module_reads_them(
    tmp_path_factory: pytest.TempPathFactory, results: dict[str, Segments]
) -> None:
    """Exactly, scores too: the shortest decimals that give the same number."""
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        [path] = write_segments(tmp_path_factory.mktemp("round") / f"r{suffix}", results)
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file, delimiter=delimiter)
        assert header == ["video", "start", "end", "label", "score"]
        expected = [(video, *row) for video, found in results.items() for row in found]
        rows = [(as_meant(v), float(s), float(e), as_meant(label), float(p)) for v, s, e, label, p in lines]
        assert rows == expected


@pytest.mark.parametrize(
    "text",
    [
        "video,start,end,label\nday1,61.5,62,run\nday1,62,63.25,jump\nday2,,,\n",
        "\ufeffFile;Onset;Offset;Behaviour;comment\r\nday1.mp4;61,5;62;run;\r\nday1.mp4;62;63,25;jump;x\r\nday2.mp4;;;;\r\n",
        "Class\tT2\tT1\tRecording\nrun\t1:02\t1:01.5\tday1\n jump \t0:01:03.25\t62\tday1\n\t\t\tday2\n\n",
    ],
)
def test_tables_of_others(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    truth = import_annotations([path]).truth()
    assert {name: rows(found) for name, found in truth.items()} == {
        "day1": [("jump", 62.0, 63.25), ("run", 61.5, 62.0)],
        "day2": [],
    }


def test_subsets_and_durations_of_tables(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,begin,stop,action,split,duration,fold\na,1,2,x,train,30,A\na,3,4,x,,,A\nb,1,2,x,test,40,B\n")
    read = import_annotations([path]).recordings
    assert [(r.subset, r.duration) for r in read.values()] == [("train", 30), ("test", 40)]
    read = import_annotations([path], subset_column="fold", durations=["50", "b=60"]).recordings
    assert [(r.subset, r.duration) for r in read.values()] == [("A", 30), ("B", 60)]
    read = import_annotations([path], test=["a"]).recordings
    assert [r.subset for r in read.values()] == ["test", "train"]
    fails([path], ["'folds'"], subset_column="folds")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("video,start,end,label\n", ["no rows"]),
        ("video,start,label\nv,1,a\n", ["'end'", "stop"]),
        ("video,start,end,label\nv,1,2,a\nv,one,2,a\n", ["line 3", "start", "'one'"]),
        ("video,start,end,label\nv,1:75,2,a\n", ["line 2", "'1:75'"]),
        ("video,start,end,label\nv,inf,2,a\n", ["line 2", "'inf'"]),
        ("video,start,end,label\nv,2,1,a\n", ["line 2", "end 1", "start 2"]),
        ("video,start,end,label\nv,1,2,\n", ["line 2", "label"]),
        ("video,start,end,label\n,1,2,a\n", ["line 2", "name"]),
        ("video,start,end,label\nv,,,\n", ["no annotation"]),
        ("video,start,end,label,subset\nv,1,2,a,x\nv,1,2,a,y\n", ["line 3", "subset", "'y'", "'x'"]),
        ("video,start,end,label,duration\nv,5,7,a,3\n", ["line 2", "duration 3", "whole recording"]),
    ],
)
def test_faults_of_tables(tmp_path: Path, fails: Callable[..., None], text: str, words: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    fails([path], [str(path), *words])
