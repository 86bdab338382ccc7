"""Folders and archives of arrays: what is read from them, and what is said where it cannot be."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from temporalzoom.errors import InputError
from temporalzoom.signals.feature_store import open_features

ARRAY = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "all.npz"
    np.savez(path, run1=ARRAY, run2=ARRAY.astype(np.float64) + 1, left_run1=-ARRAY)
    return path


def complaint(path: Path, name: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        store = open_features(path)
        if name is not None:
            store.read(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_arrays_of_an_archive(archive: Path):
    store = open_features(archive)
    for name, expected in (("run1", ARRAY), ("run2", ARRAY + 1)):
        found = store.read(name)
        assert found is not None and found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
    assert store.read("run3") is None
    assert store.absence.replace("{}", "run3") == f"no array run3 in {archive}"


def test_files_of_a_folder(tmp_path: Path):
    np.save(tmp_path / "run1.npy", ARRAY)
    store = open_features(str(tmp_path))
    np.testing.assert_array_equal(store.read("run1"), ARRAY)
    assert store.read("run2") is None
    assert store.absence.replace("{}", "run2") == f"no feature file run2.* in {tmp_path}"


def test_a_prefix_belongs_to_the_name(archive: Path, tmp_path: Path):
    store = open_features(archive, prefix="left_")
    np.testing.assert_array_equal(store.read("run1"), -ARRAY)
    assert store.read("run2") is None and "no array left_{}" in store.absence
    np.save(tmp_path / "v_run2.npy", ARRAY)
    np.testing.assert_array_equal(open_features(tmp_path, prefix="v_").read("run2"), ARRAY)


def test_integers_are_numbers_and_what_overflows_is_infinite(tmp_path: Path, recwarn: pytest.WarningsRecorder):
    np.savez(tmp_path / "a.npz", counts=np.array([[1, 2]], np.int16), big=np.array([[1e300]]))
    store = open_features(tmp_path / "a.npz")
    np.testing.assert_array_equal(store.read("counts"), [[1.0, 2.0]])
    np.testing.assert_array_equal(store.read("big"), [[np.inf]])
    assert not recwarn.list


def test_neither_folder_nor_archive(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("nothing")
    for name in ("nowhere", "nowhere.npz", "notes.txt"):
        assert complaint(tmp_path / name).startswith(f"{tmp_path / name} is neither a folder of feature files nor")


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut off"])
def test_a_damaged_archive(tmp_path: Path, content: bytes):
    path = tmp_path / "all.npz"
    path.write_bytes(content)
    assert complaint(path).startswith(f"{path}: not an .npz archive of arrays")


def test_a_single_array_is_no_archive(tmp_path: Path):
    np.save(tmp_path / "one.npy", ARRAY)
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    assert "one.npz: not an .npz archive of arrays" in complaint(tmp_path / "one.npz")


def test_half_an_archive(archive: Path):
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    assert complaint(archive).startswith(f"{archive}: not an .npz archive of arrays")


def test_a_damaged_array_is_named(archive: Path):
    with zipfile.ZipFile(archive) as members:
        where = members.getinfo("run2.npy").header_offset
    content = bytearray(archive.read_bytes())
    content[where + 150 : where + 200] = b"\xff" * 50  # behind the two headers: its checksum no longer fits
    archive.write_bytes(content)
    np.testing.assert_array_equal(open_features(archive).read("run1"), ARRAY)
    assert complaint(archive, "run2").startswith(f"{archive}: array 'run2' cannot be read")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(5), "must be numbers of shape (T, D), got float64 (5,)"),
        (np.zeros((1, 2, 3)), "got float64 (1, 2, 3)"),
        (np.array([["a"]]), "must be numbers"),
        (np.array([[None]], object), "cannot be read"),  # nothing is ever unpickled
    ],
)
def test_arrays_that_are_no_signals(tmp_path: Path, array: np.ndarray, said: str):
    np.savez(tmp_path / "all.npz", run=array)
    message = complaint(tmp_path / "all.npz", "run")
    assert "all.npz: array 'run'" in message and said in message
