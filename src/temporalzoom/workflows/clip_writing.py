"""A stretch of a video as a file of its own: encoded again and exact to the frame, or copied between key frames."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import IO, Any

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.signals.decoding import NO_FRAME, DecodingError, Resizer, decoded_frames, opened_video, probe, pyav

TICKS = 60_000  # per second: the frame rates in use, 30000/1001 too, are whole numbers of them
AAC_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
WARM_UP = 0.1  # seconds of sound that are decoded before the first that counts: the decoder has to settle
STEPS_BACK = (0.0, 1.0, 8.0, math.inf)  # seconds; indices of some formats lead to key frames a little too late
Timed = tuple[float, str, Any]  # seconds since the video's first frame, `video` or `audio`, a decoded frame


@dataclass(frozen=True)
class Source:
    """A video to cut. origin: time stamp of its first frame, which is second 0; slack: by how many seconds a frame may
    be late: time stamps are rounded to ticks, 1 ms in Matroska; sound: samples per second and layout, None: no sound.
    """

    path: Path
    fps: float
    duration: float
    origin: float
    slack: float
    sound: tuple[int, str] | None


def open_source(path: Path) -> Source:
    """What is no video, or has no time stamps, raises InputError."""
    info = probe(path)
    with opened_video(path) as (container, stream):
        try:
            frame = next(decoded_frames(container, stream, path), None)
        except DecodingError as error:
            raise InputError(f"{path}: damaged or cut off: {error}") from error
        if frame is None or frame.pts is None:
            raise InputError(f"{path}: its frames have no time stamps; encode it again to cut it")
        tick = float(stream.time_base)
        slack = 1e-6 + (tick if tick < 0.25 / info.fps else 0.0)  # AVI counts frames: nothing is rounded
        sound = None
        if container.streams.audio and container.streams.audio[0].codec_context is not None:
            heard = container.streams.audio[0]
            rate = heard.rate if heard.rate in AAC_RATES else 48000
            sound = rate, "mono" if heard.channels == 1 else "stereo"
        return Source(path, info.fps, info.duration, float(frame.pts * stream.time_base), slack, sound)


def write_clip(
    video: Source, start: float, end: float, out: Path, *, audio: bool = True, progress: Callable[[int], Any] = int
) -> None:
    """The frames of `[start, end)`, seconds since the first frame, each at its distance from the first one of them.

    H.264 (MPEG-4 where FFmpeg was built without it) and, if the video has sound, AAC in mono or stereo. Pictures that
    a phone marked as turned are turned. Where no frame begins in that time, it is the one that is shown then. The file
    is whole, or not there. progress: called with 1 for each frame.
    """
    av = pyav(video.path)
    with replacing(out, "wb") as file, _speaking_of(av, out), av.open(file, "w", format="mp4") as clip:
        timed = frames_between(video, start, end)
        first = next(timed)
        picture = _video_stream(av, clip, first[2], video)
        sound: Iterator[Timed] = iter(())
        stream = None
        if audio and video.sound is not None:
            stream = clip.add_stream("aac", rate=video.sound[0], layout=video.sound[1])
            sound = sound_between(video, first[0], end)
        resize, previous = Resizer(None), -1
        for seconds, kind, frame in merge(_chained(first, timed), sound, key=lambda item: item[0]):
            if kind == "audio":
                assert stream is not None
                clip.mux(stream.encode(frame))
                continue
            if frame.rotation:
                frame = av.VideoFrame.from_ndarray(resize(frame), format="rgb24")
            # Two frames of one tick would be refused.
            previous = max(round((seconds - first[0]) * TICKS), previous + 1)
            frame.pts, frame.time_base, frame.pict_type = previous, Fraction(1, TICKS), 0
            clip.mux(picture.encode(frame))
            progress(1)
        for last in (picture, stream):
            if last is not None:
                clip.mux(last.encode(None))


def frames_between(video: Source, start: float, end: float) -> Iterator[Timed]:
    """Decoded frames whose time lies in `[start, end)`; if there is none, the one that is shown at `start`."""
    origin, slack = video.origin, video.slack
    for back in STEPS_BACK:
        with _from(video, start - back) as (container, stream):
            shown: Timed | None = None
            found = False
            try:
                for frame in decoded_frames(container, stream, video.path):
                    stamp = None if frame.pts is None else float(frame.pts * stream.time_base) - origin
                    if stamp is None:
                        raise InputError(f"{video.path}: a frame has no time stamp; encode the video again to cut it")
                    if shown is None and not (frame.key_frame or back == math.inf):
                        continue  # what it was predicted from lies before the place that was sought
                    if shown is None and stamp > start + slack and back < math.inf and stamp > slack:
                        break  # too late: from farther back
                    current = (stamp, "video", frame)
                    if stamp + slack >= start:
                        if stamp + slack >= end:
                            yield from () if found else (shown or current,)
                            return
                        found = True
                        yield current
                    shown = current
                else:
                    if not found and shown is not None:
                        yield shown
                    if shown is not None:
                        return
            except DecodingError as error:
                raise InputError(f"{video.path}: damaged or cut off: {error}") from error
    raise InputError(f"{video.path}: {NO_FRAME}")


def sound_between(video: Source, start: float, end: float) -> Iterator[Timed]:
    """The sound of `[start, end)`, cut to the sample; its time stamps count from `start`."""
    av = pyav(video.path)
    assert video.sound is not None
    rate, layout = video.sound
    resampler = av.AudioResampler(format="fltp", layout=layout, rate=rate)
    with _from(video, start - WARM_UP, audio=True) as (container, stream):

        def resampled() -> Iterator[Any]:
            try:
                for packet in container.demux(stream):
                    for frame in packet.decode():
                        if frame.pts is not None:
                            yield from resampler.resample(frame)
                yield from resampler.resample(None)
            except av.error.FFmpegError as error:
                raise InputError(f"{video.path}: its sound: {error.strerror}; --no-audio leaves it out") from error

        for frame in resampled():
            at = round((float(frame.pts * frame.time_base) - video.origin - start) * rate)  # samples since the start
            low, high = max(-at, 0), min(frame.samples, round((end - start) * rate) - at)
            if low < high:
                part = av.AudioFrame.from_ndarray(frame.to_ndarray()[:, low:high].copy(), format="fltp", layout=layout)
                part.sample_rate, part.pts, part.time_base = rate, at + low, Fraction(1, rate)
                yield start + (at + low) / rate, "audio", part
            if at + frame.samples >= (end - start) * rate:
                return


def copy_clip(video: Source, start: float, end: float, out: Path, *, audio: bool = True) -> None:
    """As the video is stored, not encoded again: from the key frame before `start` on. A video whose codec has no
    place in .mp4 raises InputError."""
    av = pyav(video.path)
    origin, slack = video.origin, video.slack
    with ExitStack() as stack:
        for back in STEPS_BACK:
            container, stream = stack.enter_context(_from(video, start - back))
            key = next((packet for packet in container.demux(stream) if packet.is_keyframe and packet.size), None)
            found = None if key is None or key.pts is None else float(key.pts * key.time_base) - origin
            if found is not None and (found <= start + slack or back == math.inf):
                break
        if found is None:
            raise InputError(f"{video.path}: no key frame to cut at; leave out --copy")
        container, stream = stack.enter_context(_from(video, start - back))
        taken = [stream, *(container.streams.audio[:1] if audio else ())]
        clip_file: IO[bytes] = stack.enter_context(replacing(out, "wb"))
        stack.enter_context(_speaking_of(av, out, "leave out --copy"))
        clip = stack.enter_context(av.open(clip_file, "w", format="mp4"))
        copies = {each.index: clip.add_stream_from_template(each) for each in taken}
        waiting = set(copies)
        for packet in container.demux(taken):
            if packet.dts is None or packet.pts is None or not packet.size:
                continue
            zero = round((origin + found) / packet.time_base)
            if packet.dts * packet.time_base - origin >= end - slack:
                waiting.discard(packet.stream_index)
            if not waiting:
                break
            if packet.stream_index in waiting and packet.pts >= zero:
                packet.pts, packet.dts = packet.pts - zero, packet.dts - zero
                packet.stream = copies[packet.stream_index]
                clip.mux(packet)


@contextmanager
def _from(video: Source, seconds: float, audio: bool = False) -> Iterator[tuple[Any, Any]]:
    """The container and a stream, at the last place before `seconds` where decoding can begin."""
    with opened_video(video.path) as (container, stream):
        chosen = container.streams.audio[0] if audio else stream
        if seconds > 0:
            try:
                container.seek(int((video.origin + seconds) / chosen.time_base), stream=chosen)
            except (OSError, ValueError):  # FFmpeg's errors are OSErrors or ValueErrors
                container.seek(0)
        yield container, chosen


def _video_stream(av: Any, clip: Any, frame: Any, video: Source) -> Any:
    """As large as the picture that is shown, both sides even as the encoder wants them; colours as they are."""
    codec = "libx264" if "libx264" in av.codecs_available else "mpeg4"
    stream = clip.add_stream(codec, rate=Fraction(video.fps).limit_denominator(1001))
    sideways = round((frame.rotation or 0) / 90) % 2
    width, height = (frame.height, frame.width) if sideways else (frame.width, frame.height)
    stream.width, stream.height = max(width // 2, 1) * 2, max(height // 2, 1) * 2
    stream.pix_fmt = "yuv420p"
    context = stream.codec_context
    stream.time_base = context.time_base = Fraction(1, TICKS)
    if not frame.rotation:
        context.colorspace, context.color_range = frame.colorspace, frame.color_range
    if codec == "libx264":
        stream.options = {"crf": "18", "preset": "veryfast"}
    else:
        stream.bit_rate = 8_000_000
    return stream


def _chained(first: Timed, rest: Iterator[Timed]) -> Iterator[Timed]:
    yield first
    yield from rest


@contextmanager
def _speaking_of(av: Any, out: Path, advice: str = "") -> Iterator[None]:
    try:
        yield
    except (av.error.FFmpegError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{out}: the clip could not be written: {reason}{'; ' * bool(advice)}{advice}") from error
