"""A day of features that lie in a file takes the memory of an hour, as long as little is found in it."""

import json
import subprocess
import sys
import tracemalloc
import zipfile
from dataclasses import replace

import h5py
import numpy as np
import pytest
from rich.console import Console

from temporalzoom.config import FolderData
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.windows import plan_windows
from temporalzoom.signals.archived_rows import Hdf5Rows, NpzRows, stored_rows
from temporalzoom.signals.feature_files import read_features
from temporalzoom.signals.feature_rows import FeatureRows, open_rows
from temporalzoom.signals.preparation import Framing, Preparation, count_not_finite
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train

PEAK = """
import json, resource, sys
import torch
from temporalzoom import Localizer
torch.set_num_threads(1)
localizer = Localizer.load(sys.argv[1], device="cpu")
localizer.options = localizer.options.model_copy(update=json.loads(sys.argv[3]))
found = localizer(sys.argv[2], threshold=0)
print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, len(found)]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_split, tiny_config):
    folder = tmp_path_factory.mktemp("run")
    settings = ("training.steps=20", "model.window=4", "bdr.channels=start_end")
    train(tiny_config(*settings), tiny_split, folder, console=Console(quiet=True))
    return folder


@pytest.fixture(scope="module")
def raw_run(tmp_path_factory, tiny_split, tiny_config):
    """Of a model that cuts windows of 6 rows, one every 2."""
    folder, grid = tmp_path_factory.mktemp("raw"), TimeGrid(2, 6, 25)
    samples = [replace(sample, framing=Framing(6, 2), grid=grid) for sample in tiny_split.samples]
    config = tiny_config("training.steps=20", "model.window=4", "training.length=30")
    config = config.model_copy(update={"data": FolderData(raw=True, stride=2, window=6)})
    train(config, replace(tiny_split, samples=tuple(samples)), folder, console=Console(quiet=True))
    return folder


def stored(path, length, dtype=np.float32):
    """A .npy of noise, written piece by piece."""
    mapped = np.lib.format.open_memmap(path, "w+", dtype, (length, 8))
    for first in range(0, length, 50_000):
        piece = mapped[first : first + 50_000]
        piece[:] = np.random.default_rng(first).normal(size=piece.shape)
    mapped.flush()
    return path


def peak(run, path, **options):
    command = [sys.executable, "-c", PEAK, str(run), str(path), json.dumps(options)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eight_times_the_recording_in_the_same_memory(run, tmp_path, dtype):
    few, many = 60_000, 480_000
    paths = [stored(tmp_path / f"{length}.npy", length, dtype) for length in (few, many)]
    (short, _), (long, found) = (peak(run, path, min_score=0.97) for path in paths)
    assert found < 2000
    assert (long - short) / (many - few) < 8, (short, long)  # bytes per position, of which the file has 32 or 64


@pytest.mark.slow
def test_eight_times_the_raw_signal_in_the_same_memory(raw_run, tmp_path):
    few, many = 60_000, 480_000
    paths = [stored(tmp_path / f"{length}.npy", length) for length in (few, many)]
    (short, _), (long, found) = (peak(raw_run, path, min_score=0.97) for path in paths)
    assert found < 2000
    assert (long - short) / (many - few) < 8, (short, long)  # bytes per row, of which the file has 32, windows 96


def write_hdf5(path, array, **how):
    with h5py.File(path, "w") as file:
        file.create_dataset("features", data=array, **how)


ARCHIVES = {
    "h5": ("x.h5", Hdf5Rows, write_hdf5),
    "h5 in chunks": ("x.h5", Hdf5Rows, lambda p, a: write_hdf5(p, a, chunks=(100, 4), compression="gzip")),
    "h5 in a batch": ("x.hdf5", Hdf5Rows, lambda p, a: write_hdf5(p, a[None])),
    "npz": ("x.npz", NpzRows, lambda p, a: np.savez(p, a)),
    "npz compressed": ("x.npz", NpzRows, lambda p, a: np.savez_compressed(p, features=a, other=np.ones(3))),
    "npz in a batch": ("x.npz", NpzRows, lambda p, a: np.savez(p, a[None])),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_gives_what_its_array_gives(run, tmp_path, kind):
    (name, rows, write), localizer = ARCHIVES[kind], Localizer.load(run)
    localizer.options = localizer.options.model_copy(update={"max_length": 700})  # several windows
    for dtype in (np.float64, np.float32, np.int16):
        features = (3 * np.random.default_rng(0).normal(size=(5000, 8))).astype(dtype)
        write(tmp_path / name, features)
        assert isinstance(stored_rows(tmp_path / name), rows)
        expected = localizer(features, threshold=0)
        assert len(expected) > 10 and localizer(tmp_path / name, threshold=0) == expected


@pytest.mark.parametrize("kind", ARCHIVES)
def test_rows_of_an_archive_in_any_order(tmp_path, kind):
    name, _, write = ARCHIVES[kind]
    features = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    write(tmp_path / name, features)
    rows, draw = stored_rows(tmp_path / name), np.random.default_rng(1)
    np.testing.assert_array_equal(rows, features)
    for _ in range(200):
        first, last = draw.integers(0, 320, 2)
        np.testing.assert_array_equal(rows[first:last], features[first:last])


@pytest.mark.parametrize("kind", [*ARCHIVES, "npy", "raw npy"])
def test_pieces_of_a_file_take_flat_memory(tmp_path, kind):
    name, _, write = ARCHIVES.get(kind, ("x.npy", None, np.save))
    preparation = Preparation(framing=Framing(6, 2) if kind == "raw npy" else None)

    def peak(length):
        write(tmp_path / name, np.random.default_rng(0).normal(size=(length, 8)).astype(np.float32))
        tracemalloc.start()
        rows, _ = preparation.apply(stored_rows(tmp_path / name), TimeGrid(1, 1, 25), 48 if "raw" in kind else 8)
        assert count_not_finite(rows) == 0
        for first, last, *_ in plan_windows(len(rows), 2304, 100):
            rows[first:last]
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(100)
    short, long = peak(20_000), peak(100_000)
    assert (long - short) / 80_000 < 1, (short, long)  # bytes per position, of which the file has 32


@pytest.mark.parametrize("options", [{}, {"voting": 0.4}, {"refine": "snap"}])
def test_a_raw_signal_in_a_file_gives_what_its_array_gives(raw_run, tmp_path, options):
    localizer, path = Localizer.load(raw_run), tmp_path / "x.npy"
    localizer.options = localizer.options.model_copy(update=options)
    for length in (3, 9000):
        signal = np.random.default_rng(0).normal(size=(length, 8))
        np.save(path, signal)
        expected = localizer(signal.astype(np.float32), threshold=0)
        assert localizer(path, threshold=0) == expected == localizer(signal, threshold=0)
        windows = Framing(6, 2).cut(signal.astype(np.float32))
        np.testing.assert_array_equal(localizer.prepare(path).features, windows)


@pytest.mark.parametrize("kind", ["npz", "npz compressed", "h5 in chunks"])
def test_an_archive_that_is_damaged_in_its_middle(run, tmp_path, kind):
    """Nothing is found in it before all of it was looked at."""
    name, _, write = ARCHIVES[kind]
    write(tmp_path / name, np.random.default_rng(0).normal(size=(5000, 8)))
    content = bytearray((tmp_path / name).read_bytes())
    for place in range(len(content) // 2, len(content) // 2 + 200):
        content[place] ^= 0x55
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name) as caught:
        Localizer.load(run)(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_large_chunks_are_read_as_a_whole(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("features", (3_000_000, 8), "f4", chunks=(3_000_000, 8), compression="gzip")[:5] = 1.0
    assert isinstance(stored_rows(tmp_path / "x.h5"), np.ndarray)


def test_an_array_that_its_archive_holds_twice(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        for value in (1, 2):
            np.save(tmp_path / "a.npy", np.full((4, 2), value, np.float32))
            archive.write(tmp_path / "a.npy", "features.npy")
    np.testing.assert_array_equal(np.asarray(stored_rows(tmp_path / "x.npz")), read_features(tmp_path / "x.npz"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ">f4", np.int16])
def test_a_file_gives_what_its_array_gives(run, tmp_path, dtype):
    localizer, path = Localizer.load(run), tmp_path / "x.npy"
    features = (3 * np.random.default_rng(0).normal(size=(5000, 8))).astype(dtype)
    np.save(path, features)
    expected = localizer(features.astype(np.float32), threshold=0)
    assert len(expected) > 10
    assert localizer(path, threshold=0) == expected == localizer(np.load(path, mmap_mode="r"), threshold=0)
    assert localizer(features, threshold=0) == expected
    np.testing.assert_array_equal(localizer.prepare(path).features, features.astype(np.float32))


@pytest.mark.parametrize("shape", [(7, 3), (1, 7, 3), (0, 3)])
def test_rows_of_a_file(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=shape))
    rows, whole = open_rows(tmp_path / "x.npy"), read_features(tmp_path / "x.npy")
    assert isinstance(rows, FeatureRows) and rows.shape == whole.shape and len(rows) == len(whole)
    np.testing.assert_array_equal(rows, whole)
    np.testing.assert_array_equal(rows[2:5], whole[2:5])
    np.testing.assert_array_equal(rows[5:100], whole[5:100])


def test_what_cannot_be_read_in_pieces_is_read(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(np.ones((3, 4))))
    assert isinstance(open_rows(tmp_path / "x.npy"), np.ndarray)
    (tmp_path / "x.npy").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read"):
        open_rows(tmp_path / "x.npy")


def test_a_file_that_becomes_shorter(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((50, 4), np.float32))
    rows = open_rows(tmp_path / "x.npy")
    with (tmp_path / "x.npy").open("r+b") as file:
        file.truncate(300)
    with pytest.raises(InputError, match="became shorter"):
        rows[20:50]
