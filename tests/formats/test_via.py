"""VIA projects: the parts that VIA asks for, every kind of attribute, and faults."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from format_strategies import rows

from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.segments import Segments

OPTIONS = {"0": "walk", "1": "run"}


def project(*entries: dict[str, Any], **attributes: dict[str, Any]) -> dict[str, Any]:
    """One video; attributes by their identifiers, `a1=...`."""
    return {
        "project": {"pid": "x", "vid_list": ["1"]},
        "config": {},
        "attribute": {key[1:]: value for key, value in attributes.items()},
        "file": {"7": {"fid": "7", "fname": "day1.mp4", "type": 4, "loc": 1, "src": ""}},
        "metadata": {f"1_{i}": {"vid": "1", "flg": 0, "xy": [], **entry} for i, entry in enumerate(entries)},
        "view": {"1": {"fid_list": ["7"]}},
    }


def attribute(kind: int, name: str = "action") -> dict[str, Any]:
    return {"aname": name, "anchor_id": "FILE1_Z2_XY0", "type": kind, "options": OPTIONS, "default_option_id": ""}


@pytest.mark.parametrize(
    ("kind", "value", "labels"),
    [
        (1, "0", ["0"]),
        (1, "walk, run", ["walk, run"]),
        (2, "0,1", ["run", "walk"]),
        (3, "1", ["run"]),
        (4, "0", ["walk"]),
    ],
)
def test_kinds_of_attributes(tmp_path: Path, kind: int, value: str, labels: list[str]) -> None:
    """Text, checkboxes, radio buttons, a selection."""
    path = tmp_path / "p.json"
    region = {"z": [0.5], "xy": [2, 1, 1, 5, 5], "av": {"1": value}}
    path.write_text(json.dumps(project({"z": [1.5, 2], "av": {"1": value}}, region, a1=attribute(kind))))
    read = import_annotations([path])
    assert rows(read.truth()["day1"]) == [(label, 1.5, 2.0) for label in labels]
    assert "1 regions" in read.notes[0]


def test_two_attributes_are_a_question(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = tmp_path / "p.json"
    entry = {"z": [1, 2], "av": {"1": "0", "2": "Ann"}}
    path.write_text(json.dumps(project(entry, a1=attribute(4), a2=attribute(1, "person"))))
    fails([path], ["'action' ('walk')", "'person' ('Ann')", '--columns label="action"', "from 1 to 2 s"])
    assert import_annotations([path], columns={"label": "person"}).classes == ("Ann",)
    fails([path], ["'who'", "action, person"], columns={"label": "who"})
    fails([path], ["label only"], columns={"start": "z"})


def test_what_is_written_for_via(tmp_path: Path) -> None:
    found = {"v": Segments([1], [2], ["run"]), "w": Segments.empty()}
    [path] = write_segments(tmp_path / "r.via.json", found, media={"v": "https://host/v.mp4", "w": "w.wav"})
    document = json.loads(path.read_text())
    assert list(document) == ["project", "config", "attribute", "file", "metadata", "view"]
    assert document["project"]["vid_list"] == list(document["view"]) == list(document["file"]) == ["1", "2"]
    assert [(f["fname"], f["type"], f["loc"]) for f in document["file"].values()] == [("v.mp4", 4, 2), ("w.wav", 8, 1)]
    [entry] = document["metadata"].values()
    [labels] = document["attribute"].values()
    assert labels["options"][entry["av"]["1"]] == "run"
    back = import_annotations([path.rename(tmp_path / "plain.json")]).truth()
    assert {name: len(segments) for name, segments in back.items()} == {"v": 1, "w": 0}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (project({"z": [2, 1], "av": {"1": "0"}}, a1=attribute(4)), ["1_0", "end 1", "start 2"]),
        (project({"z": [1, "x"], "av": {"1": "0"}}, a1=attribute(4)), ["1_0", "'x'"]),
        (project({"z": [1, 2], "av": {}}, a1=attribute(4)), ["1_0", "no label"]),
        (project({"z": [1, 2], "vid": "9", "av": {"1": "0"}}, a1=attribute(4)), ["1_0", "'9'"]),
        ({**project(a1=attribute(4)), "view": {"1": {"fid_list": ["8"]}}}, ["view '1'", "its file"]),
        ({**project(a1=attribute(4)), "view": {}}, ["no files"]),
        (project(a1=attribute(4)), ["no annotation"]),
    ],
)
def test_faults_of_projects(tmp_path: Path, fails: Callable[..., None], document: Any, words: list[str]) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(document))
    fails([path], [str(path), *words])
