"""Where the features, or raw signals, of a data set lie: a folder of files, or one archive of arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.signals.feature_files import find_features
from temporalzoom.signals.feature_rows import FeatureRows, open_rows
from temporalzoom.signals.sidecars import Sidecar, read_sidecar

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class FeatureStore:
    """read: the array (T, D) of a recording, still in its file where that is a .npy, None if there is none; absence:
    how to say so, `{}` being its name."""

    absence: str
    read: Callable[[str], Floats | FeatureRows | None]


def open_features(path: str | Path, prefix: str = "") -> FeatureStore:
    """A folder with one file per recording, named like it after `prefix`, or an .npz archive with one array each."""
    path = Path(path)
    if path.is_dir():

        def from_folder(name: str) -> Floats | FeatureRows | None:
            file = find_features(path, prefix + name)
            return None if file is None else open_rows(file)

        return FeatureStore(f"no feature file {prefix}{{}}.* in {path}", from_folder)
    if path.suffix == ".npz" and path.is_file():
        return FeatureStore(f"no array {prefix}{{}} in {path}", _archive(path, prefix))
    raise InputError(f"{path} is neither a folder of feature files nor an .npz archive of arrays")


def open_sidecars(path: str | Path, prefix: str = "") -> Callable[[str], Sidecar | None] | None:
    """How the features of a recording in a folder were made, None for one without a description.

    None instead of a function where none has a description: archives, and folders without a JSON.
    """
    path = Path(path)
    if not path.is_dir() or next(path.glob("*.json"), None) is None:
        return None

    def of(name: str) -> Sidecar | None:
        file = find_features(path, prefix + name)
        return None if file is None else read_sidecar(file)

    return cache(of)


def _archive(path: Path, prefix: str) -> Callable[[str], Floats | None]:
    try:
        archive = np.load(path, allow_pickle=False)
        names = set(archive.files)
    except Exception as error:  # a damaged archive fails in a dozen ways
        raise InputError(f"{path}: not an .npz archive of arrays: {' '.join(str(error).split())[:200]}") from error

    def from_archive(name: str) -> Floats | None:
        if prefix + name not in names:
            return None
        try:
            array = archive[prefix + name]
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(f"{path}: array {prefix + name!r} cannot be read: {reason}") from error
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path}: {prefix + name!r} is no array")
        if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
            raise InputError(
                f"{path}: array {prefix + name!r} must be numbers of shape (T, D), got {array.dtype} {array.shape}"
            )
        with np.errstate(over="ignore"):  # what overflows becomes Inf, which the data check reports
            return np.ascontiguousarray(array, np.float32)

    return from_archive
