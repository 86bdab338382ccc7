"""Feature files on disk: one file per recording, features (T, D), in the formats that the field shares."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.signals.hdf5_files import opened_hdf5

SUFFIXES = (".npy", ".npz", ".pt", ".h5", ".hdf5")
PLAUSIBLE = 2**30  # bytes that any file may expand to; beyond them, no compression makes more than this of a byte:
DENSEST = 1100
KEYS = ("features", "feats")  # which array of a file with several is meant


def find_features(folder: str | Path, name: str) -> Path | None:
    """The feature file of recording `name`, None if there is none; two files for one name are an error, and so is a
    name that leads out of the folder: annotations of others may name any file."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of features")
    for kind in (PurePosixPath(name), PureWindowsPath(name)):
        if kind.anchor or ".." in kind.parts:
            raise InputError(f"{folder}: the name {name!r} leads out of the folder")
    # Not with_suffix: the name of a recording may contain dots.
    found = [path for suffix in SUFFIXES if _is_file(path := folder / f"{name}{suffix}")]
    if len(found) > 1:
        raise InputError(f"{folder}: more than one feature file for {name!r}: {', '.join(p.name for p in found)}")
    return found[0] if found else None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have, such as one of 300 letters
        return False


def read_features(path: str | Path) -> NDArray[np.float32]:
    """The features of one file, (T, D) in float32. Nothing in the file is ever executed.

    A leading axis of length 1 is dropped. Values are not judged: NaN and Inf pass.
    """
    path = Path(path)
    array = _read(path, lengths_only=False)
    two_dimensional(array.shape, path)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{path}: features must be numbers, the array has dtype {array.dtype}")
    _plausible(array.size * np.dtype(np.float32).itemsize, path)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes Inf: see the data check
        return np.ascontiguousarray(array.reshape(array.shape[-2:]), dtype=np.float32)


def feature_length(path: str | Path) -> int:
    """T of a feature file; .npy, .h5 and .pt files are not read as a whole for it."""
    path = Path(path)
    return two_dimensional(_read(path, lengths_only=True).shape, path)[0]


def write_features(path: str | Path, features: ArrayLike) -> None:
    """Write features (T, D) as a float32 .npy file, whole or not at all."""
    path = Path(path)
    if path.suffix != ".npy":
        raise InputError(f"{path}: features are written as .npy, not {path.suffix or 'without a suffix'}")
    array = np.asarray(features)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(f"features must be numbers of shape (T, D), got {array.dtype} {array.shape}")
    array = np.ascontiguousarray(array, np.float32)
    with replacing(path, "wb") as file:
        # Not np.save: it writes past the file object, and where the disk is full it leaves half an array and no word.
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data if array.size else b"")


def _read(path: Path, lengths_only: bool) -> Any:
    """The stored array; with `lengths_only` something that has its `shape` and costs less where the format allows."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: not a feature file; known are {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        if path.suffix == ".npy":
            array = _read_npy(path, lengths_only)
        elif path.suffix == ".npz":
            array = _read_npz(path)
        elif path.suffix == ".pt":
            array = _read_pt(path, lengths_only)
        else:
            array = _read_hdf5(path, lengths_only)
        if not isinstance(array, np.ndarray):  # the other members of a zip file, an empty data set of HDF5
            raise InputError(f"{path}: holds no array of numbers")
        return array
    except InputError:
        raise
    except Exception as error:  # each format fails on a damaged file in a dozen ways of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: cannot be read, damaged or not a {path.suffix} file: {reason[:200]}") from error


def _read_npy(path: Path, lengths_only: bool) -> Any:
    shape, _, dtype, begin = npy_header(path)
    if dtype.hasobject:
        raise InputError(f"{path}: holds Python objects; only plain arrays of numbers are read")
    if path.stat().st_size < begin + math.prod(shape) * dtype.itemsize:
        raise ValueError(f"cut off: its header promises {shape}")
    # A view of one zero: the shape costs no memory.
    return np.broadcast_to(np.zeros((), dtype), shape) if lengths_only else np.load(path, allow_pickle=False)


def npy_header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether it is transposed, dtype, and where the numbers begin. A damaged header raises ValueError."""
    with path.open("rb") as file:
        return *header_of_npy(file), file.tell()


def header_of_npy(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """As `npy_header`, of a file that is open; the numbers follow."""
    try:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, is_transposed, dtype = readers[version](file)
    except OSError:
        raise
    except Exception as error:  # it is Python text: brackets that do not close fail in the parser
        raise ValueError(f"damaged header ({' '.join(str(error).split()) or type(error).__name__})") from None
    if any(isinstance(n, bool) or n < 0 for n in shape):
        raise ValueError(f"damaged header: a shape {shape}")
    return shape, is_transposed, dtype


def _read_npz(path: Path) -> Any:
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("not an archive of arrays")
    with archive:
        return archive[choose_array(archive.files, path)]


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
        stored = tensors[choose_array(tensors, path)]
    if not isinstance(stored, torch.Tensor):
        raise InputError(f"{path}: holds a {type(stored).__name__}; only plain tensors are read")
    if stored.is_nested or stored.layout != torch.strided or stored.is_quantized or stored.is_meta:
        raise InputError(f"{path}: holds a tensor of a special kind; only plain tensors are read")
    if lengths_only:
        return np.broadcast_to(np.float32(0), tuple(stored.shape))
    _plausible(stored.numel() * stored.element_size(), path)
    stored = stored.detach()
    return (stored.float() if stored.is_floating_point() else stored).numpy()  # NumPy has no bfloat16


def _read_hdf5(path: Path, lengths_only: bool) -> Any:
    with opened_hdf5(path) as file:
        dataset = file[choose_array(hdf5_arrays(file), path)]
        if dataset.shape is None:
            raise InputError(f"{path}: the data set {dataset.name!r} is empty")
        # A view of one zero: the shape outlives the file, and no memory is taken.
        if lengths_only:
            return np.broadcast_to(np.float32(0), dataset.shape)
        _plausible(dataset.nbytes, path)
        return np.asarray(dataset[()])


def hdf5_arrays(file: Any) -> list[str]:
    """The names of all data sets of an open HDF5 file."""
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
    return names


def is_plausible(size: int, path: Path) -> bool:
    """A file of some bytes can claim to hold more than any memory does: one number, repeated."""
    return size <= max(PLAUSIBLE, DENSEST * path.stat().st_size)


def _plausible(size: int, path: Path) -> None:
    if not is_plausible(size, path):
        raise InputError(f"{path}: {path.stat().st_size} bytes that claim to hold {size / 2**30:.1f} GiB")


def choose_array(names: Collection[str], path: Path) -> str:
    """Which array of several: the one called as in KEYS, or the only one."""
    for key in KEYS:
        if key in names:
            return key
    if len(names) == 1:
        return next(iter(names))
    listed = ", ".join(sorted(names)[:20]) or "none"
    raise InputError(f"{path}: one array, or one called 'features', is expected; it holds {len(names)}: {listed}")


def two_dimensional(shape: tuple[int, ...], path: Path) -> tuple[int, int]:
    """(T, D) of a stored shape (T, D) or (1, T, D)."""
    rows_columns = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape
    if len(rows_columns) != 2 or rows_columns[1] == 0:
        raise InputError(f"{path}: features must have the shape (T, D), got {tuple(shape)}")
    return int(rows_columns[0]), int(rows_columns[1])
