"""Pieces of recordings to train on, as they are or varied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import AugmentConfig, DataConfig, FolderData
from temporalzoom.datasets.samples import Sample
from temporalzoom.datasets.sources import flag_channels
from temporalzoom.errors import InputError
from temporalzoom.segments import Labels
from temporalzoom.signals.feature_rows import FeatureRows

Floats = NDArray[np.float32]
Times = NDArray[np.float64]
LIKELY = 0.5  # score of an instance


@dataclass
class Crop:
    """features: (T, F); starts, ends: (N,) of all instances of the recording, in grid units of the crop; labels: (N,).

    low, high: the first and the last time that the crop shows. At the edges of the recording nothing is cut off, and
    they are infinite: an action may start before the middle of the first window. scores: (N,) from 0 to 1, how likely
    there is an instance; annotated ones have 1.
    """

    features: Floats
    starts: Times
    ends: Times
    labels: Labels
    low: float
    high: float
    scores: Times

    def likely(self) -> tuple[Times, Times]:
        """Starts and ends of the instances that are more likely than not, whose boundaries are taken for real."""
        kept = self.scores >= LIKELY
        return self.starts[kept], self.ends[kept]


def plain_crop(sample: Sample, first: int, length: int) -> Crop:
    """`length` positions of a sample from `first` on, or as many as there are."""
    if sample.framing is None:
        features = sample.signal[first : first + length]
    else:
        features = sample.framing.cut(sample.signal, first, length)
    return crop_at(sample, first, features)


def crop_at(sample: Sample, first: int, features: Floats) -> Crop:
    """features: (T, F) of the positions of a sample from `first` on."""
    last = first + len(features) - 1
    return Crop(
        features,
        sample.grid.to_grid(sample.segments.starts) - first,
        sample.grid.to_grid(sample.segments.ends) - first,
        sample.segments.labels,
        0.0 if first > 0 else -np.inf,
        float(last - first) if last < len(sample) - 1 else np.inf,
        sample.segments.scores,
    )


class Augmentation:
    """Random variations of crops.

    data: how the signals were read. With gaps filled, the last channels say where values were missing: they are only
    ever changed by a channel that is dropped.
    """

    def __init__(self, options: AugmentConfig, samples: Sequence[Sample], data: DataConfig | None = None) -> None:
        self.options = options
        # In the units of the signal: zero is far outside of what a coordinate, or gravity, ever is.
        self.mean: Floats | None = None
        self.scale: Floats | None = None
        if options.noise or options.drop:
            self.mean, self.scale = channel_statistics(samples)
        width, data = samples[0].signal.shape[1], data or FolderData()
        channels = self.channels = width - flag_channels(data, width)
        if options.rotate and data.keypoints:
            raise InputError("augment.rotate: is for three-axis sensors; with data.keypoints there are no axes left")
        is_raw = samples[0].framing is not None
        if options.rotate and (channels % 3 or not is_raw):
            raise InputError(
                f"augment.rotate: needs a raw signal of three-axis sensors, here are {channels} channels"
                + ("" if is_raw else " of features")
            )
        if options.shift and not is_raw:
            raise InputError("augment.shift: needs a raw signal (data.raw), here are features")

    def crop(self, sample: Sample, length: int, random: np.random.Generator) -> Crop:
        """A random crop of `length` positions, varied."""
        framing, options = sample.framing, self.options
        speed = 1.0 + options.warp * random.uniform(-1, 1)
        rows = length if framing is None else framing.rows(length)
        rows = min(rows, int((len(sample.signal) - 1) / speed) + 1)
        last = max(len(sample.signal) - 1 - (rows - 1) * speed, 0.0)  # below zero by rounding only
        stride = 1 if framing is None else framing.stride
        if options.warp:
            begin = random.uniform(0, last)
        else:  # between two rows every row would be a blend; without shift, as plain crops: at a position
            step = 1 if options.shift else stride
            begin = float(step * random.integers(int(last) // step + 1))
        signal = self.vary(resample(sample.signal, begin, speed, rows), random)

        def to_crop(seconds: Times) -> Times:
            if framing is None:
                return (sample.grid.to_grid(seconds) - begin) / speed
            # Row n lies in the middle of the time from n to n + 1.
            row = (sample.grid.to_frames(seconds) - 0.5 - begin) / speed
            return (row + 0.5 - 0.5 * framing.window) / framing.stride

        features = signal if framing is None else framing.cut(signal)
        shown = len(features) if framing is None else framing.rows(len(features))
        left = len(sample.signal) - 1 - (begin + (shown - 1) * speed)
        return Crop(
            features,
            to_crop(sample.segments.starts),
            to_crop(sample.segments.ends),
            sample.segments.labels,
            # Where no further position fits in, the crop ends with the recording.
            0.0 if begin >= stride * speed else -np.inf,
            float(len(features) - 1) if left >= stride * speed else np.inf,
            sample.segments.scores,
        )

    def vary(self, signal: Floats, random: np.random.Generator) -> Floats:
        """(N, C) -> (N, C): rotated, noisier, with channels set to their mean."""
        options, channels = self.options, self.channels
        signal, flags = signal[:, :channels], signal[:, channels:]
        if options.rotate:
            turned = signal.reshape(len(signal), -1, 3) @ rotation(random, np.radians(options.rotate))
            signal = turned.reshape(len(signal), channels)
        if options.noise and self.scale is not None:
            signal = signal + random.normal(0, options.noise, signal.shape).astype(np.float32) * self.scale[:channels]
        if options.drop and self.mean is not None:
            kept = random.random((channels,)) >= options.drop
            signal = np.where(kept, signal, self.mean[:channels])
            if flags.shape[1] == channels:  # one each; those of keypoints belong to several channels
                flags = np.where(kept, flags, np.float32(1))
        return np.concatenate([signal, flags], axis=1) if flags.shape[1] else signal


def resample(signal: Floats | FeatureRows, begin: float, speed: float, rows: int) -> Floats:
    """(N, C) -> (rows, C): linear interpolation at `begin + speed * row`, which must lie within the signal."""
    index = np.minimum(begin + speed * np.arange(rows), len(signal) - 1)
    low = np.minimum(index.astype(np.intp), max(len(signal) - 2, 0))
    share = (index - low).astype(np.float32)[:, None]
    high = np.minimum(low + 1, len(signal) - 1)
    first = int(low[0]) if rows else 0
    needed = signal[first : int(high[-1]) + 1 if rows else 0]  # of a signal in a file, no more is read
    return needed[low - first] * (1 - share) + needed[high - first] * share


def rotation(random: np.random.Generator, largest: float) -> Floats:
    """A rotation about a random axis by up to `largest` radians, (3, 3)."""
    axis = random.normal(size=3)
    x, y, z = axis / max(float(np.linalg.norm(axis)), 1e-12)
    angle = random.uniform(-largest, largest)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross).astype(np.float32)


def channel_statistics(samples: Sequence[Sample]) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every channel of the signals, (C,) each; a constant channel has deviation 1.

    Constant is what varies by no more than the rounding of its values: channels come in all units.
    """
    total = sum(len(sample.signal) for sample in samples)
    mean = sum(np.asarray(sample.signal).sum(axis=0, dtype=np.float64) for sample in samples) / total
    variance = sum(np.square(np.asarray(s.signal) - mean).sum(axis=0, dtype=np.float64) for s in samples) / total
    deviation = np.sqrt(variance)
    varies = deviation > np.maximum(1e-6 * np.abs(mean), 1e-30)
    return mean.astype(np.float32), np.where(varies, deviation, 1.0).astype(np.float32)
