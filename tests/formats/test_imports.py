"""Imports: what the exports write comes back, files of other tools are read, and every fault is named in one line."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pympi
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.formats.annotations import read_annotations
from temporalzoom.formats.label_studio import file_stem
from temporalzoom.segments import Segments

# As in the tests of the exports; spaces at the ends of a label do not survive an import.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
AWKWARD = ["a --> b", "<b>x</b>", "&lt;", "two\n\nlines", 'say "hi", twice', "a\rb", "a\r\nb", "跳高", "a;b", "\x01x"]
LABELS = (TEXT | st.sampled_from(AWKWARD)).map(str.strip).filter(lambda label: label and label.lower() != "ambiguous")
NAMES = st.text("abcXYZ019-_./ ü&<,\"'", min_size=1, max_size=8).map(str.strip).filter(bool)


@st.composite
def segments(draw: st.DrawFn) -> Segments:
    """At least one, each at least 40 ms long."""
    row = st.tuples(st.floats(0, 40_000), st.floats(0.04, 100), LABELS, st.floats(0, 1))
    rows = draw(st.lists(row, min_size=1, max_size=5))
    starts, lengths, labels, scores = zip(*rows, strict=True)
    return Segments(starts, [s + length for s, length in zip(starts, lengths, strict=True)], labels, scores)


def rows(found: Segments, label: Callable[[str], str] = str) -> list[tuple[str, float, float]]:
    return sorted((label(name), start, end) for start, end, name, _ in found)


def same(results: dict[str, Segments], back: dict[str, Segments], seconds: float, label: Callable[[str], str]) -> None:
    assert back.keys() == results.keys()
    for name, found in results.items():
        # In the order of the starts, times first: rounding may swap equal labels.
        for times in ("starts", "ends"):
            for word in {label(one) for one in found.labels.tolist()}:
                mine = sorted(t for t, w in zip(getattr(found, times), found.labels, strict=True) if label(w) == word)
                theirs = sorted(getattr(back[name].filter(labels=word), times))
                assert mine == pytest.approx(theirs, abs=seconds, rel=0)
        assert len(back[name]) == len(found)


def in_xml(label: str) -> str:
    kept = re.sub("\r\n?", "\n", label)
    return "".join(c if c in "\t\n" or (" " <= c and c not in "\ufffe\uffff") else "\ufffd" for c in kept)


@given(st.dictionaries(NAMES, segments(), min_size=1, max_size=3))
def test_csv_comes_back_exactly(tmp_path_factory: pytest.TempPathFactory, results: dict[str, Segments]) -> None:
    [path] = write_segments(tmp_path_factory.mktemp("round") / "r.csv", results)
    back = import_annotations([path])
    assert {name: rows(found) for name, found in back.truth().items()} == {
        name: rows(found) for name, found in results.items()
    }


@given(NAMES, segments())
def test_elan_comes_back_to_the_millisecond(
    tmp_path_factory: pytest.TempPathFactory, name: str, found: Segments
) -> None:
    [path] = write_segments(tmp_path_factory.mktemp("round") / "r.eaf", {name: found})
    same({name: found}, import_annotations([path]).truth(), 0.000501, in_xml)


@given(st.dictionaries(NAMES, segments(), min_size=1, max_size=3), st.sampled_from([None, 25, 29.97]))
def test_label_studio_comes_back(
    tmp_path_factory: pytest.TempPathFactory, results: dict[str, Segments], fps: float | None
) -> None:
    """Exactly in seconds, to half a frame in frames."""
    [path] = write_segments(tmp_path_factory.mktemp("round") / "r.labelstudio.json", results, fps=fps)
    back = import_annotations([path], fps=fps, predictions=True)
    same(results, back.truth(), 0 if fps is None else 0.5 / fps + 1e-9, str)
    assert {recording.fps for recording in back.recordings.values()} == {fps}


# ELAN


def elan(path: Path, build: Callable[[pympi.Elan.Eaf], None]) -> Path:
    """A file that pympi wrote."""
    document = pympi.Elan.Eaf(author="tests")
    document.remove_tier("default")
    build(document)
    document.to_file(str(path))
    return path


def behaviour(document: pympi.Elan.Eaf) -> None:
    document.add_linguistic_type("below", constraints="Symbolic_Association", timealignable=False)
    document.add_tier("rat A")
    document.add_tier("groom")
    document.add_tier("sure?", ling="below", parent="rat A")
    document.add_annotation("rat A", 1000, 2500, " sniff ")
    document.add_annotation("rat A", 2500, 3001, "rear")
    document.add_annotation("groom", 2000, 2600, "")
    document.add_ref_annotation("sure?", "rat A", 1500, "yes")


def test_elan_files_of_others(tmp_path: Path) -> None:
    path = elan(tmp_path / "day1.eaf", behaviour)
    read = import_annotations([path], fps=30, durations=["60"])
    assert list(read.recordings) == ["day1"] and read.classes == ("groom", "rear", "sniff")
    assert rows(read.truth()["day1"]) == [("groom", 2.0, 2.6), ("rear", 2.5, 3.001), ("sniff", 1.0, 2.5)]
    assert (read.recordings["day1"].fps, read.recordings["day1"].duration) == (30, 60)
    [note] = read.notes
    assert "sure?" in note
    # A dependent tier has the times of its parent; the tier's name may be the label.
    assert rows(import_annotations([path], tiers=["sure?"]).truth()["day1"]) == [("yes", 1.0, 2.5)]
    read = import_annotations([path], tiers=["rat A"], label_from="tier")
    assert rows(read.truth()["day1"]) == [("rat A", 1.0, 2.5), ("rat A", 2.5, 3.001)]


def test_a_folder_of_elan_files(tmp_path: Path) -> None:
    elan(tmp_path / "day1.eaf", behaviour)
    elan(tmp_path / "day2.eaf", lambda document: document.add_tier("rat A"))
    (tmp_path / "annotations.json").write_text("{}")
    read = import_annotations([tmp_path], test=["day2"], ignore=tmp_path / "annotations.json", tiers=["groom"])
    assert {name: (r.subset, len(r.segments)) for name, r in read.recordings.items()} == {
        "day1": ("train", 1),
        "day2": ("test", 0),
    }
    assert any("day2" in note for note in read.notes)
    with pytest.raises(InputError, match=r"several formats \(\.eaf, \.json\)"):
        import_annotations([tmp_path])
    (tmp_path / "other").mkdir()
    elan(tmp_path / "other" / "day1.eaf", behaviour)
    with pytest.raises(InputError, match=r"other.*'day1' is already described in .*day1\.eaf"):
        import_annotations([tmp_path / "day1.eaf", tmp_path / "other"])


DOCUMENT = """<ANNOTATION_DOCUMENT><HEADER/><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="500"/>
<TIME_SLOT TIME_SLOT_ID="t2" TIME_VALUE="900"/><TIME_SLOT TIME_SLOT_ID="t3"/></TIME_ORDER><TIER TIER_ID="acts">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a7" TIME_SLOT_REF1="t1" TIME_SLOT_REF2="t2">
<ANNOTATION_VALUE>run</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER></ANNOTATION_DOCUMENT>"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (DOCUMENT, " \n", ["empty"]),
        (DOCUMENT, "<html/>", ["'html'"]),
        ("</TIER>", "", ["not an ELAN file", "line 4"]),
        ('"900"', '"400"', ["'acts'", "a7", "end 0.4", "start 0.5"]),
        ('"900"', '"soon"', ["a7", "t2", "'soon'"]),
        ('REF2="t2"', 'REF2="t3"', ["a7", "t3", "no time"]),
        ('REF2="t2"', 'REF2="t9"', ["a7", "'t9'"]),
        ("<HEADER/>", '<HEADER TIME_UNITS="PAL-frames"/>', ["PAL-frames"]),
        ("</TIER>", '</TIER><TIER TIER_ID="acts"/>', ["two tiers", "'acts'"]),
        (re.search("<ANNOTATION>.*</ANNOTATION>", DOCUMENT, re.S)[0], "", ["no annotation"]),
    ],
)
def test_faults_of_elan_files(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    path = tmp_path / "day1.eaf"
    path.write_text(DOCUMENT)
    assert rows(import_annotations([path]).truth()["day1"]) == [("run", 0.5, 0.9)]
    assert old in DOCUMENT
    path.write_text(DOCUMENT.replace(old, new))
    fails([path], [str(path), *words])


def fails(paths: list[Path], words: list[str], **options: Any) -> None:
    with pytest.raises(InputError) as caught:
        import_annotations(paths, **options)
    message = str(caught.value)
    assert "\n" not in message and all(word in message for word in words), message


# Label Studio


def task(number: int, address: str, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": number, "data": {"video": address}, "annotations": [{"id": 9, "result": list(results), **more}]}


def timeline(start: int, end: int, *labels: str) -> dict[str, Any]:
    value = {"ranges": [{"start": start, "end": end}], "timelinelabels": list(labels)}
    return {"id": "r1", "type": "timelinelabels", "from_name": "l", "to_name": "v", "value": value}


def sound(start: float, end: float, label: str) -> dict[str, Any]:
    value = {"start": start, "end": end, "channel": 0, "labels": [label]}
    return {"id": "r2", "type": "labels", "original_length": 12.5, "value": value}


def test_label_studio_exports(tmp_path: Path) -> None:
    tasks = [
        task(1, "/data/upload/3/1a2b3c4d-match7.mp4", timeline(1, 25, "run", "jump"), {"type": "videorectangle"}),
        task(2, "s3://bucket/match8.wav", sound(0.5, 1.5, "run")),
        task(3, "match9.mp4"),
        task(4, "match10.mp4", timeline(1, 2, "run"), was_cancelled=True),
    ]
    path = tmp_path / "project-1.json"
    path.write_text(json.dumps(tasks))
    read = import_annotations([path], fps=25, durations=["match7=20"])
    assert {name: rows(found) for name, found in read.truth().items()} == {
        "match7": [("jump", 0.0, 1.0), ("run", 0.0, 1.0)],
        "match8": [("run", 0.5, 1.5)],
        "match9": [],
    }
    assert [recording.duration for recording in read.recordings.values()] == [20, 12.5, None]
    notes = " ".join(read.notes)
    assert all(words in notes for words in ("1 tasks without annotation: 4", "1 videorectangle", "actions: match9"))


def test_one_annotation_of_a_task_counts(tmp_path: Path) -> None:
    both = task(5, "v.mp4", timeline(1, 25, "run"))
    both["annotations"].append({"id": 10, "result": [timeline(26, 50, "run")]})
    path = tmp_path / "p.json"
    path.write_text(json.dumps([both]))
    fails([path], [str(path), "task 5", "9, 10", "ground truth"], fps=25)
    both["annotations"][1]["ground_truth"] = True
    path.write_text(json.dumps([both]))
    assert rows(import_annotations([path], fps=25).truth()["v"]) == [("run", 1.0, 2.0)]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([task(5, "v.mp4", timeline(1, 25, "run"))], ["task 5", "r1", "--fps"]),
        ([task(5, "v.mp4", sound(2, 1, "run"))], ["task 5", "r2", "end 1", "start 2"]),
        ([task(5, "v.mp4", sound("soon", 1, "run"))], ["task 5", "r2", "'start'", "'soon'"]),
        ([task(5, "v.mp4", timeline(1, 25))], ["task 5", "r1", "no label"]),
        ([task(5, "v.mp4", sound(0, 1, "a")), task(6, "b/v.wav", sound(0, 1, "a"))], ["task 6", "'v'", "task 5"]),
        ([{"id": 5, "data": {"video": "v.mp4"}, "predictions": []}], ["no task was annotated", "--predictions"]),
        ([{"id": 5, "video": "v.mp4", "label": []}], ["task 5", "JSON-MIN"]),
        ([task(5, "", sound(0, 1, "a"))], ["task 5", "names no file"]),
        ({"database": {}}, ["own form"]),
        ({"tasks": []}, ["must be a list"]),
    ],
)
def test_faults_of_label_studio_files(tmp_path: Path, document: Any, words: list[str]) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    fails([path], [str(path), *words])


