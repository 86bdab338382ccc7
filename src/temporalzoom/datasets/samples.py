"""Samples: one recording's features, raw signal or video, with its annotations, ready to train on or to score."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.signals.feature_rows import FeatureRows
from temporalzoom.signals.pieces import Video
from temporalzoom.signals.preparation import Framing
from temporalzoom.timegrid import TimeGrid


@dataclass(frozen=True, eq=False)
class Sample:
    """signal: (T, F) float32, features as they are; or, with a framing, (N, C) raw rows that windows are cut from.
    Either may still be in its file.

    segments and duration in seconds. labelled: the segments with their true labels, where `segments`, which is what is
    trained on, has others; None: they are the same. video: a sample without a signal, whose windows (see framing) of
    frames only become features by the network that is trained. ambiguous: spans that count neither for nor against what
    is found in them. subject: who was recorded, where that is known.
    """

    name: str
    signal: NDArray[np.float32] | FeatureRows
    grid: TimeGrid
    duration: float
    segments: Segments
    framing: Framing | None = None
    labelled: Segments | None = None
    video: Video | None = None
    ambiguous: Segments = field(default_factory=Segments.empty)
    subject: str | None = None

    def __len__(self) -> int:
        rows = len(self.signal) if self.video is None else self.video.frames
        return rows if self.framing is None else self.framing.count(rows)

    @property
    def features(self) -> NDArray[np.float32]:
        """(T, F), read."""
        self._needs_features()
        return np.asarray(self.signal) if self.framing is None else self.framing.cut(self.signal)

    @property
    def rows(self) -> NDArray[np.float32] | FeatureRows:
        """(T, F), as `features`; in their file where they are there as they are."""
        self._needs_features()
        return self.signal if self.framing is None else self.features

    @property
    def input_width(self) -> int:
        """F."""
        self._needs_features()
        return self.signal.shape[1] * (1 if self.framing is None else self.framing.window)

    def _needs_features(self) -> None:
        if self.video is not None:
            raise InputError(f"{self.video.path}: is a video (data.videos); this needs features (data.features)")


@dataclass(frozen=True, eq=False)
class Split:
    """The samples of one subset, and the classes in the order of the model's outputs.

    origin: how the features of all of them were made from videos; None: unknown, or not from videos. channel_names: of
    what their files hold; () where unknown.
    """

    samples: tuple[Sample, ...]
    classes: tuple[str, ...]
    origin: ExtractionSettings | None = None
    channel_names: tuple[str, ...] = ()

    def truth(self) -> dict[str, Segments]:
        """With the labels that are trained on."""
        return {sample.name: sample.segments for sample in self.samples}

    def labelled_truth(self) -> dict[str, Segments]:
        """With the true labels, also where the model is to know none."""
        return {s.name: s.segments if s.labelled is None else s.labelled for s in self.samples}

    def ambiguous(self) -> dict[str, Segments]:
        return {sample.name: sample.ambiguous for sample in self.samples}

    @property
    def input_width(self) -> int:
        return self.samples[0].input_width
