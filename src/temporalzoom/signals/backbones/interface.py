"""What a backbone is: something that turns windows of video frames into feature vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.device import choose_device
from temporalzoom.signals.decoding import Frames, FrameSize

Floats = NDArray[np.float32]


class Backbone(ABC):
    """One vector of `width` numbers per window of frames.

    frame_size: the size it wants frames in; window, stride: in frames, where the user asks for nothing else; options:
    what it was built with, as written into the feature files' description. module: its network as a torch module that
    can be trained (see `Trunk`); None where there is nothing to train.
    """

    name: str
    width: int
    frame_size: FrameSize
    window: int
    stride: int
    options: dict[str, Any]
    module: Any = None  # no torch here: `motion` does without

    def to(self, device: str) -> Backbone:
        """Its network moves to the device of that name, see `choose_device`. Features come back as arrays anyway."""
        if self.module is not None:
            self.module.to(choose_device(device))
        return self

    @abstractmethod
    def __call__(self, clips: Frames) -> Floats:
        """uint8 (N, window, H, W, 3) -> (N, width)."""

    @abstractmethod
    def stream(self, batches: Iterable[Frames], window: int, stride: int) -> Iterator[Floats]:
        """The features (n, width) of a whole video, given as batches of frames (n, H, W, 3), without holding it."""


class ClipBackbone(Backbone):
    """Sees whole windows: each frame as often as windows overlap."""

    clip_batch = 4

    def stream(self, batches: Iterable[Frames], window: int, stride: int) -> Iterator[Floats]:
        for clips in sliding_windows(batches, window, stride):
            for first in range(0, len(clips), self.clip_batch):
                yield self(clips[first : first + self.clip_batch])


class FrameBackbone(Backbone):
    """Sees every frame once, then pools the frames of a window."""

    @abstractmethod
    def frame_features(self, frames: Frames, before: Frames | None) -> Floats:
        """(n, H, W, 3) -> (n, d). before: the frame (H, W, 3) that precedes them, None at the start of a video."""

    @abstractmethod
    def pool(self, windows: Floats) -> Floats:
        """Features of the frames of windows (N, window, d) -> (N, width).

        What the first frame of a window says about its predecessor must not count: it lies outside of the window.
        """

    def __call__(self, clips: Frames) -> Floats:
        return self.pool(np.stack([self.frame_features(clip, None) for clip in clips]))

    def stream(self, batches: Iterable[Frames], window: int, stride: int) -> Iterator[Floats]:
        def each() -> Iterator[Floats]:
            before = None
            for frames in _at_least(batches, window):
                yield self.frame_features(frames, before)
                before = frames[-1]

        for windows in sliding_windows(each(), window, stride):
            yield self.pool(windows)


def sliding_windows(batches: Iterable[NDArray[Any]], window: int, stride: int) -> Iterator[NDArray[Any]]:
    """Rows that come in batches (n, ...), cut into windows (m, window, ...) as `Framing` cuts a signal held as a whole:
    one every `stride` rows, none that is not full, and what is shorter than a window repeats its last row."""
    kept: NDArray[Any] | None = None  # rows from the start of the next window on
    skip = 0  # rows between windows, where the stride is longer than they are
    any_window = False
    for batch in batches:
        dropped = min(skip, len(batch))
        skip -= dropped
        rows = batch[dropped:] if kept is None else np.concatenate([kept, batch[dropped:]])
        count = max((len(rows) - window) // stride + 1, 0)
        if count:
            any_window = True
            yield _windows(rows, window)[::stride][:count]
        used = count * stride
        skip += max(used - len(rows), 0)
        kept = rows[used:].copy()  # a copy, because its tail would keep the whole batch alive
    if not any_window and kept is not None and len(kept):
        padding = [(0, window - len(kept))] + [(0, 0)] * (kept.ndim - 1)
        yield _windows(np.pad(kept, padding, mode="edge"), window)


def _at_least(batches: Iterable[Frames], window: int) -> Iterator[Frames]:
    """The frames, and where they do not fill a window the last one again and again: a picture that stands still."""
    count, last = 0, None
    for frames in batches:
        yield frames
        count, last = count + len(frames), frames[-1:]
    if last is not None and count < window:
        yield np.repeat(last, window - count, axis=0)


def _windows(rows: NDArray[Any], window: int) -> NDArray[Any]:
    view = np.lib.stride_tricks.sliding_window_view(rows, window, axis=0)
    return np.moveaxis(view, -1, 1)


def centre_crop(frames: Any, size: int) -> Any:
    """(..., H, W, 3), an array or a tensor -> (..., size, size, 3), the middle; H and W must not be smaller."""
    height, width = frames.shape[-3:-1]
    top, left = (height - size) // 2, (width - size) // 2
    return frames[..., top : top + size, left : left + size, :]
