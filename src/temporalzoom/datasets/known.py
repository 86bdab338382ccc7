"""What the readers of known data sets share."""

from __future__ import annotations

from pathlib import Path

from temporalzoom.config import DataConfig
from temporalzoom.errors import InputError


def needed_root(data: DataConfig, *files: str) -> Path:
    """The folder of the data set, which must hold these files."""
    if data.root is None:
        raise InputError(f"data.root: the folder of {data.source} is needed; it holds {', '.join(files)}")
    for file in files:
        if not (data.root / file).is_file():
            raise InputError(f"data.root: {data.root} is no folder of {data.source}: it has no file {file}")
    return data.root
