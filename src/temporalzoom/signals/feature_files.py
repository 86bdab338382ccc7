"""Feature files on disk: one file per recording, features (T, D), in the formats that the field shares."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError

SUFFIXES = (".npy", ".npz", ".pt", ".h5", ".hdf5")
KEYS = ("features", "feats")  # which array of a file with several is meant


def find_features(folder: str | Path, name: str) -> Path | None:
    """The feature file of recording `name`, None if there is none; two files for one name are an error."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of features")
    # Not with_suffix: the name of a recording may contain dots.
    found = [path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]
    if len(found) > 1:
        raise InputError(f"{folder}: more than one feature file for {name!r}: {', '.join(p.name for p in found)}")
    return found[0] if found else None


def read_features(path: str | Path) -> NDArray[np.float32]:
    """The features of one file, (T, D) in float32. Nothing in the file is ever executed.

    A leading axis of length 1 is dropped. Values are not judged: NaN and Inf pass.
    """
    path = Path(path)
    array = _read(path, lengths_only=False)
    _two_dimensional(array.shape, path)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{path}: features must be numbers, the array has dtype {array.dtype}")
    with np.errstate(over="ignore"):  # what overflows float32 becomes Inf, which the data check reports
        return np.ascontiguousarray(array.reshape(array.shape[-2:]), dtype=np.float32)


def map_features(path: str | Path) -> NDArray[np.float32]:
    """As `read_features`; of a float32 .npy file, only what is looked at is read, and memory is given back when needed.

    A data set may then be larger than memory. Writing into the array changes no file.
    """
    path = Path(path)
    if path.suffix == ".npy" and path.is_file():
        mapped = _map_npy(path)
        if mapped is not None:
            _two_dimensional(mapped.shape, path)
            return mapped.reshape(mapped.shape[-2:])
    return read_features(path)


def feature_length(path: str | Path) -> int:
    """T of a feature file; .npy, .h5 and .pt files are not read as a whole for it."""
    path = Path(path)
    return _two_dimensional(_read(path, lengths_only=True).shape, path)[0]


def write_features(path: str | Path, features: ArrayLike) -> None:
    """Write features (T, D) as a float32 .npy file, whole or not at all."""
    path = Path(path)
    if path.suffix != ".npy":
        raise InputError(f"{path}: features are written as .npy, not {path.suffix or 'without a suffix'}")
    array = np.asarray(features)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(f"features must be numbers of shape (T, D), got {array.dtype} {array.shape}")
    with replacing(path, "wb") as file:
        np.save(file, array.astype(np.float32), allow_pickle=False)


def _read(path: Path, lengths_only: bool) -> Any:
    """The stored array; with `lengths_only` something that has its `shape` and costs less where the format allows."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: not a feature file; known are {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        if path.suffix == ".npy":
            return _read_npy(path, lengths_only)
        if path.suffix == ".npz":
            return _read_npz(path)
        if path.suffix == ".pt":
            return _read_pt(path, lengths_only)
        return _read_hdf5(path, lengths_only)
    except InputError:
        raise
    except Exception as error:  # each format fails on a damaged file in a dozen ways of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: cannot be read, damaged or not a {path.suffix} file: {reason[:200]}") from error


def _read_npy(path: Path, lengths_only: bool) -> Any:
    with path.open("rb") as file:
        np.lib.format.read_magic(file)  # np.load takes what is not an array for a pickle, and says so
    try:
        return np.load(path, mmap_mode="r" if lengths_only else None, allow_pickle=False)
    except ValueError as error:
        if "object" in str(error).lower():
            raise InputError(f"{path}: holds Python objects; only plain arrays of numbers are read") from error
        raise


def _map_npy(path: Path) -> NDArray[np.float32] | None:
    """The array of a file in the memory of the file; None where it must be read, or is not what it seems to be."""
    import torch  # not np.memmap: that keeps every file open, and a data set has more than a process may open

    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, is_transposed, dtype = read_header[version](file)
            begin = file.tell()
        size = math.prod(shape) * np.dtype(np.float32).itemsize
        if dtype != np.dtype(np.float32) or is_transposed or not size or path.stat().st_size < begin + size:
            return None
        content = torch.from_file(str(path), shared=False, size=begin + size, dtype=torch.uint8)
        return content.numpy()[begin:].view(np.float32).reshape(shape)
    except (OSError, ValueError, KeyError, RuntimeError):  # `read_features` says what is wrong with it
        return None


def _read_npz(path: Path) -> Any:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("not an archive of arrays")
    with archive:
        return archive[_key(archive.files, path)]


def _read_pt(path: Path, lengths_only: bool) -> Any:
    import pickle
    import zipfile

    import torch  # here, because the other formats do without its import time

    try:
        # Memory-mapping exists for the zip format only, the one that torch.save has written since 1.6.
        mapped = lengths_only and zipfile.is_zipfile(path)
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        raise InputError(f"{path}: damaged, or holds more than tensors; only plain tensors are read") from error
    if isinstance(stored, Mapping):
        tensors = {str(key): value for key, value in stored.items() if isinstance(value, torch.Tensor)}
        stored = tensors[_key(tensors, path)]
    if not isinstance(stored, torch.Tensor):
        raise InputError(f"{path}: holds a {type(stored).__name__}; only plain tensors are read")
    if lengths_only:
        return stored
    stored = stored.detach()
    return (stored.float() if stored.is_floating_point() else stored).numpy()  # NumPy has no bfloat16


def _read_hdf5(path: Path, lengths_only: bool) -> Any:
    try:
        import h5py
    except ImportError as error:
        raise InputError(f'{path}: reading it needs h5py: pip install "temporalzoom[hdf5]"') from error
    with h5py.File(path, "r") as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        dataset = file[_key(names, path)]
        # A view of one zero: the shape outlives the file, and no memory is taken.
        return np.broadcast_to(np.float32(0), dataset.shape) if lengths_only else dataset[()]


def _key(names: Collection[str], path: Path) -> str:
    """Which array of several: the one called as in KEYS, or the only one."""
    for key in KEYS:
        if key in names:
            return key
    if len(names) == 1:
        return next(iter(names))
    listed = ", ".join(sorted(names)[:20]) or "none"
    raise InputError(f"{path}: one array, or one called 'features', is expected; it holds {len(names)}: {listed}")


def _two_dimensional(shape: tuple[int, ...], path: Path) -> tuple[int, int]:
    """(T, D) of a stored shape (T, D) or (1, T, D)."""
    rows_columns = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape
    if len(rows_columns) != 2 or rows_columns[1] == 0:
        raise InputError(f"{path}: features must have the shape (T, D), got {tuple(shape)}")
    return int(rows_columns[0]), int(rows_columns[1])
