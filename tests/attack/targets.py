"""What is attacked: every reader, each with the wrong inputs made for it and with what makes its result right."""

from __future__ import annotations

import datetime
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import specimens
import torch
from fuzzing import Target
from mutations import NUMBERS, VALUES, WORDS, mutated_bytes, mutated_json, mutated_text, mutated_tree

from temporalzoom.config import dump_tree, load_config, parse_config
from temporalzoom.formats import read_annotations, read_any_annotations, write_annotations
from temporalzoom.formats.annotations import Annotations
from temporalzoom.formats.json_file import read_predictions
from temporalzoom.inference.fusion import read_video_scores
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.onnx_network import from_properties
from temporalzoom.runs.description import ModelDescription
from temporalzoom.runs.members import read_members
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_files import feature_length, map_features, read_features
from temporalzoom.signals.sidecars import read_sidecar
from temporalzoom.signals.signal_files import find_recordings, read_signal
from temporalzoom.workflows.segment_files import read_segment_files
from temporalzoom.workflows.sweep_file import read_sweep

Draw = random.Random


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


# What is right


def right_segments(segments: Segments) -> None:
    for start, end, label, score in segments:
        assert np.isfinite([start, end, score]).all() and isinstance(label, str), (start, end, label, score)
        label.encode()


def right_annotations(annotations: Annotations, folder: Path) -> None:
    """They can be written, and come back."""
    for recording in annotations.recordings.values():
        right_segments(recording.segments)
        assert recording.duration is None or np.isfinite(recording.duration)
    write_annotations(folder / "again.json", annotations)
    again = read_annotations(folder / "again.json")
    assert again.recordings.keys() == annotations.recordings.keys()
    for name, recording in annotations.recordings.items():
        assert list(again.recordings[name].segments) == list(recording.segments)


def right_array(array: Any) -> None:
    assert isinstance(array, np.ndarray) and array.dtype == np.float32 and array.ndim == 2 and array.shape[1] > 0
    assert array.size < 2**29
    array.sum()  # what is mapped is there


# Readers


def read_an_annotation_file(path: Any) -> None:
    right_annotations(read_any_annotations(path, fps=10.0), path.parent)


def read_label_studio_file(path: Any) -> None:
    right_annotations(read_any_annotations(path, fps=10.0, predictions=True), path.parent)


def read_own_annotations(path: Any) -> None:
    right_annotations(read_annotations(path), path.parent)
    right_annotations(read_annotations(path, allow_unlabelled=True, label_keys=("label", "name")), path.parent)


def read_prediction_file(path: Any) -> None:
    for segments in read_predictions(path).values():
        right_segments(segments)


def read_an_array(path: Any) -> None:
    array = read_features(path)
    right_array(array)
    right_array(map_features(path))
    assert feature_length(path) == len(array)


def read_a_signal(path: Any) -> None:
    for found in find_recordings(path).values():
        signal = read_signal(found)
        right_array(signal.values)
        assert signal.fps is None or 0 < signal.fps < np.inf
        assert not signal.channels or len(signal.channels) == signal.values.shape[1]
        if signal.labels is not None:
            right_segments(signal.labels)


def read_configuration(path: Any) -> None:
    config = load_config(path)
    assert parse_config(dump_tree(config)) == config


def read_overrides(overrides: Any) -> None:
    config = load_config(None, [*specimens.TINY, *overrides])
    assert parse_config(dump_tree(config)) == config


def read_a_description(document: Any) -> None:
    described = ModelDescription.from_json(document, "checkpoint.json")
    assert described.channels >= 0 and described.grid.duration(10) >= 0
    json.dumps(described.to_json())


def localize_with(path: Any) -> None:
    localizer = Localizer.load(path, device="cpu")
    features = np.zeros((20, localizer.description.channels), np.float32)
    right_segments(localizer(features))


def read_a_video(path: Any) -> None:
    from temporalzoom.signals.decoding import clock_frames, probe

    info = probe(path)
    assert info.fps > 0 and np.isfinite(info.duration)
    for number, _ in enumerate(clock_frames(path, min(info.fps, 100.0), (16, 16))):
        if number > 20:
            break


