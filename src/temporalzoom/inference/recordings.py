"""From a recording (a video, a file of features or of a raw signal, an array) to what a trained network takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.errors import InputError
from temporalzoom.runs.description import ModelDescription
from temporalzoom.signals.archived_rows import stored_rows
from temporalzoom.signals.backbones import Backbone
from temporalzoom.signals.container import Signal, listed
from temporalzoom.signals.decoding import probe
from temporalzoom.signals.extraction import VIDEO_SUFFIXES, ExtractionSettings, check_settings, video_features
from temporalzoom.signals.feature_files import SUFFIXES
from temporalzoom.signals.feature_rows import FeatureRows, open_rows
from temporalzoom.signals.preparation import row_count
from temporalzoom.signals.resampling import resampled
from temporalzoom.signals.sidecars import contradictions, read_sidecar
from temporalzoom.signals.signal_files import ROW_SUFFIXES, SIGNAL_SUFFIXES, read_signal
from temporalzoom.timegrid import TimeGrid

Floats = NDArray[np.float32]
SAME_RATE = 0.01  # rates nearer than this need no resampling: the clock is that of the file, its rows stay


@dataclass(frozen=True)
class NetworkInput:
    """features: (T, F), prepared as those of training were, still in their file where that holds them so; grid: when
    each of them was; duration: of the recording, in seconds; notes: what was recognised or resampled on reading, one
    sentence each."""

    features: Floats | FeatureRows
    grid: TimeGrid
    duration: float
    notes: tuple[str, ...] = ()


class Opened(NamedTuple):
    """A recording that was read. signal: (N, C) rows or (T, C) features; grid: of features; duration: in seconds, None
    where only the number of rows tells it; notes: how the file was read, one sentence each."""

    signal: ArrayLike | FeatureRows
    grid: TimeGrid
    duration: float | None = None
    notes: tuple[str, ...] = ()


def is_video(file: Path) -> bool:
    """By its suffix; a file whose suffix says nothing is opened, and refused where it is neither."""
    if not file.is_file():
        raise InputError(f"{file}: no such file" if not file.is_dir() else f"{file}: a folder, not a recording")
    if file.suffix in SUFFIXES or file.suffix.lower() in ROW_SUFFIXES:
        return False
    if file.suffix.lower() not in VIDEO_SUFFIXES:
        try:
            probe(file)
        except InputError as error:
            raise InputError(f"{error}; nor is it a signal or feature file ({' '.join(SIGNAL_SUFFIXES)})") from None
    return True


class RecordingReader:
    """Reads recordings for one model, on the clock that the user asks for.

    Args:
        description: of the model.
        build: makes the backbone of given settings.
        stride, window, fps: where they are not those of training; None: nothing is asked for.
        backbone: name of what turns videos into features; None: what did so for training.
    """

    def __init__(
        self,
        description: ModelDescription,
        build: Callable[[ExtractionSettings], Backbone],
        stride: float | None = None,
        window: float | None = None,
        fps: float | None = None,
        backbone: str | None = None,
    ) -> None:
        asked = {"stride": stride, "window": window, "fps": fps}
        self.asked = {key: value for key, value in asked.items() if value is not None}
        self.description, self._build, self.name = description, build, backbone
        framing = description.preparation.framing
        for key, value in self.asked.items():
            if framing is not None and key != "fps" and value != getattr(framing, key):
                raise InputError(
                    f"{key}: the model cuts its own windows from raw signals "
                    f"({framing.window} rows every {framing.stride})"
                )
        try:
            self._grid = replace(description.grid, **self.asked)
        except ValueError as error:
            raise InputError(str(error)) from None

    def read(
        self,
        recording: str | Path | ArrayLike,
        duration: float | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> NetworkInput:
        """What the network takes of a recording.

        Args:
            recording: the path of a video or of a file, or an array: (N, C) rows of a raw signal for a model that was
                trained on those, else (T, C) features.
            duration: in seconds; None: what the file says, or what its rows cover.
            progress: called with the number of frames, now and then while a video is decoded.
        """
        return self.prepare(self.open(recording, progress), duration)

    def open(self, recording: str | Path | ArrayLike, progress: Callable[[int], None] | None = None) -> Opened:
        """The recording as it is, arguments as in `read`. Models that share their features can share it."""
        if not isinstance(recording, str | Path):
            return Opened(recording, self._own_grid())
        if is_video(Path(recording)):
            return self._decoded(Path(recording), progress)
        return self._stored(Path(recording))

    def prepare(self, opened: Opened, duration: float | None = None) -> NetworkInput:
        """What the network takes of a recording that was read. duration: as in `read`."""
        preparation, width = self.description.preparation, self.description.input_width
        framing = preparation.framing
        grid = opened.grid if framing is None else replace(opened.grid, stride=framing.stride, window=framing.window)
        features, final = preparation.apply(opened.signal, grid, width)
        if duration is None:
            # A raw signal goes on after its last whole window.
            rows = grid if framing is None else TimeGrid(1, 1, grid.fps)
            duration = opened.duration or rows.duration(row_count(opened.signal))
        return NetworkInput(features, final, duration, opened.notes)

    def _stored(self, file: Path) -> Opened:
        """Features or a raw signal (T, C) of a file."""
        if self.description.video is not None:
            raise InputError("the model was trained together with its backbone, so it takes videos only")
        raw = self.description.preparation.framing is not None
        if raw or file.suffix.lower() in ROW_SUFFIXES:
            return self._rows(file)
        signal = stored_rows(file)
        sidecar = read_sidecar(file)
        if sidecar is None:
            return Opened(signal, self._own_grid())
        for key, described, wanted in contradictions(sidecar, **self.asked):
            raise InputError(f"{sidecar.file}: {key} is {described:.6g}, not {wanted:.6g}; leave it out")
        sidecar.settings.check_against(self.description.origin, sidecar.file)
        return Opened(signal, sidecar.grid, sidecar.duration)

    def _rows(self, file: Path) -> Opened:
        """Rows of a signal (N, C) in the order of channels and at the rate of training, if the file says its own."""
        preparation = self.description.preparation
        raw, has_columns = preparation.framing is not None, file.suffix.lower() in ROW_SUFFIXES
        # Of a raw signal the rate asked for is that of the file; of features it is one of the video behind them.
        asked = self.asked.get("fps") if raw and has_columns else None
        if file.suffix == ".npy" and isinstance(rows := open_rows(file), FeatureRows):
            return Opened(rows, self._own_grid())  # they have neither names nor a rate
        names = preparation.channel_names
        signal = read_signal(file, fps=asked, label_column="" if names else None)
        if names and signal.channels:
            signal = _in_order(signal, names)
        known_otherwise = not has_columns and "fps" in self.asked
        if signal.fps is None or known_otherwise or preparation.resize is not None:
            return Opened(signal.values, self._own_grid(), None, signal.notes)
        grid = self.description.grid if raw else self._grid
        rate = grid.fps if raw else grid.fps / grid.stride  # rows per second
        if abs(signal.fps / rate - 1) > SAME_RATE:
            signal = resampled(signal, rate)
        assert signal.fps is not None
        own = replace(grid, fps=grid.fps * signal.fps / rate)
        return Opened(signal.values, own, signal.duration if raw else None, signal.notes)

    def _own_grid(self) -> TimeGrid:
        """Of features that nothing else is known about: the model's grid, unless that is one of resized features."""
        if self.description.preparation.resize is None:
            return self._grid
        if "stride" not in self.asked:
            raise InputError("the model resizes features, so their own stride (and window) is needed")
        return replace(self._grid, window=self.asked.get("window", self.asked["stride"]))

    def _decoded(self, video: Path, progress: Callable[[int], None] | None) -> Opened:
        """Features (T, D) of a video, and its duration."""
        settings = self.settings
        return Opened(*video_features(video, self.backbone, settings.stride, settings.window, settings.fps, progress))

    @cached_property
    def settings(self) -> ExtractionSettings:
        """How videos become features: as in training, but for what the user asks for."""
        described = self.description
        trained = described.video or described.origin
        if described.preparation.framing is not None:
            raise InputError("the model was trained on raw signals, so it takes those, and no videos")
        check_settings(None, None, self.asked.get("fps"))
        name = self.name or (None if trained is None else trained.backbone)
        if name is None:
            raise InputError(
                "the model does not say how its features were made from videos; name what made them: --backbone, "
                "backbone=... in Python (with stride, window and fps if need be)"
            )
        options: dict[str, Any] = {}
        if trained is not None:
            stride, window, fps = float(trained.stride), float(trained.window), trained.fps
            options = trained.options if trained.backbone == name else {}
        else:  # the clock of training, so that a window lasts as long as it did there
            grid = self._own_grid()
            stride, window, fps = grid.stride, grid.window, grid.fps
        steps = {"stride": stride, "window": window} | self.asked
        for key in ("stride", "window"):
            if steps[key] != int(steps[key]) or steps[key] < 1:
                raise InputError(f"{key}: a whole number of frames is needed to cut a video, got {steps[key]:g}")
        return ExtractionSettings(name, int(steps["stride"]), int(steps["window"]), self.asked.get("fps", fps), options)

    @cached_property
    def backbone(self) -> Backbone:
        """What turns videos into features, built; one that does not fit the model raises InputError."""
        name, own = self.settings.backbone, self.description.video
        if own is not None and name != own.backbone:
            raise InputError(
                f"backbone {name}: the model was trained together with its own, {own.backbone}; leave it out"
            )
        built, expected = self._build(self.settings), self.description.channels
        if built.width != expected:
            raise InputError(f"backbone {name}: makes {built.width} channels, the model was trained with {expected}")
        return built


def _in_order(signal: Signal, names: tuple[str, ...]) -> Signal:
    """The channels that the model was trained with, in its order; others are left out."""
    there = {name.casefold() for name in signal.channels}
    missing = [name for name in names if name.casefold() not in there]
    if missing:
        raise InputError(
            f"has no channel {listed(missing)}, which the model was trained with; it has {listed(signal.channels)}"
        )
    return signal.select(names)
