"""Video files decoded by FFmpeg (through PyAV): small RGB frames with their times, and frames on a constant clock."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError

Frames = NDArray[np.uint8]
FrameSize = int | tuple[int, int]  # short side, or exact (height, width), of the picture as it is shown
# FFmpeg takes pictures and even plain text (as teletype art) for videos.
NOT_VIDEOS = ("tty", "image2", "_pipe", "ico", "apng")
LEAP_SECONDS = 60.0  # how far beyond ten times its promised duration a time stamp may lie; more is damage
NO_FRAME = "no frame could be decoded: empty, damaged or cut off"
SLACK_SECONDS, SLACK_SHARE = 0.5, 0.02  # how much less than its header promises a whole file may hold


@dataclass(frozen=True)
class VideoInfo:
    """What the header says. width and height are those of the picture as shown, after `rotation` (degrees, a multiple
    of 90, counter-clockwise); fps is the average rate; frames is None where the container does not count them."""

    path: Path
    width: int
    height: int
    fps: float
    duration: float
    frames: int | None
    rotation: int


class TimedFrame(NamedTuple):
    """image: RGB (H, W, 3). seconds: since the first frame; lasts: until the next one, as the file says, or 0; tick:
    the unit in which the file counts time."""

    seconds: float
    lasts: float
    tick: float
    image: Frames


@dataclass(frozen=True)
class ClockFrames:
    """Frames on a constant clock: `images` (n, H, W, 3), the first of which is number `first`; end: seconds at which
    the video ends, known with the last batch only."""

    first: int
    images: Frames
    end: float | None


def probe(path: str | Path) -> VideoInfo:
    """Size, rate, duration and rotation of a video. What is no video raises InputError."""
    path = Path(path)
    with opened_video(path) as (container, stream):
        try:
            frame = next(decoded_frames(container, stream, path), None)
        except DecodingError as error:
            raise InputError(f"{path}: damaged or cut off: {error}") from error
        if frame is None:
            raise InputError(f"{path}: {NO_FRAME}")
        rotation, width, height = 90 * _quarter_turns(frame), frame.width, frame.height
        frames = stream.frames or None
        fps, duration = _rate(stream), _promised_seconds(container, stream)
    if fps is None or duration is None:
        fps, duration = _scanned(path, fps)
    if rotation % 180:
        width, height = height, width
    return VideoInfo(path, width, height, fps, duration, frames, rotation)


def read_frames(path: str | Path, size: FrameSize | None = None) -> Iterator[TimedFrame]:
    """Every frame, in the size asked for, turned upright.

    Times come from the time stamps; a frame without one
    follows its predecessor at the average rate. A file that holds clearly less than its header promises raises
    InputError at its end, as does whatever else cannot be decoded.
    """
    path = Path(path)
    with opened_video(path) as (container, stream):
        resize = Resizer(size)
        clock = _TimeStamps(1 / (_rate(stream) or 25.0))
        promised = _promised_seconds(container, stream)
        end = 0.0
        try:
            for frame in decoded_frames(container, stream, path):
                seconds = clock.seconds(frame)
                if promised is not None and seconds > LEAP_SECONDS + 10 * promised:
                    raise InputError(
                        f"{path}: damaged: its header promises {promised:.2f} s, but after {end:.2f} s "
                        f"its time stamps leap to {seconds:.2f} s"
                    )
                tick = float(frame.time_base or 0)
                lasts = float(frame.duration or 0) * tick
                yield TimedFrame(seconds, lasts, tick, resize(frame))
                end = seconds + (lasts or clock.step)
        except DecodingError as error:
            raise InputError(f"{path}: damaged or cut off: decoded up to {end:.2f} s, then: {error}") from error
        if clock.previous is None:
            raise InputError(f"{path}: {NO_FRAME}")
        slack = max(SLACK_SECONDS, 2 * clock.step)
        if promised is not None and end + clock.lead(stream) < promised - max(slack, SLACK_SHARE * promised):
            raise InputError(
                f"{path}: cut off: its header promises {promised:.2f} s, only {end:.2f} s could be decoded"
            )


def clock_frames(path: str | Path, fps: float, size: FrameSize | None = None, batch: int = 32) -> Iterator[ClockFrames]:
    """The video resampled onto a clock of `fps` ticks per second: frame `k` is the one that is shown at `k / fps`.

    Batches of at most `batch` frames; no more than one is held at a time.
    """
    buffer: Frames | None = None
    filled = first = 0
    shown: Frames | None = None  # the latest decoded frame
    end = step = previous = tolerance = 0.0

    for seconds, lasts, tick, image in read_frames(path, size):
        if buffer is None or shown is None:
            buffer = np.empty((batch, *image.shape), np.uint8)
            # Time stamps are rounded to ticks (1 ms in Matroska): a frame that is late by one tick is on time.
            tolerance = min(0.25 / fps, tick) + 1e-6
        else:
            step = seconds - previous
            # The latest frame is shown at all ticks before this one appears.
            while (first + filled) / fps + tolerance < seconds:
                buffer[filled] = shown
                filled += 1
                if filled == batch:
                    yield ClockFrames(first, buffer, None)
                    buffer, first, filled = np.empty_like(buffer), first + filled, 0
        shown, previous = image, seconds
        end = seconds + (lasts or step or 1 / fps)
    assert buffer is not None and shown is not None  # read_frames raises on a video without frames
    ticks = max(math.ceil((end - tolerance) * fps), 1)
    while first + filled < ticks:
        buffer[filled] = shown
        filled += 1
        if filled == batch and first + filled < ticks:
            yield ClockFrames(first, buffer, None)
            buffer, first, filled = np.empty_like(buffer), first + filled, 0
    yield ClockFrames(first, buffer[:filled], end)


class DecodingError(Exception):
    """FFmpeg gave up in the middle."""


class _TimeStamps:
    """Seconds since the first frame, from time stamps that may be missing or start anew."""

    def __init__(self, step: float) -> None:
        self.step = step  # seconds between frames at the average rate
        self.previous: float | None = None
        self.origin = self.stamp = self.first_stamp = -math.inf

    def seconds(self, frame: Any) -> float:
        following = 0.0 if self.previous is None else self.previous + self.step
        if frame.pts is None or frame.time_base is None:
            seconds = following
        else:
            stamp = float(frame.pts * frame.time_base)
            if self.first_stamp == -math.inf:
                self.first_stamp = stamp
            if stamp <= self.stamp or self.origin == -math.inf:  # the first one, or a recording that was spliced
                self.origin = stamp - following
            self.stamp = stamp
            seconds = max(stamp - self.origin, self.previous or 0.0)
        self.previous = seconds
        return seconds

    def lead(self, stream: Any) -> float:
        """Seconds between the start that the header names and the first frame."""
        if stream.start_time is None or stream.time_base is None or self.first_stamp == -math.inf:
            return 0.0
        return max(self.first_stamp - float(stream.start_time * stream.time_base), 0.0)


class Resizer:
    """Frames -> RGB arrays of one size, upright. One reformatter for all: it keeps FFmpeg's scaling tables."""

    def __init__(self, size: FrameSize | None) -> None:
        from av.video.reformatter import VideoReformatter

        self.size = size
        self.reformatter: Any = VideoReformatter()
        self.stored: tuple[int, int] | None = None  # width, height before turning; fixed by the first frame
        self.turns = 0

    def __call__(self, frame: Any) -> Frames:
        if self.stored is None:
            self.turns = _quarter_turns(frame)
            sideways = self.turns % 2 == 1
            shown = (frame.width, frame.height) if sideways else (frame.height, frame.width)
            height, width = target_size(shown, self.size)
            self.stored = (height, width) if sideways else (width, height)
        # One thread: for small pictures starting more costs more than they bring.
        resized = self.reformatter.reformat(frame, *self.stored, format="rgb24", interpolation="BILINEAR", threads=1)
        image: Frames = resized.to_ndarray()
        return np.rot90(image, self.turns) if self.turns else image


