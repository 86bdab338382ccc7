"""Pose files: DeepLabCut (.csv, and .h5 as pandas writes it) and SLEAP (analysis .h5), keypoint by keypoint."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.signals.container import Signal
from temporalzoom.signals.row_labels import is_label_name
from temporalzoom.signals.tables import split_rows

DLC_ROWS = ("scorer", "individuals", "bodyparts", "coords")
LETTERS = {"x": "x", "y": "y", "z": "z"} | dict.fromkeys(
    ("likelihood", "confidence", "score", "conf", "visibility", "prob", "p", "c"), "c"
)
FEWEST_KEYPOINTS = 3  # of a table that does not say that it holds poses
SENSORS = re.compile(r"[agmqrvw]|.*(acc|gyr|mag|imu|rot|vel|quat|euler|ang|lin|grav|force|torque).*", re.IGNORECASE)


def is_deeplabcut_csv(lines: Sequence[str]) -> bool:
    """By the first cells of the first rows: scorer, (individuals,) bodyparts, coords."""
    first = [re.split(r"[,;\t]", line, maxsplit=1)[0].strip().strip('"') for line in lines[:4]]
    return first[:3] == ["scorer", "bodyparts", "coords"] or first == list(DLC_ROWS)


def deeplabcut_table(lines: Sequence[str], path: Path, fps: float | None) -> Signal:
    """The lines of a .csv file of DeepLabCut."""
    rows = list(split_rows(lines, max(",;\t", key=lines[0].count), path))
    if len(rows) < len(DLC_ROWS) or not all(rows[: len(DLC_ROWS)]):  # quotes may join lines
        raise InputError(f"{path}: a table of DeepLabCut without rows")
    depth = 4 if rows[1][0].strip() == "individuals" else 3
    names = [tuple(cells[1:]) for cells in rows[:depth]]
    body = rows[depth:]
    if not body:
        raise InputError(f"{path}: a table of DeepLabCut without rows")
    width = len(names[0]) + 1
    if any(len(cells) != width for cells in rows[:depth]):
        raise InputError(f"{path}: the rows of its header have {', '.join(str(len(c)) for c in rows[:depth])} cells")
    for number, cells in enumerate(body, 1):
        if len(cells) != width:
            raise InputError(f"{path}: row {number} has {len(cells)} cells, the header {width}")
    try:
        frames = np.array([cells[0] for cells in body], np.float64)
    except ValueError:
        raise InputError(f"{path}: rows are not numbered by frames: annotated pictures, not a tracked video") from None
    try:
        values = np.array([[cell or "nan" for cell in cells[1:]] for cells in body], np.float64)
    except ValueError as error:
        raise InputError(f"{path}: a coordinate is not a number ({str(error)[:100]})") from None
    return _deeplabcut(list(zip(*names, strict=True)), values, frames, fps, path, [])


def read_pose_hdf5(file: Any, path: Path, fps: float | None) -> Signal | None:
    """A pose file of DeepLabCut or SLEAP in an open HDF5 file; None if it holds something else."""
    if "tracks" in file and "node_names" in file:
        return _sleap(file, path, fps)
    for name in file:
        item = file.get(name)  # None for a link that leads nowhere
        kind = "" if item is None else _text(item.attrs.get("pandas_type", b""))
        if kind == "frame_table":
            columns, frames, values = _pandas_table(file[name], path)
        elif kind == "frame":
            columns, frames, values = _pandas_fixed(file[name], path)
        else:
            continue
        if columns and len(columns[0]) in (3, 4):
            return _deeplabcut(columns, values, frames, fps, path, [])
        raise InputError(f"{path}: a table of pandas that is none of DeepLabCut; write it as .csv or .parquet")
    return None


def keypoint_pattern(names: Sequence[str]) -> str:
    """What the values of a keypoint are, such as `xyc`, of channels all named like `nose_x`, `nose.y`, `lhz`.

    "" where not all are coordinates of at least FEWEST_KEYPOINTS keypoints with the same values, or where names speak
    of a sensor with axes.
    """
    points: dict[str, str] = {}
    for name in names:
        found = re.fullmatch(r"(.*?)[ _.:-]*(?:(?<=[ _.:-])([A-Za-z]+)|([xyzXYZ]))", name)
        if found is None or SENSORS.fullmatch(found[1]) or is_label_name(found[1]):
            return ""
        letter = LETTERS.get((found[2] or found[3]).lower())
        if letter is None or not found[1]:
            return ""
        if points and found[1] in points and list(points)[-1] != found[1]:
            return ""  # the values of a keypoint are not beside each other
        points[found[1]] = points.get(found[1], "") + letter
    patterns = set(points.values())
    pattern = patterns.pop() if len(patterns) == 1 else ""
    enough = len(points) >= (1 if "c" in pattern else FEWEST_KEYPOINTS)
    return pattern if enough and {"x", "y"} <= set(pattern) and len(set(pattern)) == len(pattern) else ""


def _deeplabcut(
    columns: Sequence[tuple[str, ...]],
    values: NDArray[np.float64],
    frames: NDArray[np.float64],
    fps: float | None,
    path: Path,
    notes: list[str],
) -> Signal:
    """columns: C times (scorer, [individual,] bodypart, coordinate); values: (N, C); frames: their numbers (N,)."""
    names = [".".join(column[1:]) for column in columns]
    steps = np.diff(frames)
    if (steps <= 0).any():
        raise InputError(f"{path}: row {int(np.argmax(steps <= 0)) + 2}: frame numbers do not rise")
    missing = int(frames[-1] - frames[0]) + 1 - len(frames) if len(frames) else 0
    if missing:
        if missing > 20 * len(frames) + 1000:
            raise InputError(f"{path}: {missing} frames are skipped, {len(frames)} are there")
        whole = np.full((len(frames) + missing, values.shape[1]), np.nan)
        whole[(frames - frames[0]).astype(np.intp)] = values
        values = whole
        notes.append(f"{missing} frames that are skipped are unknown rows.")
    pattern, count = _pattern(columns)
    people = len({column[1] for column in columns}) if len(columns[0]) == 4 else 1
    notes.insert(0, f"DeepLabCut: {count} keypoints{f' of {people} individuals' if people > 1 else ''} ({pattern}).")
    return _pose(values.astype(np.float32), names, fps, pattern, notes)


def _pattern(columns: Sequence[tuple[str, ...]]) -> tuple[str, int]:
    """What the values of each keypoint are, "" where that differs; how many keypoints there are."""
    points: dict[tuple[str, ...], str] = {}
    for *point, coordinate in columns:
        points[tuple(point)] = points.get(tuple(point), "") + LETTERS.get(coordinate.lower(), "?")
    patterns = set(points.values())
    pattern = patterns.pop() if len(patterns) == 1 else ""
    return (pattern if "?" not in pattern else ""), len(points)


def _pose(
    values: NDArray[np.float32], names: Sequence[str], fps: float | None, pattern: str, notes: list[str]
) -> Signal:
    if fps is None:
        notes.append("Poses are counted in frames: fps, that of the video, is for the user to say.")
    return Signal(values, tuple(names), fps, keypoints=pattern, notes=tuple(notes))


def _sleap(file: Any, path: Path, fps: float | None) -> Signal:
    """tracks (tracks, 2, nodes, frames), or (frames, nodes, 2, tracks) where it was not turned round on writing."""
    tracks = np.asarray(file["tracks"], np.float64)
    nodes = [_text(name) for name in file["node_names"][()]]
    scores = np.asarray(file["point_scores"], np.float64) if "point_scores" in file else None
    if tracks.ndim == 4 and tracks.shape[2:0:-1] == (2, len(nodes)):
        tracks = tracks.transpose()
        scores = None if scores is None else scores.transpose()
    if tracks.ndim != 4 or tracks.shape[1:3] != (2, len(nodes)):
        raise InputError(f"{path}: tracks of {tracks.shape} do not fit {len(nodes)} nodes of SLEAP")
    count, _, _, length = tracks.shape
    names = [_text(name) for name in file["track_names"][()]] if "track_names" in file else []
    names = names if len(names) == count else [f"track_{number}" for number in range(count)]
    values, pattern = tracks.transpose(3, 0, 2, 1), "xy"  # frames, tracks, nodes, 2
    if scores is not None and scores.shape == (count, len(nodes), length):
        values, pattern = np.concatenate([values, scores.transpose(2, 0, 1)[..., None]], axis=3), "xyc"
    coordinates = {"x": "x", "y": "y", "c": "score"}
    channels = [
        ".".join([*([name] if count > 1 else []), node, coordinates[letter]])
        for name in names
        for node in nodes
        for letter in pattern
    ]
    notes = [f"SLEAP: {len(nodes)} keypoints of {count} track{'s' if count != 1 else ''} ({pattern})."]
    return _pose(values.reshape(length, -1).astype(np.float32), channels, fps, pattern, notes)


class _PlainUnpickler(pickle.Unpickler):
    """Lists, tuples, text and numbers. Anything that would import or run code is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain text")


