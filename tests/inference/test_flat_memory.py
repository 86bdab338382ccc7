"""A day of features that lie in a file takes the memory of an hour, as long as little is found in it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.signals.feature_files import read_features
from temporalzoom.signals.feature_rows import FeatureRows, open_rows
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