@pytest.mark.parametrize(
    ("address", "stem"),
    [
        ("/data/upload/3/1a2b3c4d-match7.mp4", "match7"),
        ("/data/local-files/?d=videos/day%201/match7.mp4", "match7"),
        ("https://host/a/match%207.mp4?token=x/y.z", "match 7"),
        ("videos/1a2b3c4d-match7.part.mp4", "1a2b3c4d-match7.part"),
        ("http://[", ""),
    ],
)
def test_names_behind_addresses(address: str, stem: str) -> None:
    assert file_stem(address) == stem


# Tables


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


def test_subsets_and_durations_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,begin,stop,action,split,duration,fold\na,1,2,x,train,30,A\na,3,4,x,,,A\nb,1,2,x,test,40,B\n")
    read = import_annotations([path]).recordings
    assert [(r.subset, r.duration) for r in read.values()] == [("train", 30), ("test", 40)]
    read = import_annotations([path], subset_column="fold", durations=["50", "b=60"]).recordings
    assert [(r.subset, r.duration) for r in read.values()] == [("A", 30), ("B", 60)]
    read = import_annotations([path], test=["a"]).recordings
    assert [r.subset for r in read.values()] == ["test", "train"]
    fails([path], ["'folds'"], subset_column="folds")
    fails([path], ["--test", "'c*'"], test=["c*"])
    fails([path], ["--duration", "'c'"], durations=["c=1"])
    fails([path], ["--duration", "'long'"], durations=["long"])
    fails([path], ["--tier", "ELAN"], tiers=["x"])
    fails([path], ["--fps", "-1"], fps=-1.0)


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
        ("video,start,end,label,duration\nv,5,7,a,2\n", ["line 2", "duration 2", "whole recording"]),
    ],
)
def test_faults_of_tables(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    fails([path], [str(path), *words])


def test_ambiguous_spans_stay_ambiguous(tmp_path: Path, tzoom: Callable[..., tuple[int, str, str]]) -> None:
    (tmp_path / "t.csv").write_text("video,start,end,label\nv,1,2,run\nv,3,4,ambiguous\n")
    read = import_annotations([tmp_path / "t.csv"])
    assert read.classes == ("run",) and rows(read.ambiguous()["v"]) == [("Ambiguous", 3.0, 4.0)]
    assert tzoom("data", "import", tmp_path / "t.csv", "--out", tmp_path / "a.json")[0] == 0
    assert read_annotations(tmp_path / "a.json") == read


# The command


def test_the_command(tmp_path: Path, tzoom: Callable[..., tuple[int, str, str]]) -> None:
    elan(tmp_path / "day1.eaf", behaviour)
    elan(tmp_path / "day2.eaf", behaviour)
    out = tmp_path / "annotations.json"
    arguments = [tmp_path, "--out", out, "--fps", 30, "--tier", "rat A", "--tier", "groom", "--test", "day2"]
    for _ in range(2):  # the second time its own result lies in the folder
        code, printed, _ = tzoom("data", "import", *arguments)
        assert code == 0 and "2 recordings, 6 instances, 3 classes" in printed and "sniff" in printed
    read = read_annotations(out)
    assert [(r.subset, r.fps, r.duration) for r in read.recordings.values()] == [
        ("train", 30, None),
        ("test", 30, None),
    ]
    before = out.read_bytes()
    code, _, error = tzoom("data", "import", tmp_path / "day1.eaf", "--out", out, "--tier", "rat B")
    assert code == 2 and "day1.eaf: no tier 'rat B'; present are rat A, groom, sure?" in error
    assert out.read_bytes() == before
    for path, word in ((tmp_path / "absent.eaf", "no such file"), (Path(__file__), ".eaf, .json, .csv, .tsv")):
        code, _, error = tzoom("data", "import", path, "--out", out)
        assert code == 2 and word in error


SAMPLES = {
    ".eaf": DOCUMENT.encode(),
    ".json": json.dumps([task(5, "v.mp4", timeline(1, 25, "run"), sound(0.5, 1.5, "jump"))]).encode(),
    ".csv": b"video,start,end,label,subset,duration\nv,1:01.5,62,run,train,90\n",
}


@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_damaged_files_are_input_errors(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    """A piece of the file replaced by something else: it is read, or refused in one line, and nothing else happens."""
    content = SAMPLES[suffix]
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, min(first + 12, len(content))))
    piece = data.draw(st.sampled_from([b"", b"null", b"[]", b"{}", b"-1", b"1e999", b'"', b"\xff", b"\0", b",", b"\n"]))
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    path.write_bytes(content[:first] + piece + content[last:])
    try:
        read = import_annotations([path], fps=25)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        assert all((found.durations > 0).all() for found in read.truth().values())