# Makers


def text_file(texts: Callable[[], Sequence[tuple[str, bytes]]]) -> Callable[[Draw, Path], Path]:
    """Files of text: lines, cells and words go wrong, at times bytes."""

    def make(draw: Draw, folder: Path) -> Path:
        name, content = draw.choice(texts())
        if draw.random() < 0.8:
            content = mutated_text(content.decode(), draw).encode("utf-8", "surrogatepass")
        if draw.random() < 0.3:
            content = mutated_bytes(content, draw, draw.choice(texts())[1])
        return written(folder, name, content)

    return make


def byte_file(files: Callable[[], Sequence[tuple[str, bytes]]]) -> Callable[[Draw, Path], Path]:
    def make(draw: Draw, folder: Path) -> Path:
        name, content = draw.choice(files())
        return written(folder, name, mutated_bytes(content, draw, draw.choice(files())[1]))

    return make


def json_file(name: str, trees: Sequence[Any]) -> Callable[[Draw, Path], Path]:
    return lambda draw, folder: written(folder, name, mutated_json(draw.choice(trees), draw))


def of_suffix(*suffixes: str) -> Callable[[], list[tuple[str, bytes]]]:
    return lambda: [(f"walk1{s}", specimens.annotation_files()[s]) for s in suffixes]


def arrays(*suffixes: str) -> Callable[[], list[tuple[str, bytes]]]:
    return lambda: [(name, content) for name, content in specimens.array_files().items() if name.endswith(suffixes)]


def tables() -> list[tuple[str, bytes]]:
    own = of_suffix(".csv", ".tsv", ".boris.tsv", ".boris.csv", ".deepethogram.csv", ".simba.csv")()
    return own + [("walk1.csv", text.encode()) for text in specimens.TABLES]


def signal_tables() -> list[tuple[str, bytes]]:
    return [("x.csv", text.encode()) for text in specimens.SIGNALS] + arrays("dlc.csv")()


def npy_header(draw: Draw, folder: Path) -> Path:
    """A header of which the words go wrong, whose length is right."""
    content = specimens.array_files()[draw.choice(("x.npy", "double.npy"))]
    text = mutated_text(content[10:128].decode().strip(), draw).encode("utf-8", "replace")[:60000]
    version = draw.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text) + 1)
    array = content[:6] + version + length + text + b"\n" + content[128:]
    if draw.random() < 0.6:
        return written(folder, "x.npy", array)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name in draw.sample(("features.npy", "time.npy", "label.npy", "fps.npy", "x", "a/b.npy", "../x.npy"), 3):
            archive.writestr(name, draw.choice((array, content, b"", b"hello")))
    return written(folder, "x.npz", packed.getvalue())


def strange_array(draw: Draw) -> Any:
    shape = tuple(draw.choice((0, 1, 2, 3, 30)) for _ in range(draw.choice((0, 1, 2, 2, 2, 3, 4))))
    kind = draw.choice(("f2", "f4", "f8", "i1", "u8", "i8", "?", "c8", "S3", "U3", "M8[s]", "m8[s]", "V4", ">f4"))
    array = np.zeros(shape, kind)
    if kind in ("f4", "f8") and array.size and draw.random() < 0.5:
        array.reshape(-1)[0] = draw.choice((np.nan, np.inf, 1e30))
    return array


def archive_file(draw: Draw, folder: Path) -> Path:
    names = draw.sample(
        ("features", "feats", "time", "fps", "channels", "label", "a", "b c", "../x"), draw.randrange(4)
    )
    packed = io.BytesIO()
    np.savez(packed, **{name: strange_array(draw) for name in names})
    return written(folder, "x.npz", packed.getvalue())


