"""Arrays and archives that once ended in a traceback, in a wrong array or in another file. Each stays here."""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from known import refused

from temporalzoom.signals.feature_files import feature_length, read_features
from temporalzoom.signals.feature_rows import open_rows
from temporalzoom.signals.feature_store import open_features
from temporalzoom.signals.signal_files import find_recordings, read_signal

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
        for read in (read_features, open_rows, feature_length, read_signal):
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
    for read in (read_features, open_rows, feature_length, read_signal):
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
        for read in (read_features, open_rows, feature_length, read_signal):
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


def test_archives_beside_values(tmp_path: Path):
    np.savez(tmp_path / "a.npz", features=np.zeros((4, 2)), fps=np.timedelta64(5, "s"))
    np.savez(tmp_path / "b.npz", x=np.zeros((4, 0)), time=np.arange(4.0))
    np.savez(tmp_path / "c.npz", features=np.zeros((4, 2)), rate=np.array("fast"))
    for name in "abc":
        refused(read_signal, tmp_path / f"{name}.npz")
