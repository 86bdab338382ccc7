"""Small valid files of every kind, made once, from which wrong ones are made."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import tiny
from temporalzoom.config import changed, dump_config, load_config
from temporalzoom.formats import write_segments
from temporalzoom.segments import Segments

TINY = [*tiny.TINY, "training.steps=2", "training.warmup_steps=1"]
SEGMENTS = {
    "walk1": Segments([1.0, 2.5, 7.0], [2.0, 4.0, 9.5], ["run", "jump", "run"], [0.9, 0.5, 0.25]),
    "walk 2": Segments([0.5], [3.0], ["jump"], [0.75]),
}
WRITTEN = (
    *(".csv", ".tsv", ".xlsx", ".vtt", ".srt", ".eaf", ".labelstudio.json", ".boris.tsv", ".boris.csv", ".rttm"),
    *(".deepethogram.csv", ".simba.csv", ".audacity.txt", ".via.json"),
)
# As people and other programs write them.
TABLES = (
    "recording,start,end,label,subject,subset\nwalk1,0:01.5,0:03,run,p1,train\nwalk2,1,2,jump,p2,test\n",
    "File;Onset (ms);Duration (ms);Behavior\nwalk1.mp4;1000;500,5;run\nwalk1.mp4;2000;700;jump\n",
    "video\tstart\tstop\tlabel\tid\nwalk1\t2024-04-03 10:00:01\t2024-04-03 10:00:02\trun\t1\n",
    "video,start_frame,end_frame,class\nwalk1,10,20,run\nwalk1,30,30,jump\n",
)
SIGNALS = (
    "time,ax,ay,label\n" + "".join(f"{i / 25:.3f},{i % 7},{-i},{'run' if i > 20 else ''}\n" for i in range(50)),
    "Timestamp (ms);x;y\n" + "".join(f"{40 * i};{i % 5},5;{i}\n" for i in range(30)),
    "frame,nose_x,nose_y,tail_x,tail_y,ear_x,ear_y\n" + "".join(f"{i},1,2,{i},4,5,6\n" for i in range(30)),
    "# a comment\n" + "".join(f"{i * 0.5} {i} {i * i}\n" for i in range(20)),
    "datetime,value\n" + "".join(f"2024-04-03T10:00:{i:02d},{i}\n" for i in range(40)),
)
SIDECAR = {
    "backbone": "motion", "stride": 4, "window": 8, "fps": 25.0, "requested_fps": None, "options": {"size": 32},
    "duration": 10.0, "length": 30, "video": "a.mp4", "bytes": 12,
}  # fmt: skip
ANNOTATIONS = {
    "version": "x", "classes": ["run", "jump"],
    "database": {
        "walk1": {
            "subset": "train", "duration": 10.0, "fps": 25.0, "subject": "p1",
            "annotations": [{"label": "run", "segment": [1.0, 2.0], "label_id": 0},
                            {"label": "jump", "segment": [3, 4.5], "label_id": 1}],
            "ambiguous": [[5.0, 6.0]],
        },
        "walk2": {"subset": "test", "duration": 9, "frame": 225, "annotations": [{"label": "run", "segment": [0, 1]}]},
    },
}  # fmt: skip
BSN = {"v_1": {"duration_second": 10.0, "duration_frame": 300, "annotations": [{"label": "run", "segment": [1, 2]}]}}
PREDICTIONS = {
    "version": "1.3", "external_data": {},
    "results": {"walk1": [{"label": "run", "segment": [1.0, 2.0], "score": 0.9}], "walk2": []},
}  # fmt: skip
SWEEP = (
    "base:\n  bench: zoombench\nsystems:\n  one: [model.name=uniform-1]\n  two: []\nseeds: [0, 1]\nthresholds: [0.5]\n"
)


@cache
def annotation_files() -> dict[str, bytes]:
    """By suffix, as this package writes them."""
    found = {}
    with TemporaryDirectory() as folder:
        for suffix in WRITTEN:
            results = {"walk1": SEGMENTS["walk1"]}
            [path] = write_segments(Path(folder) / f"walk1{suffix}", results, fps=10.0, durations={"walk1": 10.0})
            found[suffix] = path.read_bytes()
    return found


@cache
def array_files() -> dict[str, bytes]:
    """Features of 8 channels, by the name of the file."""
    random = np.random.default_rng(0)
    features = random.normal(size=(30, 8)).astype(np.float32)
    with TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "x.npy", features)
        np.save(folder / "double.npy", np.asfortranarray(features.astype(float)))
        np.savez(folder / "x.npz", features=features)
        np.savez_compressed(
            folder / "clocked.npz", values=features, time=np.arange(30) / 25, label=np.array(["a"] * 30)
        )
        np.savez(folder / "rated.npz", features=features, fps=25, channels=np.array([f"c{n}" for n in range(8)]))
        torch.save(torch.from_numpy(features), folder / "x.pt")
        torch.save({"features": torch.from_numpy(features)}, folder / "dictionary.pt")
        _write_hdf5(folder, features)
        _write_tables(folder, features)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _write_hdf5(folder: Path, features: Any) -> None:
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("group/features", data=features, chunks=(10, 8), compression="gzip")
    with h5py.File(folder / "sleap.h5", "w") as file:
        file["tracks"] = np.ones((1, 2, 3, 20))
        file["node_names"] = np.array([b"a", b"b", b"c"])
    columns = [("net", part, coordinate) for part in ("nose", "tail") for coordinate in ("x", "y", "likelihood")]
    stored = np.zeros(20, [("index", "<i8"), ("values_block_0", "<f8", (6,))])
    stored["index"] = np.arange(20)
    with h5py.File(folder / "dlc.h5", "w") as file:
        group = file.create_group("df_with_missing")
        group.attrs["pandas_type"] = np.bytes_(b"frame_table")
        group["table"] = stored
        group["table"].attrs["values_block_0_kind"] = np.bytes_(pickle.dumps(columns, 0))
    lines = [
        ",".join([name, *(c[level] for c in columns)]) for level, name in enumerate(("scorer", "bodyparts", "coords"))
    ]
    lines += [",".join([str(frame), *["1.5"] * 6]) for frame in range(20)]
    (folder / "dlc.csv").write_text("\n".join(lines))


def _write_tables(folder: Path, features: Any) -> None:
    import edfio
    import pyarrow
    import pyarrow.parquet

    columns = {"time": np.arange(30) / 25} | {f"c{n}": features[:, n] for n in range(3)} | {"label": ["run"] * 30}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "x.parquet")
    signals = [edfio.EdfSignal(features[:, n].astype(float), 10, label=f"C{n}") for n in range(2)]
    notes = [edfio.EdfAnnotation(0.5, 1.0, "sleep"), edfio.EdfAnnotation(1.0, None, "lights off")]
    edfio.Edf(signals, annotations=notes).write(folder / "x.edf")


@cache
def videos() -> dict[str, bytes]:
    import av

    found = {}
    with TemporaryDirectory() as folder:
        for name, codec in (("x.mp4", "libx264"), ("x.mkv", "libx264"), ("x.avi", "mpeg4")):
            with av.open(str(Path(folder) / name), "w") as container:
                stream = container.add_stream(codec, rate=25)
                stream.height, stream.width, stream.pix_fmt = 32, 48, "yuv420p"
                for number in range(20):
                    frame = av.VideoFrame.from_ndarray(np.full((32, 48, 3), 10 * number, np.uint8), format="rgb24")
                    frame.pts, frame.time_base = number, Fraction(1, 25)
                    container.mux(stream.encode(frame))
                container.mux(stream.encode())
            found[name] = (Path(folder) / name).read_bytes()
    return found


@cache
def configuration() -> str:
    return dump_config(load_config(None, TINY))


@cache
def checkpoint() -> dict[str, bytes]:
    """The files of a checkpoint of a network that was trained for two steps, and the same network as ONNX."""
    from temporalzoom.console import Screen
    from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
    from temporalzoom.runs.checkpoint import find_checkpoint
    from temporalzoom.training import train
    from temporalzoom.workflows.export import export_onnx

    config = changed(load_config(None, TINY), ["training.steps=2"])
    split = make_zoombench(ZoomBench(sequences=4, length=80, dimension=8, classes=2, longest=3.0, mean_gap=0.5))
    with TemporaryDirectory() as folder:
        train(config, split, Path(folder), console=Screen(quiet=True))
        found = {path.name: path.read_bytes() for path in find_checkpoint(Path(folder)).iterdir()}
        export_onnx(Path(folder), Path(folder) / "x.onnx")
        return found | {"x.onnx": (Path(folder) / "x.onnx").read_bytes()}


def description() -> dict[str, Any]:
    return json.loads(checkpoint()["checkpoint.json"])
