"""What the readers of foreign files return, and what they check alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from temporalzoom.errors import InputError


class Instance(NamedTuple):
    """One action: seconds and a label."""

    start: float
    end: float
    label: str


@dataclass
class Imported:
    """One recording as a file describes it. where: the place in the file, which opens messages about it."""

    name: str
    where: str
    instances: list[Instance]
    subset: str | None = None
    duration: float | None = None


def checked_instance(start: float, end: float, label: str, where: str) -> Instance:
    """The label without spaces at its ends: nobody sees them, and they would make a second class."""
    label = label.strip()
    if not label:
        raise InputError(f"{where}: the label is empty")
    if end <= start:
        raise InputError(f"{where}: end {end:g} is not after start {start:g} ({label!r})")
    return Instance(start, end, label)


def positive(value: float, what: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{what} must be a positive number, got {value!r}")
    return value


def read_bytes(path: Path) -> bytes:
    """The content of a file that has some."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not content.strip():
        raise InputError(f"{path}: the file is empty")
    return content
