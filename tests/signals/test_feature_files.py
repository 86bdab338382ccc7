"""Feature files: every format gives the same array, nothing in a file is executed, bad files are named."""

import builtins
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from temporalzoom.errors import InputError
from temporalzoom.signals.feature_files import (
    feature_length,
    find_features,
    read_features,
    write_features,
)
from temporalzoom.signals.feature_rows import open_rows

EXPECTED = np.arange(12, dtype=np.float32).reshape(4, 3)


def write_hdf5(path: Path, **arrays: Any) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)


WRITERS: dict[str, tuple[str, Callable[[Path, Any], Any]]] = {
    "npy": ("v.npy", np.save),
    "npy 64": ("v.npy", lambda p, a: np.save(p, a.astype(np.float64))),
    "npy 16": ("v.npy", lambda p, a: np.save(p, a.astype(np.float16))),
    "npy int": ("v.npy", lambda p, a: np.save(p, a.astype(np.int32))),
    "npy uint": ("v.npy", lambda p, a: np.save(p, a.astype(np.uint8))),
    "npy big-endian": ("v.npy", lambda p, a: np.save(p, a.astype(">f4"))),
    "npy by column": ("v.npy", lambda p, a: np.save(p, np.asfortranarray(a))),
    "npy leading one": ("v.npy", lambda p, a: np.save(p, a[None])),
    "npz one": ("v.npz", lambda p, a: np.savez(p, anything=a)),
    "npz features": ("v.npz", lambda p, a: np.savez_compressed(p, features=a, fps=30)),
    "npz feats": ("v.npz", lambda p, a: np.savez(p, feats=a, fps=30)),
    "pt": ("v.pt", lambda p, a: torch.save(torch.from_numpy(a), p)),
    "pt parameter": ("v.pt", lambda p, a: torch.save(torch.nn.Parameter(torch.from_numpy(a)), p)),
    "pt bfloat16": ("v.pt", lambda p, a: torch.save(torch.from_numpy(a).bfloat16(), p)),
    "pt int": ("v.pt", lambda p, a: torch.save(torch.from_numpy(a).long(), p)),
    "pt dict": ("v.pt", lambda p, a: torch.save({"x": torch.from_numpy(a), "fps": 30.0}, p)),
    "pt features": ("v.pt", lambda p, a: torch.save({"features": torch.from_numpy(a), "t": torch.ones(3)}, p)),
    "pt leading one": ("v.pt", lambda p, a: torch.save(torch.from_numpy(a)[None], p)),
    "pt legacy": ("v.pt", lambda p, a: torch.save(torch.from_numpy(a), p, _use_new_zipfile_serialization=False)),
    "h5": ("v.h5", lambda p, a: write_hdf5(p, anything=a)),
    "h5 group": ("v.h5", lambda p, a: write_hdf5(p, **{"group/c3d": a})),
    "hdf5 features": ("v.hdf5", lambda p, a: write_hdf5(p, features=a.astype(np.float64), times=np.ones(3))),
}


@pytest.mark.parametrize("case", WRITERS)
def test_every_format_gives_the_same_features(tmp_path: Path, case: str) -> None:
    name, write = WRITERS[case]
    write(tmp_path / name, EXPECTED)
    for found in (read_features(tmp_path / name), open_rows(tmp_path / name)):
        found = np.asarray(found)
        assert found.dtype == np.float32 and found.dtype.isnative and found.flags.c_contiguous
        np.testing.assert_array_equal(found, EXPECTED)
    assert feature_length(tmp_path / name) == 4


@given(hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1), elements=st.floats(width=32)))
def test_written_features_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray) -> None:
    path = tmp_path_factory.mktemp("round") / "v.npy"
    write_features(path, array)
    np.testing.assert_array_equal(read_features(path), array)  # NaN and Inf included
    np.testing.assert_array_equal(open_rows(path), array)
    assert feature_length(path) == len(array)


