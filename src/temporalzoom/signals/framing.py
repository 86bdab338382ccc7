"""Raw signals, one row per sample or frame, cut into the windows that a network takes for features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Framing:
    """Windows of `window` rows, one every `stride` rows, each flattened to one feature vector (row by row)."""

    window: int
    stride: int

    def __post_init__(self) -> None:
        if self.window < 1 or self.stride < 1:
            raise ValueError(f"window and stride must be at least one row, got {self.window} and {self.stride}")

    def count(self, rows: int) -> int:
        """How many windows fit into a signal of so many rows; a shorter signal is padded to one."""
        return 0 if rows == 0 else max(rows - self.window, 0) // self.stride + 1

    def rows(self, count: int) -> int:
        """How many rows `count` windows cover."""
        return (count - 1) * self.stride + self.window if count else 0

    def cut(self, signal: Floats, first: int = 0, count: int | None = None) -> Floats:
        """Windows from `first` on, `count` of them or as many as there are. signal: (N, C) -> (count, window * C).

        A signal shorter than one window repeats its last row.
        """
        last = self.count(len(signal)) if count is None else min(first + count, self.count(len(signal)))
        if last <= first:
            return np.empty((0, self.window * signal.shape[1]), np.float32)
        rows = signal[first * self.stride : first * self.stride + self.rows(last - first)]
        if len(rows) < self.window:
            rows = np.pad(rows, ((0, self.window - len(rows)), (0, 0)), mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(rows, self.window, axis=0)[:: self.stride]
        return windows.transpose(0, 2, 1).copy().reshape(len(windows), -1)  # the view is read-only