def target_size(shown: tuple[int, int], size: FrameSize | None) -> tuple[int, int]:
    """(height, width) of a picture of `shown` (height, width) brought to a short side or to an exact size."""
    if size is None:
        return shown
    if isinstance(size, tuple):
        return size
    scale = size / min(shown)
    height, width = (max(round(side * scale), 1) for side in shown)
    return height, width


def pyav(path: Path) -> ModuleType:
    """The package `av`; without it an InputError that says how to install it."""
    try:
        import av
        import av.error
    except ImportError as error:
        raise InputError(f'{path}: reading videos needs PyAV: pip install "temporalzoom[video]"') from error
    return av


@contextmanager
def opened_video(path: Path) -> Iterator[tuple[Any, Any]]:
    """The container and its first video stream (a cover picture is none)."""
    av = pyav(path)
    if not path.is_file():
        raise InputError(f"{path}: {'is a folder, not a video' if path.is_dir() else 'no such file'}")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: is empty (0 bytes)")
    try:
        container = av.open(str(path), metadata_errors="replace")
    except (av.error.FFmpegError, OSError) as error:
        raise InputError(f"{path}: not a video that FFmpeg can read, or cut off: {_reason(error)}") from error
    with container:
        if any(name.endswith(NOT_VIDEOS) for name in container.format.name.split(",")):
            raise InputError(f"{path}: not a video, but a file of format {container.format.name}")
        streams = [s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic]
        if not streams:
            kinds = ", ".join(sorted({s.type for s in container.streams}))
            raise InputError(f"{path}: holds no video, {f'only {kinds}' if kinds else 'damaged or cut off'}")
        if streams[0].codec_context is None:
            raise InputError(f"{path}: FFmpeg knows no decoder for its video")
        streams[0].thread_type = "AUTO"
        yield container, streams[0]


