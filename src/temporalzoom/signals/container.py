"""Signal: the rows of a sensor, pose or feature file, their names, their clock, and what was noticed on reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Signal:
    """What one file holds.

    values: (N, C), NaN where unknown; channels: their C names, () if unknown; fps: rows per second, None for a file
    without a clock; start: seconds of the first row on the file's own clock; labels: of a column with a label per row
    (or the annotations in the file), in seconds from the first row, in rows where there is no clock; None without any;
    keypoints: what the values of a keypoint are, such as `xyc`, "" for what is no pose (see `data.keypoints`); notes:
    what was recognised, resampled or left out, one sentence each.
    """

    values: Floats
    channels: tuple[str, ...] = ()
    fps: float | None = None
    start: float = 0.0
    labels: Segments | None = None
    keypoints: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.values.ndim != 2:
            raise ValueError(f"values must have the shape (N, C), got {self.values.shape}")
        if self.channels and len(self.channels) != self.values.shape[1]:
            raise ValueError(f"{len(self.channels)} names for {self.values.shape[1]} channels")
        if self.fps is not None and not (np.isfinite(self.fps) and self.fps > 0):
            raise ValueError(f"fps must be a positive number, got {self.fps!r}")

    @property
    def duration(self) -> float | None:
        """Seconds that the rows cover, None without a clock."""
        return None if self.fps is None else len(self.values) / self.fps

    def select(self, columns: Sequence[str | int]) -> Signal:
        """These channels alone, in this order, by name (as written, or but for upper and lower case) or by number."""
        places = [self._place(column) for column in columns]
        if not places:
            raise InputError("columns: none is named")
        if len(set(places)) < len(places):
            raise InputError(f"columns: one is named twice in {', '.join(map(str, columns))}")
        if places == list(range(self.values.shape[1])):
            return self
        names = tuple(self.channels[place] for place in places) if self.channels else ()
        values = np.ascontiguousarray(self.values[:, places])
        return replace(self, values=values, channels=names, keypoints="")  # a part may be no whole keypoints

    def _place(self, column: str | int) -> int:
        count = self.values.shape[1]
        if isinstance(column, int):
            if not 0 <= column < count:
                raise InputError(f"no channel number {column}; it has {count}, counted from 0")
            return column
        if not self.channels:
            raise InputError(f"no channel {column!r}: its {count} channels have no names, count them from 0")
        if column in self.channels:
            return self.channels.index(column)
        same = [place for place, name in enumerate(self.channels) if name.casefold() == column.casefold()]
        if len(same) != 1:
            raise InputError(f"no channel {column!r}; it has {listed(self.channels)}")
        return same[0]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, the first few of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "none"
