"""JSON, YAML, tables and descriptions that once ended in a traceback. Each stays here."""

import json
from pathlib import Path

import numpy as np
import pytest
from known import annotation, refused

from temporalzoom.config import load_config, parse_yaml
from temporalzoom.errors import InputError
from temporalzoom.formats import read_annotations, read_any_annotations, write_annotations, write_segments
from temporalzoom.formats.json_file import read_predictions
from temporalzoom.inference.onnx_network import from_properties, to_properties
from temporalzoom.json_tree import parse_json
from temporalzoom.runs.description import ModelDescription, describe
from temporalzoom.segments import Segments
from temporalzoom.signals.sidecars import read_sidecar
from temporalzoom.signals.signal_files import read_signal
from temporalzoom.timegrid import TimeGrid

ESC = "\x1b]0;owned\x07\x1b[2J"


# JSON and YAML


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 5000 + "1" + "}" * 5000, "[" * 500 + "]" * 500,
     '"\\ud800"', '{"a\\udfff": 1}', "", "nul", '{"a": 1}}'],
)  # fmt: skip
def test_json_that_nobody_can_work_with(tmp_path: Path, text: str):
    with pytest.raises(ValueError) as caught:
        parse_json(text)
    assert not isinstance(caught.value, UnicodeError)
    path = tmp_path / "a.json"
    path.write_text(text)
    for read in (read_annotations, read_predictions, read_any_annotations):
        refused(read, path)
    (tmp_path / "a.via.json").write_text(text)
    refused(read_any_annotations, tmp_path / "a.via.json")
    (tmp_path / "x.json").write_text(text)
    np.save(tmp_path / "x.npy", np.zeros((3, 2), np.float32))
    refused(read_sidecar, tmp_path / "x.npy")


def test_json_that_is_only_unusual():
    assert parse_json('["\\ud83d\\ude00", 1e999, ' + "1" * 300 + "]")[0] == "😀"
    assert parse_json(json.dumps([[[]]] * 3)) == [[[]]] * 3
    assert parse_json("[-" + "1" * 5000 + "]") == [-np.inf]
    assert parse_json("[" * 99 + "]" * 99)


@pytest.mark.parametrize(
    "text",
    ["!!bool x", "!!timestamp x", "!!int ''", "!!float x", "[" * 5000, "a: " + "{b: " * 3000, "&a [*a]", "!!binary x",
     "{[a]: b}", "!!set {[a]}", "!!python/object:os.system x", "1" * 5000, "1" * 400, "\x00", "a: *b", "!!omap [x]",
     "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n"
                                                       for n in range(1, 12))],
)  # fmt: skip
def test_yaml_that_nobody_can_work_with(tmp_path: Path, text: str):
    with pytest.raises(ValueError):
        parse_yaml(text)
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    refused(load_config, path)
    path.write_text(f"seed: {text}" if "\n" not in text else text)
    refused(load_config, path)
    refused(load_config, None, [f"seed={text}"])


def test_nan_beside_annotations_becomes_null(tmp_path: Path):
    document = annotation(weight=float("nan"), tags=[float("inf"), 1]) | {"note": float("-inf")}
    (tmp_path / "a.json").write_text(json.dumps(document))
    write_annotations(tmp_path / "b.json", read_annotations(tmp_path / "a.json"))
    written = json.loads((tmp_path / "b.json").read_text(), parse_constant=pytest.fail)
    assert written["note"] is None and written["database"]["a"]["tags"] == [None, 1]


def test_names_of_files_that_are_no_text(tmp_path: Path):
    for suffix in (".json", ".csv", ".vtt", ".rttm"):
        assert "Unicode" in refused(
            write_segments, tmp_path / f"x{suffix}", {"a\udce4": Segments([1], [2], ["run\udce4"])}
        )
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [
    {"fps": float("inf")}, {"fps": float("nan")}, {"stride": float("inf")}, {"window": 10**30}, {"length": [1]},
    {"duration": float("-inf")}, {"options": [1]}, {"backbone": None}, {"stride": True}, {"fps": "25"}, {"length": "3"},
])  # fmt: skip
def test_descriptions_beside_features(tmp_path: Path, change: dict[str, object]):
    np.save(tmp_path / "x.npy", np.zeros((3, 2), np.float32))
    described = {"backbone": "motion", "stride": 4, "window": 8, "fps": 25.0, "length": 3, "duration": 1.0}
    (tmp_path / "x.json").write_text(json.dumps(described))
    assert read_sidecar(tmp_path / "x.npy") is not None
    (tmp_path / "x.json").write_text(json.dumps(described | change))
    refused(read_sidecar, tmp_path / "x.npy")