def _pandas_table(group: Any, path: Path) -> tuple[list[tuple[str, ...]], NDArray[np.float64], NDArray[np.float64]]:
    """Columns, index (N,) and values (N, C) of `to_hdf(format="table")`: names are in attributes, pickled as text."""
    stored = group["table"][()]
    columns: list[tuple[str, ...]] = []
    parts = []
    for field in stored.dtype.names:
        if field == "index":
            continue
        try:
            written = group["table"].attrs[f"{field}_kind"]
            names = _PlainUnpickler(io.BytesIO(bytes(written)), encoding="utf-8").load()
            columns += [tuple(str(part) for part in name) for name in names]
        except (pickle.UnpicklingError, KeyError, ValueError, TypeError, EOFError, AttributeError, IndexError) as error:
            raise InputError(
                f"{path}: names of its columns cannot be read ({str(error)[:100]}); write it as .csv instead"
            ) from None
        parts.append(np.asarray(stored[field], np.float64).reshape(len(stored), -1))
    return columns, _frame_numbers(stored["index"], path), np.concatenate(parts, axis=1)


def _pandas_fixed(group: Any, path: Path) -> tuple[list[tuple[str, ...]], NDArray[np.float64], NDArray[np.float64]]:
    """The same of `to_hdf(format="fixed")`: names are levels and codes."""
    columns: list[tuple[str, ...]] = []
    parts = []
    for block in range(int(group.attrs["nblocks"])):
        prefix = f"block{block}_items"
        levels = int(group.attrs.get(f"{prefix}_nlevels", 0))
        if _text(group.attrs[f"{prefix}_variety"]) != "multi":
            return [], np.zeros(0), np.zeros((0, 0))
        parts.append(np.asarray(group[f"block{block}_values"], np.float64))
        texts = [
            [_text(group[f"{prefix}_level{level}"][code]) for code in group[f"{prefix}_label{level}"][()]]
            for level in range(levels)
        ]
        columns += list(zip(*texts, strict=True))
    return columns, _frame_numbers(group["axis1"][()], path), np.concatenate(parts, axis=1)


def _frame_numbers(index: NDArray[Any], path: Path) -> NDArray[np.float64]:
    if index.dtype.kind not in "iuf":
        raise InputError(f"{path}: rows are not numbered by frames: annotated pictures, not a tracked video")
    return index.astype(np.float64)


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