def decoded_frames(container: Any, stream: Any, path: Path) -> Iterator[Any]:
    """All frames. What fails before the first one (a recording that starts between key frames) is passed over."""
    av = pyav(path)
    any_frame = False
    try:
        for packet in container.demux(stream):
            try:
                for frame in packet.decode():
                    any_frame = True
                    yield frame
            except av.error.EOFError:
                return
            except av.error.FFmpegError:
                if any_frame:
                    raise
    except (av.error.FFmpegError, OSError) as error:
        raise DecodingError(_reason(error)) from error


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:200]


def _quarter_turns(frame: Any) -> int:
    """How often to turn the stored picture counter-clockwise by 90 degrees."""
    return round((frame.rotation or 0) / 90) % 4


def _rate(stream: Any) -> float | None:
    """Frames per second: the average, or the nominal rate where both agree up to how durations are rounded."""
    average, nominal = (float(rate) if rate else 0.0 for rate in (stream.average_rate, stream.base_rate))
    if average and nominal and abs(average / nominal - 1) < 0.005:
        return nominal
    return average or nominal or None


def _promised_seconds(container: Any, stream: Any) -> float | None:
    """Duration of the video stream by its header; None where only that of picture and sound is known."""
    if container.format.name == "avi" and stream.frames and stream.average_rate:
        return float(stream.frames / stream.average_rate)  # FFmpeg takes its duration from the length of the file
    if stream.duration:
        return float(stream.duration * stream.time_base)
    start = 0.0
    if "matroska" in container.format.name and stream.start_time and stream.time_base:
        start = float(stream.start_time * stream.time_base)  # Matroska notes when it ends, not how long it lasts
    try:
        hours, minutes, seconds = (float(part) for part in stream.metadata.get("DURATION", "").split(":"))
        return 3600 * hours + 60 * minutes + seconds - start
    except ValueError:
        pass
    alone = len(container.streams) == 1 and container.duration
    return container.duration / 1e6 - start if alone else None


def _scanned(path: Path, fps: float | None) -> tuple[float, float]:
    """Rate and duration of a stream whose header does not say: from the time stamps of its packets, not decoded."""
    count, low, high = 0, math.inf, -math.inf
    with opened_video(path) as (container, stream):
        for packet in container.demux(stream):
            count += packet.size > 0
            if packet.size and packet.pts is not None:
                stamp = float(packet.pts * packet.time_base)
                low, high = min(low, stamp), max(high, stamp)
    span = max(high - low, 0.0)
    if fps is None:
        fps = (count - 1) / span if span else 25.0
    return fps, span + 1 / fps if span else count / fps