def test_zero_rows_are_read_and_too_large_values_become_infinite(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.empty((0, 5)))
    assert read_features(tmp_path / "v.npy").shape == open_rows(tmp_path / "v.npy").shape == (0, 5)
    assert feature_length(tmp_path / "v.npy") == 0
    np.save(tmp_path / "w.npy", np.array([[1e300, 1.0]]))
    assert read_features(tmp_path / "w.npy").tolist() == [[np.inf, 1.0]]


def own_memory() -> int:
    """Bytes that this process holds and that are not those of a file."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("RssAnon:")[2].split()[0])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux to tell whose memory it is")
def test_rows_in_files_take_no_memory_and_keep_no_file_open(tmp_path: Path) -> None:
    count, rows = 8, 2048  # 64 MB
    for number in range(count):
        write_features(tmp_path / f"{number}.npy", np.full((rows, 1024), number, np.float32))
    opened, held = len(list(Path("/proc/self/fd").iterdir())), own_memory()
    arrays = [open_rows(tmp_path / f"{number}.npy") for number in range(count)]
    assert [np.asarray(array).mean() for array in arrays] == list(range(count))  # all of it was looked at
    assert own_memory() - held < 24e6 and len(list(Path("/proc/self/fd").iterdir())) <= opened
    arrays[3][:5][0, 0] = 99.0  # what is written stays with us
    assert read_features(tmp_path / "3.npy")[0, 0] == 3.0


class Trap:
    """Unpickling it leaves a file behind."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def object_array(trap: Trap) -> np.ndarray:
    array = np.empty((2, 2), dtype=object)
    array[:] = trap
    return array


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("v.pt", lambda p, t: torch.save(t, p)),
        ("v.pt", lambda p, t: torch.save({"features": torch.ones(2, 2), "x": t}, p)),
        ("v.pt", lambda p, t: torch.save(t, p, _use_new_zipfile_serialization=False)),
        ("v.pt", lambda p, t: p.write_bytes(pickle.dumps(t, protocol=2))),
        ("v.npy", lambda p, t: np.save(p, object_array(t), allow_pickle=True)),
        ("v.npy", lambda p, t: p.write_bytes(pickle.dumps(t))),
        ("v.npz", lambda p, t: np.savez(p, features=object_array(t))),
        ("v.npz", lambda p, t: p.write_bytes(pickle.dumps(t))),
        ("v.h5", lambda p, t: p.write_bytes(pickle.dumps(t))),
    ],
)
def test_nothing_in_a_file_is_executed(tmp_path: Path, name: str, write: Callable[[Path, Trap], Any]) -> None:
    trap = Trap(tmp_path / "executed")
    pickle.loads(pickle.dumps(trap))
    assert trap.mark.exists()  # the trap works
    trap.mark.unlink()
    write(tmp_path / name, trap)
    for read in (read_features, feature_length):
        with pytest.raises(InputError, match=name):
            read(tmp_path / name)
    assert not trap.mark.exists()


def test_what_pickles_hold_is_said_in_words(tmp_path: Path) -> None:
    torch.save(np.ones((2, 2)), tmp_path / "v.pt")
    with pytest.raises(InputError, match=r"v\.pt.*only plain tensors"):
        read_features(tmp_path / "v.pt")
    torch.save([torch.ones(2, 2)], tmp_path / "v.pt")
    with pytest.raises(InputError, match="list; only plain tensors"):
        read_features(tmp_path / "v.pt")
    np.save(tmp_path / "v.npy", np.array([[None]]), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        read_features(tmp_path / "v.npy")


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (1, 1, 3, 4), (3, 0), (1,)])
def test_wrong_shapes_are_named(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "v.npy", np.zeros(shape))
    torch.save(torch.zeros(shape), tmp_path / "v.pt")
    write_hdf5(tmp_path / "v.h5", x=np.zeros(shape))
    for name in ("v.npy", "v.pt", "v.h5"):
        for read in (read_features, feature_length):
            with pytest.raises(InputError) as caught:
                read(tmp_path / name)
            assert name in str(caught.value) and str(shape) in str(caught.value)