# Tables and ELAN


def test_times_of_400_digits(tmp_path: Path):
    write_segments(tmp_path / "a.eaf", {"a": Segments([1], [2], ["run"])})
    text = (tmp_path / "a.eaf").read_text()
    for digits in ("1" * 5000, "-" + "9" * 19):
        (tmp_path / "b.eaf").write_text(text.replace('"2000"', f'"{digits}"'))
        refused(read_any_annotations, tmp_path / "b.eaf")


@pytest.mark.parametrize(
    "suffix", [".csv", ".tsv", ".srt", ".vtt", ".rttm", ".txt", ".boris.csv", ".simba.csv", ".json"]
)
@pytest.mark.parametrize("text", ["\u0085", "\x1c", "\u2028", "\ufeff", "\u0085\u0085\n", "\x00", '"', ",\n,"])
def test_files_of_one_odd_character(tmp_path: Path, suffix: str, text: str):
    path = tmp_path / f"a{suffix}"
    path.write_text(text, encoding="utf-8")
    refused(lambda: read_any_annotations(path, fps=10.0))
    if suffix in (".csv", ".tsv"):
        refused(read_signal, path)


def test_dates_that_do_not_exist(tmp_path: Path):
    for date in ("0/4/2024 10:00:00", "0/0/2024 10:00:00", "4/0/2024 10:00:00"):
        (tmp_path / "a.csv").write_text(f"video,start,end,label\nwalk1,{date},{date},run\n")
        refused(read_any_annotations, tmp_path / "a.csv")


def test_a_rate_that_no_number_holds(tmp_path: Path):
    (tmp_path / "a.json").write_text(json.dumps(annotation(duration=5e-324, fps=None, frame=10)))
    assert "'frame'" in refused(read_annotations, tmp_path / "a.json")


def test_messages_are_one_line_whatever_they_name():
    assert str(InputError("task a\r\nb: 'end'\u2028 must be")) == "task a b: 'end' must be"


# Descriptions of models


@pytest.fixture(scope="module")
def description(tiny_config) -> ModelDescription:
    return describe(tiny_config(), ("run", "walk"), 8, TimeGrid(4, 8, 25.0))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("grid", None),
        ("grid", {"stride": "x", "window": 1, "fps": 1}),
        ("grid", [1]),
        ("classes", None),
        ("classes", "ab"),
        ("classes", [1, 2]),
        ("classes", []),
        ("classes", ["a", "\0"]),
        ("input_width", "8"),
        ("input_width", -1),
        ("input_width", 10**12),
        ("input_width", float("nan")),
        ("preparation", {"framing": 5}),
        ("preparation", {"framing": {"window": 0, "stride": 1}}),
        ("preparation", {"keypoints": 5}),
        ("preparation", {"unknown": 5}),
        ("origin", "x"),
        ("origin", {"backbone": 5}),
        ("inference", {"max_length": "x"}),
        ("inference", 5),
        ("training", 5),
        ("training", {"model": 5}),
        ("step", -1),
        ("format", [2]),
        ("format", None),
        ("prefix", 5),
        ("graph", {"levels": 0}),
        ("graph", {"levels": "x"}),
        ("model", 5),
        ("oracle_reach", "x"),
        ("unknown", 1),
        ("grid", {"stride": 1, "window": 1, "fps": float("inf")}),
    ],
)
def test_descriptions_with_wrong_types(description: ModelDescription, key: str, value: object):
    document = json.loads(json.dumps(description.to_json()))
    assert ModelDescription.from_json(document, "x") == description
    if key == "input_width" and value == "8":
        value = "eight"
    refused(ModelDescription.from_json, document | {key: value}, "checkpoint.json")
    properties = to_properties(description) | {f"temporalzoom.{key}": json.dumps(value)}
    refused(from_properties, properties, "x.onnx")


def test_descriptions_that_are_none(description: ModelDescription):
    for document in (None, 5, "text", [], [1], [["a", 1]], {}):
        refused(ModelDescription.from_json, document, "checkpoint.json")
    for text in ("", "[" * 9999, "nul"):
        refused(from_properties, to_properties(description) | {"temporalzoom.grid": text}, "x.onnx")
