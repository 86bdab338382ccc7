"""`tzoom localize`: videos, or files of features or raw signals, in; segments out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from temporalzoom.config import change_inference
from temporalzoom.errors import InputError
from temporalzoom.formats import SUFFIXES as EXPORTS
from temporalzoom.formats import write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.segments import Segments
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.decoding import probe, read_frames
from temporalzoom.signals.extraction import VIDEO_SUFFIXES, ExtractionSettings, check_settings, video_features
from temporalzoom.signals.extraction_worker import ExtractionProgress
from temporalzoom.signals.feature_files import SUFFIXES, read_features
from temporalzoom.signals.resizing import resize_features
from temporalzoom.signals.sidecars import contradictions, read_sidecar
from temporalzoom.timegrid import TimeGrid


@dataclass
class Localized:
    """segments: by recording, the file's name without its suffix; videos: the files of those that are videos; failed:
    why others could not be localized, or results not written, by path; written: the files made."""

    segments: dict[str, Segments] = field(default_factory=dict)
    videos: dict[str, Path] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    written: list[Path] = field(default_factory=list)


def localize_files(
    paths: Sequence[Path],
    model: Path,
    *,
    overrides: Sequence[str] = (),
    budget: float | None = None,
    threshold: float | None = None,
    top: int | None = None,
    stride: float | None = None,
    window: float | None = None,
    fps: float | None = None,
    backbone: str | None = None,
    out: Path | None = None,
    preview: Path | None = None,
    console: Console | None = None,
) -> Localized:
    """Segments of each file. Folders stand for all feature files in them, and all videos in and below them.

    A feature file holds what those of the training data held: features, or a raw signal. A video becomes features as
    those of the training data did, or by the named backbone. A file that fails is told about, the others go on.
    overrides: of settings of inference, `inference.key=value`. out, preview: files to write, see `write_segments` and
    `write_preview`.
    """
    console = console or Console(stderr=True)
    files, result = _files(paths), Localized()
    others = [file for file in files if file.suffix in SUFFIXES]
    videos = [file for file in files if file not in others and _is_video(file, result.failed)]
    _check_targets(out, preview, videos)
    source = _Source(Localizer.load(model, budget), model, stride, window, fps, backbone)
    source.localizer.options = change_inference(source.localizer.options, overrides)
    if videos:
        _ = source.backbone  # what is wrong with it is wrong for every video
    localizer = source.localizer
    lowest = localizer.options.threshold if threshold is None else threshold

    def one(file: Path, features: NDArray[np.float32], grid: TimeGrid, duration: float) -> None:
        array = localizer.prepare(features)
        if localizer.resize is not None:
            array, grid = resize_features(array, grid, localizer.resize)
        found = localizer(array, grid=grid, duration=duration, threshold=0.0)
        result.segments[file.stem] = found.filter(min_score=lowest).top(top or len(found))
        if len(found) and not len(result.segments[file.stem]):
            hint = f"no segment reaches the score {lowest:g}; the highest is {found.scores.max():.3f}"
            console.print(f"{file.stem}: {hint} (--threshold lowers the bar)", highlight=False, soft_wrap=True)

    silent = not (others and console.is_terminal)
    for file in track(others, "localizing", console=console, transient=True, disable=silent):
        try:
            one(file, *source.stored(file))
        except InputError as error:
            result.failed[str(file)] = _named(file, error)
    if videos:
        with ExtractionProgress(videos, source.settings.fps, console) as shown:
            for file in videos:
                try:
                    one(file, *source.decoded(file, shown))
                    result.videos[file.stem] = file
                except InputError as error:
                    result.failed[str(file)] = _named(file, error)
                except Exception as error:  # one video must not end the others
                    result.failed[str(file)] = f"{file}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
                shown.finished(file, result.failed.get(str(file)))
    # In the order in which the files were given.
    result.segments = {file.stem: result.segments[file.stem] for file in files if file.stem in result.segments}
    if not result.segments and len(files) == 1:
        raise InputError(result.failed[str(files[0])])
    _write(result, out, preview, fps, console)
    return result


def _write(result: Localized, out: Path | None, preview: Path | None, fps: float | None, console: Console) -> None:
    """A file that cannot be written is noted: what was found in hours of decoding is not lost for it."""
    if out is not None and result.segments:
        try:
            rate = _export_rate(result, fps, console) if out.name.lower().endswith("labelstudio.json") else None
            result.written += write_segments(out, result.segments, fps=rate, media=result.videos)
        except InputError as error:
            result.failed[str(out)] = str(error)
    if preview is not None and result.videos:
        [(name, video)] = result.videos.items()
        try:
            preview_video(video, result.segments[name], preview, console)
            result.written.append(preview)
        except InputError as error:
            result.failed[str(preview)] = str(error)


def preview_video(video: Path, segments: Segments, out: Path, console: Console) -> None:
    """A copy of a video, at most 480 pixels high, with its segments on a time line below; see `write_preview`."""
    from temporalzoom.viewer.preview import preview_size, write_preview

    info = probe(video)
    frames = ((frame.seconds, frame.image) for frame in read_frames(video, preview_size(info.height, info.width)))
    write_preview(frames, segments, out, duration=info.duration, fps=info.fps, console=console)


@dataclass
class _Source:
    """From a file to what the model takes. stride, window, fps, name: what the user asked for, None for nothing."""

    localizer: Localizer
    model: Path
    stride: float | None
    window: float | None
    fps: float | None
    name: str | None

    def __post_init__(self) -> None:
        asked = {"stride": self.stride, "window": self.window, "fps": self.fps}
        self.asked = {key: value for key, value in asked.items() if value is not None}
        framing = self.localizer.framing
        if framing is not None and self.asked.keys() - {"fps"}:
            raise InputError(
                f"--{min(self.asked.keys() - {'fps'})}: the model cuts its own windows from raw signals "
                f"({framing.window} rows every {framing.stride})"
            )
        try:
            self.grid = replace(self.localizer.grid, **self.asked)
        except ValueError as error:
            raise InputError(f"--{error}") from None

    def stored(self, file: Path) -> tuple[NDArray[np.float32], TimeGrid, float]:
        """Features or a raw signal (T, C) of a file, their grid, and the recording's duration in seconds."""
        if self.localizer.backbone is not None:
            raise InputError(f"{self.model} was trained together with its backbone, so it takes videos only")
        signal = read_features(file)
        if self.localizer.framing is not None:  # a raw signal goes on after the last whole window
            return signal, self.grid, TimeGrid(1, 1, self.grid.fps).duration(len(signal))
        sidecar = read_sidecar(file)
        if sidecar is None:
            grid = self._unresized_grid()
            return signal, grid, grid.duration(len(signal))
        for key, described, wanted in contradictions(sidecar, **self.asked):
            raise InputError(f"{sidecar.file}: {key} is {described:.6g}, --{key} is {wanted:.6g}; leave it out")
        sidecar.settings.check_against(self.localizer.origin, sidecar.file)
        return signal, sidecar.grid, sidecar.duration or sidecar.grid.duration(len(signal))

    def _unresized_grid(self) -> TimeGrid:
        """Of features that nothing is told about: the model's grid, unless that is one of resized features."""
        if self.localizer.resize is None:
            return self.grid
        if self.stride is None:
            raise InputError("the model resizes features, so their own --stride (and --window) is needed")
        return replace(self.grid, window=self.stride if self.window is None else self.window)

    def decoded(self, video: Path, shown: ExtractionProgress) -> tuple[NDArray[np.float32], TimeGrid, float]:
        """Features (T, D) of a video, their grid, and its duration in seconds."""
        settings = self.settings
        return video_features(video, self.backbone, settings.stride, settings.window, settings.fps, shown.frames)

    @cached_property
    def settings(self) -> ExtractionSettings:
        """How videos become features: as in training, but for what the user asked for."""
        localizer = self.localizer
        trained = localizer.video_settings or localizer.origin
        if localizer.framing is not None:
            raise InputError(f"{self.model}: was trained on raw signals, so it takes those, and no videos")
        check_settings(None, None, self.fps)
        name = self.name or (None if trained is None else trained.backbone)
        if name is None:
            raise InputError(
                f"{self.model}: does not say how its features were made from videos; "
                "name what made them: --backbone (with --stride, --window and --fps if need be)"
            )
        options: dict[str, Any] = {}
        if trained is not None:
            stride, window, fps = float(trained.stride), float(trained.window), trained.fps
            options = trained.options if trained.backbone == name else {}
        else:  # the clock of training, so that a window lasts as long as it did there
            grid = self._unresized_grid()
            stride, window, fps = grid.stride, grid.window, grid.fps
        steps = {"stride": self.stride or stride, "window": self.window or window}
        for key, value in steps.items():
            if value != int(value) or value < 1:
                raise InputError(f"--{key}: a whole number of frames is needed to cut a video, got {value:g}")
        return ExtractionSettings(name, int(steps["stride"]), int(steps["window"]), self.fps or fps, options)

    @cached_property
    def backbone(self) -> Backbone:
        own = self.localizer.backbone
        if own is not None:
            if self.settings.backbone != own.name:
                raise InputError(
                    f"--backbone {self.settings.backbone}: {self.model} was trained together with its own, {own.name}; "
                    "leave it out"
                )
            return own
        built = backbone(self.settings.backbone, **self.settings.options)
        expected = self.localizer.channels
        if expected is not None and built.width != expected:
            raise InputError(
                f"backbone {self.settings.backbone}: makes {built.width} channels, "
                f"the model {self.model} was trained with {expected}"
            )
        return built


