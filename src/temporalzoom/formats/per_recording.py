"""Formats that hold one recording: one file, or a folder of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments


def write_each(
    path: str | Path, results: Mapping[str, Segments], text: Callable[[Path, str, Segments], str]
) -> list[Path]:
    """One recording makes one file, several make a folder named as `path` without suffix, one file each.

    text: the content, from the file's path, the recording's name and its segments. Returns the files written.
    """
    path = Path(path)
    if len(results) == 1:
        targets = {path: next(iter(results))}
    else:
        # The name of a recording may contain separators; its file stays inside the folder all the same.
        folder = path.with_suffix("")
        targets = {folder / f"{_file_name(recording)}{path.suffix.lower()}": recording for recording in results}
        if len(targets) < len(results):
            raise InputError(f"{folder}: two videos would be written to the same file; names must differ")
    for target, recording in targets.items():
        with replacing(target) as file:
            file.write(text(target, recording, results[recording]))
    return list(targets)


def _file_name(recording: str) -> str:
    return recording.replace("/", "_").replace("\\", "_").replace("\0", "_")
