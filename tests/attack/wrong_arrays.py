"""Wrong files of numbers: arrays, archives, HDF5, tensors, EDF, Parquet."""

from __future__ import annotations

import datetime
import io
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import specimens
import torch
from mutations import NUMBERS, WORDS, mutated_bytes, mutated_text
from wrong_texts import written

Draw = random.Random


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