def _check_targets(out: Path | None, preview: Path | None, videos: Sequence[Path]) -> None:
    """Now, not after an hour of decoding."""
    if out is not None and not f".{out.name.lower()}".endswith(EXPORTS):
        raise InputError(f"{out}: unknown format {out.suffix!r}; valid are {', '.join(EXPORTS)}")
    if preview is None:
        return
    from temporalzoom.viewer.preview import check_preview

    if len(videos) != 1:
        raise InputError(f"--preview: shows one video, here are {len(videos)}")
    check_preview(preview)
    if preview.resolve() == videos[0].resolve():
        raise InputError(f"--preview: {preview} is the video itself; choose another name")


def _export_rate(result: Localized, fps: float | None, console: Console) -> float | None:
    """Frames per second for Label Studio, which counts frames at one rate for all: that of the first video."""
    rates = [probe(video).fps for video in result.videos.values()]
    if len(set(rates)) > 1:
        told = (
            f'videos of different rates; frames are counted at {rates[0]:g} per second: <Video frameRate="{rates[0]:g}"'
        )
        console.print(f"{told} ...> shows them at their times", markup=False, highlight=False, soft_wrap=True)
    return rates[0] if rates else fps


def _named(file: Path, error: InputError) -> str:
    message = str(error)
    # The description beside a feature file names itself.
    return message if message.startswith((str(file), str(file.with_suffix(".json")))) else f"{file}: {message}"


def _files(paths: Sequence[Path]) -> list[Path]:
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
            inside += sorted(file for file in path.rglob("*") if _is_visible_video(file, path))
            if not inside:
                raise InputError(f"{path}: no feature file ({' '.join(SUFFIXES)}) and no video in this folder")
        elif path.is_file():
            inside = [path]
        else:
            raise InputError(f"{path}: no such file or folder")
        for file in inside:
            files.setdefault(file.resolve(), file)
    names: dict[str, Path] = {}
    for file in files.values():
        if file.stem in names:
            raise InputError(f"{file} and {names[file.stem]}: two files for the same recording")
        names[file.stem] = file
    return list(files.values())


def _is_visible_video(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.suffix.lower() in VIDEO_SUFFIXES and file.is_file() and not hidden


def _is_video(file: Path, failed: dict[str, str]) -> bool:
    """By its suffix; one that says nothing is opened, and noted in `failed` where it cannot be."""
    if file.suffix.lower() not in VIDEO_SUFFIXES:
        try:
            probe(file)
        except InputError as error:
            failed[str(file)] = f"{error}; nor is it a feature file ({' '.join(SUFFIXES)})"
            return False
    return True
