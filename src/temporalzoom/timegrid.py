"""Where positions of a feature sequence become seconds, and back: the only place of time arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class TimeGrid:
    """One feature every `stride` frames, each covering `window` frames, at `fps` frames per second.

    The convention of the field's main codebases: position `g` stands for the middle of its window,
    `seconds = (g * stride + 0.5 * window) / fps`.
    """

    stride: float
    window: float
    fps: float

    def __post_init__(self) -> None:
        for name in ("stride", "fps"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        if not (np.isfinite(self.window) and self.window >= 0):
            raise ValueError(f"window must be zero or a positive number, got {self.window!r}")

    @property
    def step_seconds(self) -> float:
        """Seconds between two neighbouring positions."""
        return self.stride / self.fps

    def to_seconds(self, positions: ArrayLike, duration: float | None = None) -> NDArray[np.float64]:
        """Grid positions (any shape) -> seconds, clipped to `[0, duration]` when the duration is known."""
        seconds = (np.asarray(positions, np.float64) * self.stride + 0.5 * self.window) / self.fps
        return seconds if duration is None else np.clip(seconds, 0.0, duration)

    def to_grid(self, seconds: ArrayLike) -> NDArray[np.float64]:
        """Seconds (any shape) -> real-valued grid positions."""
        return (np.asarray(seconds, np.float64) * self.fps - 0.5 * self.window) / self.stride

    def to_frames(self, seconds: ArrayLike) -> NDArray[np.float64]:
        """Seconds (any shape) -> real-valued frames."""
        return np.asarray(seconds, np.float64) * self.fps

    def duration(self, length: int) -> float:
        """Seconds covered by `length` positions, from the first frame to the end of the last window."""
        return (max(length - 1, 0) * self.stride + self.window) / self.fps if length else 0.0
