"""Pieces of a video: decoding from the key frame before them, not from the start of the file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.signals.decoding import (
    DecodingError,
    Frames,
    FrameSize,
    Resizer,
    clock_frames,
    decoded_frames,
    opened_video,
    probe,
)


@dataclass(frozen=True)
class Video:
    """A file on the clock of `clock_frames`. frames: ticks of that clock; duration: seconds; both by its header."""

    path: Path
    fps: float
    frames: int
    duration: float

    def read(self, first: int, count: int, size: FrameSize | None = None) -> Frames:
        """Frames (count, H, W, 3) from tick `first` on, as `clock_frames` gives them; after the end the last one again.

        Decoding begins at the key frame before them, or at the start of a file whose time stamps are of no use.
        """
        frames = _sought_frames(self, first, count, size)
        if frames is None:
            frames = []
            for batch in clock_frames(self.path, self.fps, size):
                frames += list(batch.images[max(first - batch.first, 0) : max(first + count - batch.first, 0)])
                last = batch.images[-1]
                if len(frames) == count:
                    break
            frames = frames or [last]
        return np.stack(frames + frames[-1:] * (count - len(frames)))


def open_video(path: str | Path, fps: float | None = None) -> Video:
    """fps: of the clock; None: the video's own average rate. What is no video raises InputError."""
    info = probe(path)
    rate = info.fps if fps is None else fps
    # A last frame that is cut short by rounding is no tick more.
    return Video(Path(path), rate, max(math.ceil(info.duration * rate - 0.25), 1), info.duration)


@lru_cache(maxsize=2**16)
def _first_stamp(path: Path) -> float | None:
    """When the first frame is shown by its own time stamp, which is second 0; None: it has none."""
    with opened_video(path) as (container, stream):
        try:
            return _stamp(next(decoded_frames(container, stream, path), None))
        except DecodingError as error:
            raise InputError(f"{path}: damaged or cut off: {error}") from error


def _stamp(frame: Any) -> float | None:
    if frame is None or frame.pts is None or frame.time_base is None:
        return None
    return float(frame.pts * frame.time_base)


def _sought_frames(video: Video, first: int, count: int, size: FrameSize | None) -> list[Frames] | None:
    """At most `count` frames from tick `first` on, fewer at the end of the file; None where seeking does not work."""
    origin = _first_stamp(video.path)
    if origin is None:
        return None
    # Indices of some formats lead to key frames in order of decoding, a little too late: then one farther back.
    for back in (0.0, 1.0, 8.0, math.inf):
        with opened_video(video.path) as (container, stream):
            seconds = first / video.fps - back
            if seconds > 0:
                try:
                    container.seek(int((origin + seconds) / stream.time_base), stream=stream)
                except (OSError, ValueError):  # FFmpeg's errors are OSErrors or ValueErrors
                    continue
            try:
                frames = _clocked(decoded_frames(container, stream, video.path), video, origin, first, count, size)
            except DecodingError as error:
                raise InputError(f"{video.path}: damaged or cut off: {error}") from error
        if frames is not None:
            return frames
    return None


def _clocked(
    decoded: Iterator[Any], video: Video, origin: float, first: int, count: int, size: FrameSize | None
) -> list[Frames] | None:
    """Decoded frames on the clock; None where they begin after tick `first`, or lack time stamps."""
    resize = Resizer(size)
    frames: list[Frames] = []
    shown: Any = None  # the latest decoded frame
    tolerance = previous = 0.0
    for frame in decoded:
        stamp = _stamp(frame)
        if stamp is None:
            return None
        if shown is None:
            if not frame.key_frame:  # what it was predicted from lies before the place that was sought
                continue
            tolerance = min(0.25 / video.fps, float(frame.time_base)) + 1e-6  # as in `clock_frames`
            if stamp - origin > first / video.fps + tolerance and stamp > origin:
                return None
        elif stamp <= previous:  # a recording that was spliced
            return None
        else:
            image = None
            while len(frames) < count and (first + len(frames)) / video.fps + tolerance < stamp - origin:
                image = resize(shown) if image is None else image
                frames.append(image)
            if len(frames) == count:
                return frames
        shown, previous = frame, stamp
    return None if shown is None else [*frames, *[resize(shown)] * (count - len(frames))]
