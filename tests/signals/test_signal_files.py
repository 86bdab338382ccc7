"""Files of every format: what was written is read back, and the recordings of a folder are found."""

import numpy as np
import pytest
import torch

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.signals.container import Signal
from temporalzoom.signals.feature_files import read_features
from temporalzoom.signals.signal_files import SIGNAL_SUFFIXES, ArchivedArray, find_recordings, read_signal

N = 120
VALUES = np.random.default_rng(3).normal(size=(N, 3)).astype(np.float32)
TIMES = np.arange(N) / 40
PHASE = np.array(["rise"] * 40 + ["fall"] * 60 + [""] * 20)
LABELS = Segments([0, 1], [1, 2.5], ["rise", "fall"])


def same(signal: Signal, fps=40.0, channels=("a", "b", "c"), labels=LABELS):
    np.testing.assert_allclose(signal.values, VALUES, atol=1e-6)
    assert signal.values.dtype == np.float32
    assert signal.fps == fps and signal.channels == channels
    assert (signal.labels is None) == (labels is None)
    if labels is not None:
        assert signal.labels.labels.tolist() == labels.labels.tolist()
        np.testing.assert_allclose(signal.labels.starts, labels.starts, atol=1e-6)
        np.testing.assert_allclose(signal.labels.ends, labels.ends, atol=1e-6)


# Arrays


def test_arrays_without_a_clock_are_read_as_features_are(tmp_path):
    np.save(tmp_path / "x.npy", VALUES)
    np.savez(tmp_path / "one.npz", VALUES)
    np.savez(tmp_path / "key.npz", features=VALUES, more=np.zeros(3))
    torch.save(torch.from_numpy(VALUES), tmp_path / "x.pt")
    for name in ("x.npy", "one.npz", "key.npz", "x.pt"):
        path = tmp_path / name
        same(read_signal(path), None, (), None)
        np.testing.assert_array_equal(read_signal(path).values, read_features(path))
        assert read_signal(path, fps=40.0).fps == 40.0
        np.testing.assert_array_equal(read_signal(path, columns=[2, 0]).values, VALUES[:, [2, 0]])
        with pytest.raises(InputError, match=r"^.*: no channel 'a': its 3 channels have no names"):
            read_signal(path, columns=["a"])
        with pytest.raises(InputError, match="has no columns of labels"):
            read_signal(path, label_column="phase")


def test_an_archive_with_its_clock(tmp_path):
    path = tmp_path / "walk.npz"
    np.savez(path, values=VALUES, time=TIMES)
    same(read_signal(path), 40.0, (), None)
    np.savez(
        path, values=VALUES, timestamps=(1e12 + 25 * np.arange(N)).astype(np.int64), labels=PHASE, channels=list("abc")
    )
    same(read_signal(path))
    same(read_signal(path, label_column=""), labels=None)
    stamps = np.datetime64("2024-01-01T00:00:00") + np.arange(N) * np.timedelta64(25, "ms")
    np.savez(path, values=VALUES, time=stamps)
    assert read_signal(path).start == 1704067200.0
    np.savez(path, features=VALUES, fps=40.0)
    same(read_signal(path), 40.0, (), None)
    same(read_signal(path, fps=40.0), 40.0, (), None)
    with pytest.raises(InputError, match=r"walk\.npz: its fps is 40, not the 50 asked for"):
        read_signal(path, fps=50.0)
    np.savez(path, values=VALUES, time=TIMES[:-1])
    with pytest.raises(InputError, match=r"time of shape \(119,\) for 120 rows"):
        read_signal(path)
    np.savez(path, values=VALUES, other=VALUES, time=TIMES)
    with pytest.raises(InputError, match="one array, or one called 'features', is expected beside time"):
        read_signal(path)
    counter = np.stack([np.arange(N), np.zeros(N)], axis=1)
    np.savez(path, values=counter, time=TIMES)
    np.testing.assert_array_equal(read_signal(path).values, counter)  # nothing is guessed about an array


# Parquet


