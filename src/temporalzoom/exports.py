"""Results as files that people and other programs open: JSON, CSV, WebVTT subtitles."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.datasets.annotations import write_predictions
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments

COLUMNS = ("video", "start", "end", "label", "score")
SUFFIXES = (".json", ".csv", ".vtt")


def write_segments(path: str | Path, results: Mapping[str, Segments]) -> list[Path]:
    """Write `{video: segments}` in the format that the suffix of `path` names; returns the files written."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        write_predictions(path, results)
    elif suffix == ".csv":
        write_csv(path, results)
    elif suffix == ".vtt":
        return write_vtt(path, results)
    else:
        raise InputError(f"{path}: unknown format {path.suffix!r}; valid are {', '.join(SUFFIXES)}")
    return [path]


def write_csv(path: str | Path, results: Mapping[str, Segments]) -> None:
    """One row per segment, times in seconds. A video without segments leaves no row."""
    with replacing(path) as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for video, segments in results.items():
            writer.writerows((video, start, end, label, score) for start, end, label, score in segments)


def read_csv(path: str | Path) -> dict[str, Segments]:
    """The inverse of `write_csv`; further columns and any order of the columns are taken, `score` may be absent."""
    rows: dict[str, list[tuple[float, float, str, float]]] = {}
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            absent = [column for column in COLUMNS[:4] if column not in (reader.fieldnames or [])]
            if absent:
                raise InputError(f"{path}: no column {absent[0]!r}; expected are {','.join(COLUMNS)}")
            for row in reader:
                where = f"{path}: line {reader.line_num}"
                start, end = _number(row["start"], "start", where), _number(row["end"], "end", where)
                score = _number(row["score"], "score", where) if "score" in row else 1.0
                if not row["video"] or not row["label"]:
                    raise InputError(f"{where}: video and label must not be empty")
                rows.setdefault(row["video"], []).append((start, end, row["label"], score))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV file in UTF-8: {error}") from error
    return {video: Segments(*zip(*found, strict=True)) for video, found in rows.items()}


def write_vtt(path: str | Path, results: Mapping[str, Segments]) -> list[Path]:
    """Subtitles: one video makes one file, several make a folder named as `path` without suffix, one file each."""
    path = Path(path)
    if len(results) == 1:
        targets = {path: next(iter(results.values()))}
    else:
        # The name of a video may contain separators; its file stays inside the folder all the same.
        folder = path.with_suffix("")
        targets = {folder / f"{_file_name(video)}.vtt": segments for video, segments in results.items()}
        if len(targets) < len(results):
            raise InputError(f"{folder}: two videos would be written to the same file; names must differ")
    for target, segments in targets.items():
        with replacing(target) as file:
            file.write(vtt_text(segments))
    return list(targets)


def vtt_text(segments: Segments) -> str:
    """A WebVTT document: one cue per segment in order of the starts, its text `label (score)`."""
    blocks = ["WEBVTT\n"]
    for start, end, label, score in segments.sort("start"):
        first = max(0, round(start * 1000))
        last = max(first + 1, round(end * 1000))  # a cue must end after it starts
        text = " ".join(label.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        blocks.append(f"{_timestamp(first)} --> {_timestamp(last)}\n{text} ({score:.2f})\n")
    return "\n".join(blocks)


def _timestamp(milliseconds: int) -> str:
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milliseconds:03d}"


def _file_name(video: str) -> str:
    return video.replace("/", "_").replace("\\", "_").replace("\0", "_")


def _number(text: str | None, column: str, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {column} must be a number, got {text!r}")
    return value
