"""Any file of a signal -> Signal: suffix and content choose the reader. And which files of a folder are recordings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.signals.channel_kinds import channel_kinds
from temporalzoom.signals.container import Signal
from temporalzoom.signals.edf import read_edf_signal
from temporalzoom.signals.extraction import VIDEO_SUFFIXES
from temporalzoom.signals.feature_files import KEYS, SUFFIXES, read_features
from temporalzoom.signals.hdf5_files import opened_hdf5
from temporalzoom.signals.poses import deeplabcut_table, is_deeplabcut_csv, keypoint_pattern, read_pose_hdf5
from temporalzoom.signals.table_signals import Roles, signal_of_columns, table_signal
from temporalzoom.signals.tables import Column, read_lines, read_parquet, text_table

TABLES = (".csv", ".tsv", ".parquet")
ROW_SUFFIXES = (*TABLES, ".edf")  # those that hold rows of a signal; the others may hold features as well
SIGNAL_SUFFIXES = (*ROW_SUFFIXES, *SUFFIXES)
CLOCKS = ("time", "times", "timestamp", "timestamps")  # arrays of an .npz that are its clock
RATES = ("fps", "rate", "sampling_rate", "sampling_frequency")
NAMES = ("channels", "columns", "names")
LABELS = ("label", "labels")
BESIDE = (*CLOCKS, *RATES, *NAMES, *LABELS)  # of the values themselves


@dataclass(frozen=True)
class ArchivedArray:
    """One recording of an .npz archive that holds several, an array (N, C) each."""

    archive: Path
    name: str

    def __str__(self) -> str:
        return f"{self.archive}: array {self.name!r}"


def read_signal(
    path: str | Path | ArchivedArray,
    *,
    fps: float | None = None,
    label_column: str | None = None,
    columns: Sequence[str | int] | None = None,
) -> Signal:
    """The signal of one file: .csv .tsv .parquet .edf .npy .npz .pt .h5.

    A time column is found by its name or by its steps; its unit is recognised, and rows at irregular times are
    resampled onto a regular clock. A column with a label per row becomes segments. What was found out is in `notes`.

    Args:
        path: the file, or an array of an archive (see `find_recordings`).
        fps: rows per second: of a file without a clock, and where the unit of a time column could be this or that.
            One that the file contradicts is an error.
        label_column: the name of the column with a label per row; None: the one that looks like it; "": none.
        columns: the channels to read, in this order, by name or number from 0; None: all columns of numbers.

    Raises:
        InputError: in one line that names the file, what cannot be read or could mean two things.
    """
    if fps is not None and not (np.isfinite(fps) and fps > 0):
        raise InputError(f"fps must be a positive number, got {fps}")
    if isinstance(path, ArchivedArray):
        return _chosen(_archived(path, fps), columns, label_column, path)
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file" if not path.is_dir() else f"{path}: a folder, not a file")
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _read_table(path, suffix, fps, label_column, columns)
    if suffix == ".edf":
        return _chosen(read_edf_signal(path, fps), columns, label_column, path)
    if path.suffix == ".npz":
        return _read_npz(path, fps, label_column, columns)
    if path.suffix in (".h5", ".hdf5"):
        return _chosen(_read_hdf5(path, fps), columns, label_column, path)
    if path.suffix in SUFFIXES:
        return _chosen(Signal(read_features(path), fps=fps), columns, label_column, path)
    raise InputError(f"{path}: not a signal; known are {' '.join(SIGNAL_SUFFIXES)}")


def find_recordings(path: str | Path, besides: Collection[Path] = ()) -> dict[str, Path | ArchivedArray]:
    """The recordings of a folder, or of one file, by name: signals and videos.

    Args:
        path: a folder: its signal files and videos by their names without suffix, those of its folders where it has
            none itself; an .npz archive: its arrays, unless these are one recording with its clock; another file: one.
        besides: files that are something else, such as the annotations.
    """
    path = Path(path)
    if path.is_file():
        names = _archive_names(path) if path.suffix == ".npz" else []
        return {name: ArchivedArray(path, name) for name in names} or {path.stem: path}
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    others = {Path(other).resolve() for other in besides}
    found: dict[str, Path | ArchivedArray] = {}
    inside = [file for file in sorted(path.iterdir()) if _is_recording(file, path)]
    inside = inside or [file for file in sorted(path.rglob("*")) if _is_recording(file, path)]
    for file in inside:
        if file.resolve() in others:
            continue
        if file.stem in found:
            raise InputError(f"{file} and {found[file.stem]}: two files for the recording {file.stem!r}")
        found[file.stem] = file
    if not found:
        raise InputError(f"{path}: no signal ({' '.join(SIGNAL_SUFFIXES)}) and no video in this folder")
    return found


def _is_recording(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    known = file.suffix.lower() in SIGNAL_SUFFIXES or file.suffix.lower() in VIDEO_SUFFIXES
    return known and not hidden and file.is_file()


def _read_table(
    path: Path, suffix: str, fps: float | None, label_column: str | None, columns: Sequence[str | int] | None
) -> Signal:
    notes: list[str] = []
    if suffix == ".parquet":
        table = read_parquet(path, notes)
    else:
        lines, comment = read_lines(path, notes)
        if is_deeplabcut_csv(lines):
            return _chosen(deeplabcut_table(lines, path, fps), columns, label_column, path)
        table = text_table(lines, comment, path)
    signal = table_signal(table, path, notes, fps=fps, label_column=label_column, columns=columns)
    return _with_keypoints(signal)


def _with_keypoints(signal: Signal) -> Signal:
    """Names such as `nose_x` make a pose, unless the values are those of accelerometers."""
    pattern = keypoint_pattern(signal.channels)
    if not pattern or (pattern == "xyz" and "acceleration" in channel_kinds(replace(signal, channels=()))):
        return signal
    count = len(signal.channels) // len(pattern)
    note = f"Channels are {count} keypoints ({pattern}), as their names say."
    return replace(signal, keypoints=pattern, notes=(*signal.notes, note))


def _chosen(
    signal: Signal, columns: Sequence[str | int] | None, label_column: str | None, path: Path | ArchivedArray
) -> Signal:
    """With the channels asked for; a column of labels cannot be asked for where rows have none."""
    if label_column:
        raise InputError(f"{path}: has no columns of labels, so that {label_column!r} cannot be one")
    if label_column == "":
        signal = replace(signal, labels=None)
    try:
        return signal if columns is None else signal.select(columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _archive_names(path: Path) -> list[str]:
    """The arrays of an archive that are a recording each; none where the archive is one recording."""
    names = _opened(path).files
    if len(names) == 1 and names[0].startswith("arr_"):
        return []
    return [] if any(name in (*KEYS, *BESIDE) for name in names) else list(names)


def _opened(path: Path) -> Any:
    try:
        archive = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged archive fails in a dozen ways
        raise InputError(f"{path}: not an .npz archive of arrays: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"{path}: not an .npz archive of arrays")
    return archive


def _array(path: Path, name: str) -> Any:
    with _opened(path) as archive:
        if name not in archive.files:
            raise InputError(f"{path}: no array {name!r}")
        try:
            array = archive[name]
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(f"{path}: array {name!r} cannot be read: {reason}") from error
    if not isinstance(array, np.ndarray):  # another member of the zip file
        raise InputError(f"{path}: {name!r} is no array")
    return array


def _archived(member: ArchivedArray, fps: float | None) -> Signal:
    array = _array(member.archive, member.name)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        raise InputError(f"{member} must be numbers of shape (T, D), got {array.dtype} {array.shape}")
    with np.errstate(over="ignore"):
        return Signal(np.ascontiguousarray(array, np.float32), fps=fps)


def _read_npz(path: Path, fps: float | None, label_column: str | None, columns: Sequence[str | int] | None) -> Signal:
    """One array (N, C), and beside it what says when its rows were, what its channels are called, and the labels."""
    with _opened(path) as archive:
        names = archive.files
    beside = [name for name in names if name in BESIDE]
    values = [name for name in names if name not in BESIDE]
    if not beside or not values:
        return _chosen(Signal(read_features(path), fps=fps), columns, label_column, path)
    key = next((name for name in KEYS if name in values), values[0])
    if len(values) > 1 and key not in KEYS:
        raise InputError(f"{path}: one array, or one called 'features', is expected beside {', '.join(beside)}")
    signal = _archived(ArchivedArray(path, key), None)
    extra = {name: _array(path, name) for name in beside}
    rate = next((_rate(extra[name], name, path) for name in RATES if name in extra and extra[name].size == 1), None)
    if rate is not None and fps is not None and abs(rate / fps - 1) > 1e-3:
        raise InputError(f"{path}: its fps is {rate:g}, not the {fps:g} asked for")
    for name in (name for name in beside if name in (*CLOCKS, *LABELS)):
        if extra[name].shape != (len(signal.values),):
            if key in KEYS:  # such archives hold all sorts of things beside their features
                del extra[name]
                continue
            raise InputError(f"{path}: {name} of shape {extra[name].shape} for {len(signal.values)} rows")
    texts = next((extra[name] for name in NAMES if name in extra), None)
    if texts is not None and texts.shape != (signal.values.shape[1],) and key in KEYS:
        texts = None
    if texts is not None and texts.shape != (signal.values.shape[1],):
        raise InputError(f"{path}: {texts.shape} names of channels for {signal.values.shape[1]} channels")
    clock, labels = (
        next((_column(name, extra[name]) for name in names if name in extra), None) for names in (CLOCKS, LABELS)
    )
    if label_column and (labels is None or label_column != labels.name):
        raise InputError(f"{path}: no array {label_column!r} of labels")
    channels = tuple(Column(name, signal.values[:, place]) for place, name in enumerate(_names(texts, signal)))
    roles = Roles(clock, None, labels if label_column != "" else None, channels)
    read = signal_of_columns(roles, path, [], rate or fps)
    read = replace(read, channels=()) if texts is None else _with_keypoints(read)
    return _chosen(read, columns, None, path)


def _rate(array: Any, name: str, path: Path) -> float:
    """A positive number; text of one counts too."""
    try:
        rate = float(array.item())
    except (TypeError, ValueError):
        rate = 0.0
    if not 0 < rate < np.inf:
        raise InputError(f"{path}: {name} must be a positive number, got {str(array)[:50]!r}")
    return rate


def _names(texts: Any, signal: Signal) -> list[str]:
    return [f"channel {n}" for n in range(signal.values.shape[1])] if texts is None else [str(text) for text in texts]


def _column(name: str, array: Any) -> Column:
    if array.dtype.kind == "M":
        return Column(name, array.astype("datetime64[ns]").astype(np.int64) * 1e-9, is_time=True)
    if array.dtype.kind in "fiu":
        return Column(name, array.astype(np.float64))
    return Column(name, np.array([str(text).strip() for text in array], object))


def _read_hdf5(path: Path, fps: float | None) -> Signal:
    """Poses of DeepLabCut or SLEAP, else one array (T, D)."""
    opened = False
    try:
        with opened_hdf5(path) as file:
            opened = True
            pose = read_pose_hdf5(file, path, fps)
    except InputError:
        raise
    except Exception as error:  # a compression that h5py does not know, a layout of another version
        if not opened:
            return Signal(read_features(path), fps=fps)  # which says what is wrong with it
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path}: poses in it cannot be read, write them as .csv instead: {reason}") from error
    return pose if pose is not None else Signal(read_features(path), fps=fps)
