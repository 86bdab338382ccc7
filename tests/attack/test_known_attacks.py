"""Inputs that once ended in a traceback, in a wrong array or outside of the user's folder. Each stays here."""

import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from temporalzoom.config import load_config, parse_yaml
from temporalzoom.console import Screen, one_line, printable
from temporalzoom.errors import InputError
from temporalzoom.formats import read_annotations, read_any_annotations, write_annotations, write_segments
from temporalzoom.formats.interface import as_meant, no_formula
from temporalzoom.formats.json_file import read_predictions
from temporalzoom.inference.onnx_network import from_properties, to_properties
from temporalzoom.json_tree import parse_json
from temporalzoom.runs.description import ModelDescription, describe
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_files import feature_length, find_features, map_features, read_features
from temporalzoom.signals.feature_store import open_features, open_sidecars
from temporalzoom.signals.sidecars import read_sidecar
from temporalzoom.signals.signal_files import find_recordings, read_signal
from temporalzoom.timegrid import TimeGrid

ESC = "\x1b]0;owned\x07\x1b[2J"


def annotation(name: str = "a", label: str = "run", **more: object) -> dict[str, object]:
    entry = {"duration": 9, "fps": 10, "subset": "train", "annotations": [{"label": label, "segment": [1, 2]}], **more}
    return {"database": {name: entry}}


def refused(read, *arguments: object) -> str:
    with pytest.raises(InputError) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Names that lead out of a folder


@pytest.mark.parametrize("name", ["../secret", "/etc/secret", "inside/../../secret", r"..\secret", r"C:\secret", "\\x"])
def test_a_name_does_not_leave_the_folder(tmp_path: Path, name: str):
    np.save(tmp_path / "secret.npy", np.ones((4, 2), np.float32))
    folder = tmp_path / "features"
    folder.mkdir()
    absolute = str(tmp_path / "secret")
    for wanted in (name, absolute):
        assert "leads out of the folder" in refused(find_features, folder, wanted)
        assert "leads out of the folder" in refused(open_features(folder).read, wanted)
    (folder / "x.json").write_text("{}")
    of = open_sidecars(folder)
    assert of is not None and "leads out" in refused(of, name)


def test_data_check_names_the_name(tmp_path: Path, tzoom):
    np.save(tmp_path / "secret.npy", np.ones((90, 2), np.float32))
    (tmp_path / "features").mkdir()
    (tmp_path / "a.json").write_text(json.dumps(annotation("../secret")))
    (tmp_path / "mine.yaml").write_text("seed: 0")
    setting = (f"data.annotations={tmp_path}/a.json", f"data.features={tmp_path}/features", "data.stride=1")
    code, _, err = tzoom("train", tmp_path / "mine.yaml", "--out", tmp_path / "run", "data.source=folder", *setting)
    assert code == 2 and "leads out of the folder" in " ".join(err.split())


def test_a_name_inside_a_folder_of_the_folder(tmp_path: Path):
    (tmp_path / "day1").mkdir()
    np.save(tmp_path / "day1" / "walk..1.npy", np.ones((4, 2), np.float32))
    assert find_features(tmp_path, "day1/walk..1") is not None


def test_names_that_no_file_can_have(tmp_path: Path):
    for name in ("x" * 300, "a\0b", "\udce4", "x/" * 3000):
        assert find_features(tmp_path, name) is None
    named = {"x" * 300: Segments([1], [2], ["run"]), "b": Segments.empty()}
    assert "too long" in refused(write_segments, tmp_path / "found.vtt", named)


# HDF5 files that read other files


