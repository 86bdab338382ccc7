"""Features that stay in their file: rows are read when they are looked at."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.signals.feature_files import npy_header, read_features, two_dimensional

Floats = NDArray[np.float32]


class FeatureRows:
    """The features (T, D) of a .npy file. A slice of it is a float32 array, and `np.asarray` the whole.

    Not a memory map: a day of features does not fill the memory while it is read from front to back, and a file that
    becomes shorter meanwhile is an error of one line, not the end of the process.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, path: Path, shape: tuple[int, int], stored: np.dtype[Any], begin: int) -> None:
        self.path, self.shape, self._stored, self._begin = path, shape, stored, begin

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Floats:
        first, last, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("rows one after the other, please")
        count, width = max(last - first, 0), self.shape[1]
        size = count * width * self._stored.itemsize
        with self.path.open("rb") as file:
            file.seek(self._begin + first * width * self._stored.itemsize)
            content = file.read(size)
        if len(content) < size:
            raise InputError(f"{self.path}: became shorter while it was read")
        with np.errstate(over="ignore"):  # what overflows float32 becomes Inf, which is refused
            return np.frombuffer(content, self._stored).reshape(count, width).astype(np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)


def open_features(path: str | Path) -> Floats | FeatureRows:
    """As `read_features`; of a .npy file only what is looked at is read."""
    path = Path(path)
    if path.suffix != ".npy" or not path.is_file():
        return read_features(path)
    try:
        shape, is_transposed, dtype, begin = npy_header(path)
    except (OSError, ValueError):  # `read_features` says what is wrong with it
        return read_features(path)
    whole = os.path.getsize(path) >= begin + math.prod(shape) * dtype.itemsize
    if is_transposed or dtype.kind not in "fiu" or not whole:
        return read_features(path)
    return FeatureRows(path, two_dimensional(shape, path), dtype, begin)