def hdf5_file(draw: Draw, folder: Path) -> Path:
    import h5py

    path = folder / "x.h5"
    names = (
        "features",
        "tracks",
        "node_names",
        "track_names",
        "point_scores",
        "df/table",
        "df/axis1",
        "df/block0_values",
    )
    with h5py.File(path, "w") as file:
        for name in draw.sample(names, draw.randrange(1, 4)):
            array = strange_array(draw)
            if array.dtype.kind in "UMm":
                array = np.zeros(array.shape, "S3")
            file[name] = array if draw.random() < 0.9 else h5py.Empty("f4")
        if "df" in file:
            file["df"].attrs["pandas_type"] = draw.choice((b"frame", b"frame_table", b"", 5))
            file["df"].attrs["nblocks"] = draw.choice((0, 1, -1, 10**6))
        if draw.random() < 0.2:
            file["soft"] = h5py.SoftLink(draw.choice(("/soft", "/nowhere", "/features", "/")))
        if draw.random() < 0.2:
            file["cycle"] = file
    return path


def tensor_file(draw: Draw, folder: Path) -> Path:
    def value(depth: int = 0) -> Any:
        kinds: list[Callable[[], Any]] = [
            lambda: torch.zeros(draw.choice(((3, 2), (1, 3, 2), (0, 2), (2,), ())), dtype=draw.choice(
                (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
            )),
            lambda: torch.zeros(1).expand(draw.choice((10, 10**9)), draw.choice((2, 1000))),
            lambda: torch.eye(3).to_sparse(),
            lambda: torch.zeros(3, 2, device="meta"),
            lambda: draw.choice((None, 1, "x", 2.5, b"x")),
            lambda: torch.nn.Parameter(torch.zeros(3, 2)),
        ]  # fmt: skip
        if depth < 2:
            kinds.append(lambda: {draw.choice(("features", "feats", 1, ("a",))): value(depth + 1)})
            kinds.append(lambda: [value(depth + 1)])
        return draw.choice(kinds)()

    packed = io.BytesIO()
    torch.save(value(), packed, _use_new_zipfile_serialization=draw.random() < 0.8)
    content = packed.getvalue()
    return written(folder, "x.pt", mutated_bytes(content, draw) if draw.random() < 0.3 else content)


def edf_file(draw: Draw, folder: Path) -> Path:
    """Fields of the header, which have fixed places, go wrong."""
    data = bytearray(specimens.array_files()["x.edf"])
    for _ in range(draw.choice((1, 1, 2))):
        place = draw.randrange(0, 1024, 4)
        width = draw.choice((4, 8, 16, 80))
        data[place : place + width] = draw.choice((*NUMBERS, *WORDS)).encode("utf-8", "replace").ljust(width)[:width]
    return written(folder, "x.edf", bytes(data))


def parquet_file(draw: Draw, folder: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    if draw.random() < 0.4:
        return written(folder, "x.parquet", mutated_bytes(specimens.array_files()["x.parquet"], draw))
    rows = draw.choice((0, 1, 2, 30))
    columns: dict[str, Any] = {}
    for name in draw.sample(("time", "t", "x", "y", "label", "frame", "", "é", "timestamp_ms"), draw.randrange(5)):
        columns[name] = draw.choice((
            [None] * rows, [1.5 * n for n in range(rows)], list(range(rows)), ["a"] * rows, [b"a"] * rows,
            [[1, 2]] * rows, [{"a": 1}] * rows, [float("nan")] * rows, [2**62 + n for n in range(rows)],
            [datetime.datetime(2024, 1, 1, 0, 0, n) for n in range(rows)], [-float(n) for n in range(rows)],
            [1e300 * n for n in range(rows)],
        ))  # fmt: skip
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


def spreadsheet_file(draw: Draw, folder: Path) -> Path:
    import openpyxl

    if draw.random() < 0.4:
        return byte_file(of_suffix(".xlsx"))(draw, folder)
    book = openpyxl.Workbook()
    sheet = book.active
    cells = [*VALUES[:9], 0.5, 1e308, "run", "walk1", "0:01", "=1+1", "2024-01-01", -3]
    header = ["video", "start", "end", "label", "subject"]
    sheet.append(draw.sample((*header, "duration", "time", "Behavior", None), 5) if draw.random() < 0.3 else header)
    for number in range(draw.randrange(4)):
        row = ["walk1", number, number + 0.5, "run", "p1"]
        for _ in range(draw.randrange(3)):
            row[draw.randrange(5)] = draw.choice(cells)
        sheet.append(row)
    if draw.random() < 0.2:
        book.create_sheet("second").append(["a"])
    book.save(folder / "walk1.xlsx")
    return folder / "walk1.xlsx"


def sidecar_file(draw: Draw, folder: Path) -> Path:
    written(folder, "x.json", mutated_json(specimens.SIDECAR, draw))
    return folder / "x.npy"


def yaml_file(draw: Draw, folder: Path) -> Path:
    texts = (
        specimens.configuration(),
        "base: zoombench\ntraining:\n  steps: 5\n",
        "seed: 1\ninference: {threshold: {a: 1}}\n",
    )
    text = mutated_text(draw.choice(texts), draw)
    if draw.random() < 0.2:
        tags = (
            "!!bool",
            "!!int",
            "!!timestamp",
            "!!binary",
            "!!set",
            "!!omap",
            "&a",
            "*a",
            "<<:",
            "? ",
            "| ",
            "--- ",
            "%",
        )
        place = draw.randrange(len(text) + 1)
        text = text[:place] + draw.choice(tags) + " " + text[place:]
    return written(folder, "mine.yaml", text.encode("utf-8", "surrogatepass"))


def override(draw: Draw, folder: Path) -> list[str]:
    from temporalzoom.config import config_fields

    keys = sorted(config_fields())
    values = (
        *NUMBERS,
        *WORDS,
        "[1, 2]",
        "{a: 1}",
        "{a: {b: 1}}",
        "tzn",
        "uniform-3",
        "true",
        "~",
        "!!bool x",
        "&a [*a]",
    )
    made = [f"{draw.choice(keys)}={draw.choice(values)}" for _ in range(draw.choice((1, 1, 2, 3)))]
    return [mutated_text(text, draw) if draw.random() < 0.15 else text for text in made]


def sweep_file(draw: Draw, folder: Path) -> Path:
    return written(folder, "sweep.yaml", mutated_text(specimens.SWEEP, draw).encode("utf-8", "surrogatepass"))


def description(draw: Draw, folder: Path) -> Any:
    return mutated_tree(specimens.description(), draw)


def checkpoint_folder(draw: Draw, folder: Path) -> Path:
    """A checkpoint of which the description, or the weights, went wrong."""
    run = folder / "checkpoint"
    run.mkdir(exist_ok=True)
    files = dict(specimens.checkpoint())
    del files["x.onnx"]
    if draw.random() < 0.5:
        files["checkpoint.json"] = mutated_json(specimens.description(), draw)
    elif draw.random() < 0.5:
        files["average.safetensors"] = mutated_bytes(files["average.safetensors"], draw)
    else:
        content = files["average.safetensors"]
        (length,) = struct.unpack("<Q", content[:8])
        header = mutated_json(json.loads(content[8 : 8 + length]), draw)
        files["average.safetensors"] = struct.pack("<Q", len(header)) + header + content[8 + length :]
    for name, content in files.items():
        if "safetensors" not in name or name.startswith("average"):
            written(run, name, content)
    return run


def onnx_file(draw: Draw, folder: Path) -> Path:
    import onnx

    content = specimens.checkpoint()["x.onnx"]
    if draw.random() < 0.3:
        return written(folder, "x.onnx", mutated_bytes(content, draw))
    graph = onnx.load_model_from_string(content)
    entry = draw.choice(graph.metadata_props)
    try:
        entry.value = mutated_json(json.loads(entry.value), draw).decode("utf-8", "replace")
        entry.key = draw.choice(("temporalzoom.x", entry.key, entry.key, entry.key))
    except ValueError:
        entry.value = ""
    return written(folder, "x.onnx", graph.SerializeToString())


def onnx_properties(draw: Draw, folder: Path) -> dict[str, str]:
    texts = {f"temporalzoom.{key}": json.dumps(value) for key, value in specimens.description().items()}
    key = draw.choice(list(texts))
    texts[key] = mutated_json(json.loads(texts[key]), draw).decode("utf-8", "replace")
    return texts


def members_folder(draw: Draw, folder: Path) -> Path:
    tree = {"format": 1, "folders": ["members/a"], "thresholds": {"run": 0.5}, "tiou": 0.5, "validated": ["members/a"]}
    written(folder, "members.json", mutated_json(tree, draw))
    return folder


def video_file(draw: Draw, folder: Path) -> Path:
    """Bytes go wrong, more often near the ends, where headers and indices are."""
    name, content = draw.choice(list(specimens.videos().items()))
    ends = draw.choice((60, 800, len(content)))
    head, rest = content[:ends], content[ends:]
    return written(
        folder, name, mutated_bytes(head, draw) + rest if draw.random() < 0.7 else head + mutated_bytes(rest, draw)
    )


SCORES = ({"a": {"run": 0.5}}, {"results": {"a": [1]}, "class": ["x"]})
TARGETS = (
    Target("annotations: JSON", json_file("a.json", (specimens.ANNOTATIONS, specimens.BSN)), read_own_annotations, 2),
    Target("predictions: JSON", json_file("p.json", (specimens.PREDICTIONS,)), read_prediction_file),
    Target("scores of recordings: JSON", json_file("s.json", SCORES), read_video_scores, 0.5),
    Target("import: tables", text_file(tables), read_an_annotation_file, 3),
    Target("import: Excel", spreadsheet_file, read_an_annotation_file, 0.3),
    Target("import: subtitles", text_file(of_suffix(".vtt", ".srt")), read_an_annotation_file),
    Target("import: ELAN", text_file(of_suffix(".eaf")), read_an_annotation_file),
    Target("import: RTTM, Audacity", text_file(of_suffix(".rttm", ".audacity.txt")), read_an_annotation_file),
    Target("import: Label Studio", lambda d, f: json_file("a.labelstudio.json", (
        json.loads(specimens.annotation_files()[".labelstudio.json"]),))(d, f), read_label_studio_file),
    Target("import: VIA", lambda d, f: json_file("a.via.json", (
        json.loads(specimens.annotation_files()[".via.json"]),))(d, f), read_an_annotation_file),
    Target("segments of any file", text_file(lambda: tables() + of_suffix(".vtt", ".eaf", ".via.json")()),
           lambda path: read_segment_files([path], fps=10.0), 0.5),
    Target("features: .npy, .npz headers", npy_header, read_an_array),
    Target("features: .npy, .npz bytes", byte_file(arrays(".npy", ".npz")), read_an_array),
    Target("signals: .npz", archive_file, read_a_signal),
    Target("signals: .npz bytes", byte_file(arrays(".npz")), read_a_signal, 0.5),
    Target("features: .pt", tensor_file, read_an_array),
    Target("features: .h5 bytes", byte_file(arrays("x.h5")), read_an_array, 0.5),
    Target("signals: .h5, SLEAP, DeepLabCut", hdf5_file, read_a_signal),
    Target("signals: .h5 bytes", byte_file(arrays(".h5")), read_a_signal, 0.5),
    Target("signals: tables, DeepLabCut .csv", text_file(signal_tables), read_a_signal, 2),
    Target("signals: Parquet", parquet_file, read_a_signal),
    Target("signals: EDF", edf_file, read_a_signal, 0.5),
    Target("descriptions beside features", sidecar_file, read_sidecar),
    Target("configuration: YAML", yaml_file, read_configuration, 0.5),
    Target("configuration: overrides", override, read_overrides, 0.5),
    Target("sweeps: YAML", sweep_file, read_sweep, 0.15),
    Target("checkpoints: descriptions", description, read_a_description),
    Target("checkpoints: folders", checkpoint_folder, localize_with, 0.3),
    Target("members of a run", members_folder, read_members, 0.3),
    Target("ONNX: descriptions", onnx_properties, lambda texts: from_properties(texts, "x.onnx")),
    Target("ONNX: files", onnx_file, localize_with, 0.1),
    Target("videos", video_file, read_a_video, 0.3),
)  # fmt: skip