def test_hdf5_does_not_read_other_files(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["features"] = np.ones((4, 2), np.float32)
    (tmp_path / "secret.bin").write_bytes(np.ones((4, 2), np.float32).tobytes())
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["features"] = h5py.ExternalLink(str(secret), "features")
    with h5py.File(tmp_path / "raw.h5", "w") as file:
        file.create_dataset("features", (4, 2), "f4", external=[(str(tmp_path / "secret.bin"), 0, 32)])
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        layout = h5py.VirtualLayout((4, 2), "f4")
        layout[:] = h5py.VirtualSource(str(secret), "features", (4, 2))
        file.create_virtual_dataset("features", layout)
    with h5py.File(tmp_path / "pose.h5", "w") as file:
        file["tracks"] = h5py.ExternalLink(str(secret), "features")
        file["node_names"] = np.array([b"a", b"b"])
    for name in ("link", "raw", "virtual", "pose"):
        for read in (read_features, map_features, feature_length, read_signal):
            assert "another file" in refused(read, tmp_path / f"{name}.h5"), (name, read)


def test_hdf5_of_nothing_and_of_too_much(tmp_path: Path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file["features"] = h5py.Empty("f4")
    with h5py.File(tmp_path / "huge.h5", "w") as file:
        file.create_dataset("features", (2**40, 64), "f4", chunks=(1024, 64))
    for read in (read_features, feature_length, read_signal):
        refused(read, tmp_path / "empty.h5")
    assert "claim" in refused(read_features, tmp_path / "huge.h5")


# The terminal


def test_control_characters_are_shown_not_obeyed(capsys):
    screen = Screen(force_terminal=True, width=200)
    screen.print(f"a{ESC}b", markup=False, highlight=False)
    screen.print(Segments([1], [2], [f"run{ESC}"]).table(title=f"walk{ESC}"))
    printed = capsys.readouterr().out
    assert "\x1b]" not in printed and "\x1b[2J" not in printed and "\x07" not in printed
    assert r"\x1b]0;owned" in printed
    assert printable("tab\tline\nä 漢") == "tab\tline\nä 漢"
    assert one_line("a\nb\u202e\ud800") == r"a\nb\u202e\ud800"


def test_names_with_escapes_on_the_command_line(tmp_path: Path, tzoom):
    (tmp_path / "a.json").write_text(json.dumps(annotation(f"walk{ESC}", f"run{ESC}", annotations=[])))
    (tmp_path / "t.json").write_text(json.dumps(annotation(f"walk{ESC}", f"run{ESC}")))
    (tmp_path / "p.json").write_text(json.dumps({"results": {f"x{ESC}": []}}))
    results = [
        tzoom("data", "import", tmp_path / "t.json", "--out", tmp_path / "o.json"),
        tzoom("eval", "--predictions", tmp_path / "p.json", "--truth", tmp_path / "t.json"),
        tzoom("budget", tmp_path / "t.json"),
        tzoom("data", "import", tmp_path / "no\nsuch\x1bfile.csv", "--out", tmp_path / "o.json"),
    ]
    for code, out, err in results:
        assert code in (0, 2) and "\x1b" not in out + err
    assert results[-1][2].count("\n") == 1


# Formulas


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-x", "@SUM(A1)", "'=x", "''-y", "'plain", "a=b", "'"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".boris.csv", ".boris.tsv", ".xlsx"])
def test_formulas_are_text_and_come_back(tmp_path: Path, text: str, suffix: str):
    path = tmp_path / f"found{suffix}"
    write_segments(path, {text: Segments([1], [2], [text])})
    recordings = read_any_annotations(path).recordings
    assert {name: r.segments.labels.tolist() for name, r in recordings.items()} == {text: [text]}
    if suffix != ".xlsx":
        cells = path.read_text().replace('"', "").replace("\t", ",").split(",")
        assert not any(cell.startswith(tuple("=+-@")) for cell in cells)


def test_an_apostrophe_is_undone_once():
    for text in ("", "'", "=1", "'=1", "''=1", "x'", "\tx", "ordinary"):
        assert as_meant(no_formula(text)) == text
        assert no_formula(text)[:1] not in tuple("=+-@\t")


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


# Arrays


def npy(shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize("shape", [
    "(-1, 4)", "(True, 4)", "(2, 4", "((2, 4)", "(2, 4.0)", "(2**9, 4)", "(99999999999999, 4)", "4", "(2, -4)", "None",
    "(" * 3000,
])  # fmt: skip
def test_headers_of_arrays(tmp_path: Path, shape: str):
    path = tmp_path / "x.npy"
    path.write_bytes(npy(shape, bytes(32)))
    for read in (read_features, map_features, feature_length, read_signal):
        refused(read, path)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.write(path, "features.npy")
    for read in (read_features, read_signal):
        if shape not in ("(-1, 4)", "(True, 4)"):
            refused(read, tmp_path / "x.npz")


def test_archives_without_arrays(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "none.npz", "w"):
        pass
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("features", "hello")
        archive.writestr("walk1", "hello")
    for name in ("none", "text"):
        for read in (read_features, map_features, feature_length, read_signal):
            refused(read, tmp_path / f"{name}.npz")
    refused(open_features(tmp_path / "text.npz").read, "walk1")
    for member in find_recordings(tmp_path / "text.npz").values():
        refused(read_signal, member)


def test_tensors_of_special_kinds(tmp_path: Path):
    torch.save(torch.zeros(1).expand(10**9, 1000), tmp_path / "expanded.pt")
    torch.save(torch.eye(4).to_sparse(), tmp_path / "sparse.pt")
    torch.save(torch.zeros(2, 2, dtype=torch.complex64), tmp_path / "complex.pt")
    torch.save(torch.zeros(2, 2, device="meta"), tmp_path / "meta.pt")
    torch.save({"features": [torch.zeros(2, 2)]}, tmp_path / "list.pt")
    torch.save({("a", 1): torch.zeros(2)}, tmp_path / "key.pt")
    torch.save(torch.nested.nested_tensor([torch.zeros(2, 2), torch.zeros(3, 2)]), tmp_path / "nested.pt")
    (tmp_path / "pickle.pt").write_bytes(pickle.dumps(os.getcwd))
    for path in sorted(tmp_path.iterdir()):
        for read in (read_features, read_signal):
            refused(read, path)


def test_headers_of_deeplabcut_of_different_lengths(tmp_path: Path):
    (tmp_path / "x.csv").write_text("scorer,n,n\nbodyparts,nose\ncoords,x,y,likelihood\n0,1,2\n")
    assert "3, 2, 4 cells" in refused(read_signal, tmp_path / "x.csv")


def test_quotes_that_swallow_the_header_of_deeplabcut(tmp_path: Path):
    for text in ('scorer,"n\nbodyparts,nose\ncoords,x\n0,1\n', "scorer,n\nbodyparts,nose\ncoords,x\n"):
        (tmp_path / "x.csv").write_text(text)
        refused(read_signal, tmp_path / "x.csv")


def test_dates_that_do_not_exist(tmp_path: Path):
    for date in ("0/4/2024 10:00:00", "0/0/2024 10:00:00", "4/0/2024 10:00:00"):
        (tmp_path / "a.csv").write_text(f"video,start,end,label\nwalk1,{date},{date},run\n")
        refused(read_any_annotations, tmp_path / "a.csv")


def test_a_rate_that_no_number_holds(tmp_path: Path):
    (tmp_path / "a.json").write_text(json.dumps(annotation(duration=5e-324, fps=None, frame=10)))
    assert "'frame'" in refused(read_annotations, tmp_path / "a.json")


def test_archives_beside_values(tmp_path: Path):
    np.savez(tmp_path / "a.npz", features=np.zeros((4, 2)), fps=np.timedelta64(5, "s"))
    np.savez(tmp_path / "b.npz", x=np.zeros((4, 0)), time=np.arange(4.0))
    np.savez(tmp_path / "c.npz", features=np.zeros((4, 2)), rate=np.array("fast"))
    for name in "abc":
        refused(read_signal, tmp_path / f"{name}.npz")


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
