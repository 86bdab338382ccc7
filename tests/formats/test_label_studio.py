"""Label Studio: tasks as it takes them, its exports read, and every fault named in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from format_strategies import NAMES, assert_same, importable_segments, rows
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.formats.label_studio import file_stem, label_studio_tasks
from temporalzoom.segments import Segments


def test_label_studio_tasks(tmp_path: Path) -> None:
    found = Segments([0, 1.02, 2], [1, 2, 2.001], ["run", "run", '<b>, "c"'], [0.5, 0.25, 0.75])
    [path] = write_segments(tmp_path / "r.labelstudio.json", {"m": found}, fps=25, media={"m": "/data/m.mp4"})
    [task] = json.loads(path.read_text())
    assert task["data"] == {"video": "/data/m.mp4", "recording": "m"}
    [prediction] = task["predictions"]
    assert prediction["score"] == 0.5 and [r["score"] for r in prediction["result"]] == [0.5, 0.25, 0.75]
    assert {(r["type"], r["from_name"], r["to_name"]) for r in prediction["result"]} == {
        ("timelinelabels", "actions", "video")
    }
    # 25 frames in the first second, numbered 1 to 25; the shortest segment has one frame.
    assert [r["value"] for r in prediction["result"]] == [
        {"ranges": [{"start": 1, "end": 25}], "timelinelabels": ["run"]},
        {"ranges": [{"start": 27, "end": 50}], "timelinelabels": ["run"]},
        {"ranges": [{"start": 51, "end": 51}], "timelinelabels": ['<b>, "c"']},
    ]
    [task] = label_studio_tasks({"m": found})
    assert task["data"] == {"signal": "m", "recording": "m"}
    first = task["predictions"][0]["result"][0]
    assert first["type"] == "timeserieslabels"
    assert first["value"] == {"start": 0.0, "end": 1.0, "instant": False, "timeserieslabels": ["run"]}
    with pytest.raises(InputError, match="fps"):
        write_segments(path, {"m": found}, fps=0)


@given(st.dictionaries(NAMES, importable_segments(), min_size=1, max_size=3), st.sampled_from([25, 29.97]))
def test_frames_come_back_to_half_a_frame(
    tmp_path_factory: pytest.TempPathFactory, results: dict[str, Segments], fps: float
) -> None:
    [path] = write_segments(tmp_path_factory.mktemp("round") / "r.labelstudio.json", results, fps=fps)
    back = import_annotations([path], fps=fps, predictions=True)
    assert_same(results, back.truth(), 0.5 / fps + 1e-9)
    assert {recording.fps for recording in back.recordings.values()} == {fps}


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


def test_one_annotation_of_a_task_counts(tmp_path: Path, fails: Callable[..., None]) -> None:
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
        ({"results": {}}, ["own form"]),
        ({"tasks": []}, ["must be a list"]),
    ],
)
def test_faults_of_label_studio_files(
    tmp_path: Path, fails: Callable[..., None], document: Any, words: list[str]
) -> None:
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