def test_parquet(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    channels = {name: pa.array(VALUES[:, place]) for place, name in enumerate("abc")}
    nanoseconds = (TIMES * 1e9).astype(np.int64)
    clocks = {
        "time_ms": pa.array((TIMES * 1000).astype(np.int64)),
        "when": pa.array(nanoseconds, pa.timestamp("ns")),
        "zoned": pa.array(nanoseconds // 1000, pa.timestamp("us", tz="UTC")),
        "since": pa.array(nanoseconds, pa.duration("ns")),
    }
    labels = {"text": pa.array(PHASE), "category": pa.array(PHASE).dictionary_encode()}
    labels["nulls"] = pa.array([text or None for text in PHASE.tolist()])
    path = tmp_path / "walk.parquet"
    for clock, stamps in clocks.items():
        for kind, phase in labels.items():
            parquet.write_table(pa.table({clock: stamps, **channels, "phase": phase}), path)
            same(read_signal(path)), (clock, kind)
    parquet.write_table(pa.table({**channels, "tags": pa.array([[1]] * N)}), path)
    signal = read_signal(path, fps=40.0)
    same(signal, labels=None)
    assert "Left out, neither numbers nor text: tags." in signal.notes
    missing = VALUES.astype(object)
    missing[5, 1] = None
    parquet.write_table(pa.table({"a": pa.array(list(missing[:, 1])), "b": pa.array([True, False] * (N // 2))}), path)
    signal = read_signal(path)
    assert np.isnan(signal.values[:, 0]).nonzero()[0].tolist() == [5] and signal.values[:2, 1].tolist() == [1, 0]
    path.write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"walk\.parquet: cannot be read, damaged or not a Parquet file"):
        read_signal(path)


# EDF


def test_edf(tmp_path):
    edfio = pytest.importorskip("edfio")
    path = tmp_path / "night.edf"
    slow = np.sin(np.arange(30) / 5)
    signals = [
        edfio.EdfSignal(VALUES[:, 0].astype(float), 40, label="EEG Fpz"),
        edfio.EdfSignal(slow, 10, label="Resp"),
        edfio.EdfSignal(VALUES[:, 1].astype(float), 40, label="EEG Fpz"),
    ]
    notes = [
        edfio.EdfAnnotation(0.5, 1.0, "Sleep stage 1"), edfio.EdfAnnotation(2.0, 5.0, "Sleep stage 2"),
        edfio.EdfAnnotation(1.0, None, "Lights off"),
    ]  # fmt: skip
    edfio.Edf(signals, annotations=notes).write(path)
    signal = read_signal(path)
    assert signal.fps == 40 and signal.channels == ("EEG Fpz 1", "Resp", "EEG Fpz 2") and len(signal.values) == N
    np.testing.assert_allclose(signal.values[:, [0, 2]], VALUES[:, :2], atol=1e-3)  # EDF has 16 bits
    np.testing.assert_allclose(signal.values[::4, 1], slow, atol=1e-3)
    assert list(signal.labels) == [(0.5, 1.5, "Sleep stage 1", 1.0), (2.0, 3.0, "Sleep stage 2", 1.0)]
    assert "Slower signals are interpolated: Resp." in signal.notes
    assert "1 annotations without a duration are left out." in signal.notes
    assert read_signal(path, columns=["Resp"]).values.shape == (N, 1)
    with pytest.raises(InputError, match="its header says 40 rows per second, not the 100 asked for"):
        read_signal(path, fps=100.0)
    path.write_bytes(b"0       nothing")
    with pytest.raises(InputError, match=r"night\.edf: cannot be read, damaged or not an EDF file"):
        read_signal(path)


# HDF5 of one array


def test_hdf5_of_one_array(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["data/raw"] = VALUES
    same(read_signal(tmp_path / "x.h5", fps=40.0), 40.0, (), None)
    (tmp_path / "y.h5").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"y\.h5: cannot be read"):
        read_signal(tmp_path / "y.h5")


# Files that cannot be


def test_what_is_no_signal(tmp_path):
    (tmp_path / "x.docx").write_text("x")
    for path, message in (
        (tmp_path / "x.docx", "not a signal; known are .csv .tsv .parquet .edf"),
        (tmp_path / "y.csv", "no such file"),
        (tmp_path, "a folder, not a file"),
    ):
        with pytest.raises(InputError, match=message):
            read_signal(path)
    with pytest.raises(InputError, match="fps must be a positive number, got -1"):
        read_signal(tmp_path / "y.csv", fps=-1)


# Folders


def test_the_recordings_of_a_folder(tmp_path):
    for name in ("b.csv", "a.npy", "c.mp4", "notes.txt", ".hidden.csv", "d.CSV", "deep/e.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_recordings(tmp_path) == {
        path.stem: path for path in (tmp_path / n for n in ("a.npy", "b.csv", "c.mp4", "d.CSV"))
    }
    assert list(find_recordings(tmp_path, besides=[tmp_path / "b.csv"])) == ["a", "c", "d"]
    (tmp_path / "a.parquet").touch()
    with pytest.raises(InputError, match=r"a\.parquet and .*a\.npy: two files for the recording 'a'"):
        find_recordings(tmp_path)


def test_folders_below_only_where_the_folder_has_none(tmp_path):
    for name in ("s1/walk.csv", "s2/run.csv", "readme.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert find_recordings(tmp_path) == {"walk": tmp_path / "s1/walk.csv", "run": tmp_path / "s2/run.csv"}
    (tmp_path / "s2/walk.csv").touch()
    with pytest.raises(InputError, match="two files for the recording 'walk'"):
        find_recordings(tmp_path)
    empty = tmp_path / "none"
    empty.mkdir()
    with pytest.raises(InputError, match=r"none: no signal \(.csv .*\) and no video in this folder"):
        find_recordings(empty)
    with pytest.raises(InputError, match="no such file or folder"):
        find_recordings(tmp_path / "absent")


def test_the_recordings_of_an_archive(tmp_path):
    path = tmp_path / "all.npz"
    np.savez(path, walk=VALUES, run=VALUES[:50], text=np.array(["x"]))
    found = find_recordings(path)
    assert found == {name: ArchivedArray(path, name) for name in ("walk", "run", "text")}
    same(read_signal(found["walk"], fps=40.0), 40.0, (), None)
    assert read_signal(found["run"]).values.shape == (50, 3)
    with pytest.raises(InputError, match=r"all\.npz: array 'text' must be numbers of shape \(T, D\)"):
        read_signal(found["text"])
    with pytest.raises(InputError, match=r"all\.npz: no array 'jump'"):
        read_signal(ArchivedArray(path, "jump"))
    for arrays in ({"features": VALUES}, {"values": VALUES, "time": TIMES}, {"arr_0": VALUES}):
        np.savez(path, **arrays)
        assert find_recordings(path) == {"all": path}
    np.save(tmp_path / "x.npy", VALUES)
    assert find_recordings(tmp_path / "x.npy") == {"x": tmp_path / "x.npy"}
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"all\.npz: not an \.npz archive"):
        find_recordings(path)


def test_every_suffix_has_a_reader(tmp_path):
    for suffix in SIGNAL_SUFFIXES:
        path = tmp_path / f"x{suffix}"
        path.write_bytes(b"\0\0")
        with pytest.raises(InputError, match=rf"x\{suffix}: (not a table|cannot be read|not an|damaged)"):
            read_signal(path)
