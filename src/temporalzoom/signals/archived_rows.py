"""Features that stay in an archive, .h5 or .npz, while a recording is read from front to back."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.signals.feature_files import (
    choose_array,
    hdf5_arrays,
    header_of_npy,
    is_plausible,
    read_features,
    two_dimensional,
)
from temporalzoom.signals.feature_rows import FeatureRows, Floats, open_rows, read_into
from temporalzoom.signals.hdf5_files import opened_hdf5

LARGEST_CHUNK = 2**24  # bytes of an HDF5 file that can only be read together; with larger ones pieces are no gain


def stored_rows(path: str | Path) -> Floats | FeatureRows:
    """As `open_rows`; of .h5 and .npz files, too, only what is looked at is read. Slices in order of time are quick,
    others may read an archive from its beginning. What cannot be read in pieces is read as a whole."""
    path = Path(path)
    opened = {".h5": _open_hdf5, ".hdf5": _open_hdf5, ".npz": _open_npz}.get(path.suffix)
    if opened is None or not path.is_file():
        return open_rows(path)
    try:
        found = opened(path)
    except Exception:  # each format fails on a damaged file in a dozen ways: `read_features` says in which
        found = None
    return read_features(path) if found is None else found


class Hdf5Rows(FeatureRows):
    """Of a data set (T, D) or (1, T, D) of an HDF5 file."""

    def __init__(self, path: Path, name: str, stored: tuple[int, ...]) -> None:
        super().__init__(two_dimensional(stored, path))
        self.path, self._name, self._stored = path, name, stored

    def _read(self, first: int, last: int) -> Floats:
        try:
            with opened_hdf5(self.path) as file:
                dataset = file[self._name]
                if dataset.shape != self._stored:
                    raise InputError(f"{self.path}: became another file while it was read")
                rows = dataset[0, first:last] if len(self._stored) == 3 else dataset[first:last]
                with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes Inf, which is refused
                    return np.ascontiguousarray(rows, np.float32)
        except InputError:
            raise
        except Exception as error:
            raise _unreadable(self.path, error) from error


def _open_hdf5(path: Path) -> Hdf5Rows | None:
    with opened_hdf5(path) as file:
        dataset = file[choose_array(hdf5_arrays(file), path)]
        if dataset.shape is None or dataset.dtype.kind not in "fiu" or not is_plausible(dataset.nbytes, path):
            return None
        if dataset.chunks is not None and math.prod(dataset.chunks) * dataset.dtype.itemsize > LARGEST_CHUNK:
            return None
        return Hdf5Rows(path, dataset.name, dataset.shape)


class NpzRows(FeatureRows):
    """Of an array of an .npz file, compressed or not. What was read last is kept, because windows overlap."""

    def __init__(self, path: Path, member: str, shape: tuple[int, int], stored: np.dtype[Any]) -> None:
        super().__init__(shape)
        self.path, self._member, self._stored = path, member, stored
        self._file: IO[bytes] | None = None
        self._next = 0  # the row at which the file stands
        self._recent = np.empty((0, shape[1]), stored)  # the rows before it

    def _read(self, first: int, last: int) -> Floats:
        try:
            rows = self._rows(first, last)
        except InputError:
            raise
        except Exception as error:
            raise _unreadable(self.path, error) from error
        with np.errstate(over="ignore", invalid="ignore"):
            return rows.astype(np.float32)

    def _rows(self, first: int, last: int) -> Any:
        if first == last:
            return self._recent[:0]
        if self._file is None or first < self._next - len(self._recent):
            self._open()
        assert self._file is not None
        while self._next < first:  # forward, in pieces no longer than what is asked for
            self._forward(min(first - self._next, last - first))
        if last > self._next:
            begin = self._next - len(self._recent)
            kept = self._recent[first - begin :]
            self._forward(last - self._next)
            self._recent = np.concatenate([kept, self._recent])
            if self._next == len(self):
                self._file.read(1)  # at its end a file is compared with its checksum
        begin = self._next - len(self._recent)
        return self._recent[first - begin : last - begin]

    def _open(self) -> None:
        self._file = zipfile.ZipFile(self.path).open(self._member)
        shape, is_transposed, dtype = header_of_npy(self._file)
        if (two_dimensional(shape, self.path), is_transposed, dtype) != (self.shape, False, self._stored):
            raise InputError(f"{self.path}: became another file while it was read")
        self._next, self._recent = 0, self._recent[:0]

    def _forward(self, count: int) -> None:
        self._recent = np.empty((count, self.shape[1]), self._stored)
        read_into(self._file, self._recent, self.path)
        self._next += count


def _open_npz(path: Path) -> NpzRows | None:
    with zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        if len(members) != len(archive.namelist()):
            return None
        member = members[choose_array(members, path)]
        with archive.open(member) as file:
            shape, is_transposed, dtype = header_of_npy(file)
            whole = file.tell() + math.prod(shape) * dtype.itemsize <= archive.getinfo(member).file_size
    if is_transposed or dtype.kind not in "fiu" or not whole or not member.endswith(".npy"):
        return None
    rows_columns = two_dimensional(shape, path)
    return NpzRows(path, member, rows_columns, dtype) if is_plausible(4 * math.prod(rows_columns), path) else None


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(f"{path}: cannot be read, damaged or not a {path.suffix} file: {reason[:200]}")
