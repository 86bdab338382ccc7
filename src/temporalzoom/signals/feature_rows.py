"""Features that stay in their file: rows are read when they are looked at."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.signals.feature_files import npy_header, read_features, two_dimensional

Floats = NDArray[np.float32]
PIECE = 4096  # rows that are looked at, or converted, at once


class FeatureRows(ABC):
    """Features (T, D) that are elsewhere. A slice of them is a float32 array, and `np.asarray` the whole.

    shape: (T, D). What `_read` has to raise where they are not there any more is an InputError of one line.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    @abstractmethod
    def _read(self, first: int, last: int) -> Floats:
        """Rows from `first` to `last`, half-open, 0 <= first <= last <= T: (last - first, D)."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __getitem__(self, rows: slice) -> Floats:
        first, last, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("rows one after the other, please")
        return self._read(first, max(last, first))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)


class NpyRows(FeatureRows):
    """Of a .npy file.

    Not a memory map: a day of features does not fill the memory while it is read from front to back, and a file that
    becomes shorter, or another one, meanwhile is an error of one line, not the end of the process. Nor is the file kept
    open: a data set has more of them than a process may open.
    """

    def __init__(self, path: Path, shape: tuple[int, int], stored: np.dtype[Any], header: bytes) -> None:
        super().__init__(shape)
        self.path, self._stored, self._header = path, stored, header

    def _read(self, first: int, last: int) -> Floats:
        rows = np.empty((last - first, self.shape[1]), self._stored)
        try:
            with self.path.open("rb", buffering=0) as file:
                if file.read(len(self._header)) != self._header:
                    raise InputError(f"{self.path}: became another file while it was read")
                file.seek(first * self.shape[1] * self._stored.itemsize, os.SEEK_CUR)
                read_into(file, rows, self.path)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read any more: {error.strerror or error}") from None
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes Inf, which is refused
            return rows.astype(np.float32, copy=False)


def read_into(file: Any, rows: NDArray[Any], path: Path) -> None:
    """Fill rows from a binary file. One that ends before raises InputError."""
    left = rows.data.cast("B") if rows.size else memoryview(b"")
    while len(left):
        count = file.readinto(left)
        if not count:
            raise InputError(f"{path}: became shorter while it was read")
        left = left[count:]


def open_rows(path: str | Path) -> Floats | FeatureRows:
    """As `read_features`; of a .npy file only what is looked at is read, each time that it is. A data set may then be
    larger than memory."""
    path = Path(path)
    if path.suffix != ".npy" or not path.is_file():
        return read_features(path)
    try:
        shape, is_transposed, dtype, begin = npy_header(path)
        whole = path.stat().st_size >= begin + math.prod(shape) * dtype.itemsize
        if is_transposed or dtype.kind not in "fiu" or not whole:
            return read_features(path)
        with path.open("rb") as file:
            header = file.read(begin)
    except (OSError, ValueError):  # `read_features` says what is wrong with it
        return read_features(path)
    return NpyRows(path, two_dimensional(shape, path), dtype, header)


def in_pieces(features: NDArray[Any] | FeatureRows) -> Iterator[Floats]:
    """(T, F) -> parts of it in float32, one after the other: a mask of a day, and a day in another type, would be as
    long as the day. What overflows becomes Inf."""
    for first in range(0, len(features), PIECE):
        with np.errstate(over="ignore", invalid="ignore"):
            piece = np.asarray(features[first : first + PIECE], np.float32)
        yield piece