@pytest.mark.parametrize("dtype", ["U3", "S2", "complex64", "bool", "datetime64[s]", [("a", "f4")]])
def test_wrong_dtypes_are_named(tmp_path: Path, dtype: Any) -> None:
    np.save(tmp_path / "v.npy", np.zeros((2, 2), dtype))
    with pytest.raises(InputError, match=r"v\.npy.*dtype"):
        read_features(tmp_path / "v.npy")


@pytest.mark.parametrize("case", ["npy", "npz features", "pt", "h5"])
@pytest.mark.parametrize("damage", ["empty", "cut", "text", "flipped header"])
def test_damaged_files_are_named(tmp_path: Path, case: str, damage: str) -> None:
    name, write = WRITERS[case]
    path = tmp_path / name
    write(path, np.ones((400, 30), np.float32))
    content = path.read_bytes()
    flipped = bytes(255 - byte for byte in content[:64]) + content[64:-64] + bytes(64)
    half = content[: len(content) // 2]
    path.write_bytes({"empty": b"", "cut": half, "text": b"hello\n" * 99, "flipped header": flipped}[damage])
    for read in (read_features, open_rows):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_several_arrays_without_a_known_key_are_listed(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", rgb=EXPECTED, flow=EXPECTED)
    torch.save({"rgb": torch.ones(2, 2), "flow": torch.ones(2, 2)}, tmp_path / "v.pt")
    write_hdf5(tmp_path / "v.h5", rgb=EXPECTED, flow=EXPECTED)
    for name in ("v.npz", "v.pt", "v.h5"):
        with pytest.raises(InputError, match=f"{name}.*flow, rgb"):
            read_features(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "empty.npz", "w"):
        pass
    with pytest.raises(InputError, match=r"empty\.npz"):
        read_features(tmp_path / "empty.npz")


def test_without_h5py_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_hdf5(tmp_path / "v.h5", features=EXPECTED)
    true_import = builtins.__import__

    def refuse(name: str, *rest: Any, **keys: Any) -> Any:
        if name == "h5py":
            raise ImportError(name)
        return true_import(name, *rest, **keys)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(InputError, match=r'pip install "temporalzoom\[hdf5\]"'):
        read_features(tmp_path / "v.h5")


def test_find_features(tmp_path: Path) -> None:
    for name in ("a.npy", "b.v2.pt", "c.npz", "c.h5", "d.txt"):
        (tmp_path / name).touch()
    assert find_features(tmp_path, "a") == tmp_path / "a.npy"
    assert find_features(tmp_path, "b.v2") == tmp_path / "b.v2.pt"
    assert find_features(tmp_path, "b") is None
    assert find_features(tmp_path, "d") is None
    with pytest.raises(InputError, match=r"'c': c\.npz, c\.h5"):
        find_features(tmp_path, "c")
    with pytest.raises(InputError, match="no such folder"):
        find_features(tmp_path / "absent", "a")


def test_misuse(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_features(tmp_path / "v.npy")
    with pytest.raises(InputError, match=r"\.mat"):
        read_features(tmp_path / "v.mat")
    with pytest.raises(InputError, match=r"\.npy"):
        write_features(tmp_path / "v.pt", EXPECTED)
    with pytest.raises(ValueError, match="shape"):
        write_features(tmp_path / "v.npy", EXPECTED[0])
    assert not list(tmp_path.iterdir())


def test_real_features(shared_data: Path) -> None:
    for name, length in (("highjump", 164), ("tennis26", 89)):
        path = find_features(shared_data / "video", name)
        assert path is not None and feature_length(path) == length
        assert read_features(path).shape == (length, 2048)
    with pytest.raises(InputError, match=r"phone\.npz.*s01_01_sp"):  # many recordings in one file
        read_features(shared_data / "tug" / "phone.npz")
