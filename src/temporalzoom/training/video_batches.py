"""Batches of frames: crops of videos, decoded when they are needed. As for features, what a step sees depends on
(seed, step) only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from temporalzoom.config import BDRConfig, FrameAugmentConfig
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.training.batches import Batch, collate, samples_of_step
from temporalzoom.training.crops import Crop, crop_at
from temporalzoom.training.frame_augmentation import Frames, decoded_side, draw_variation, vary_frames


def video_batch(
    split: Split,
    seed: int,
    step: int,
    batch_size: int,
    length: int,
    bdr: BDRConfig,
    size: int,
    options: FrameAugmentConfig,
    reach: int | None = None,
    scales: Sequence[int] = (),
    rows: slice | None = None,
) -> Batch:
    """As `training_batch`, of videos: `features` are frames, uint8 (B, N, size, size, 3), N those of T windows.

    options: how the frames of each crop are varied. rows: only the frames of these are decoded, and are in `features`;
    None: all.
    """
    random = np.random.default_rng([seed, 2, step])
    clips: list[Frames] = []
    crops: list[Crop] = []
    own = range(batch_size)[slice(None) if rows is None else rows]
    longest = 0
    for row, sample in enumerate(samples_of_step(split, seed, step, batch_size)):
        first = int(random.integers(max(len(sample) - length, 0) + 1))
        count = min(length, len(sample) - first)
        if row in own:
            clips.append(clip_of(sample, first, count, size, options, random))
        else:
            skip_clip(sample, first, count, size, options, random)
        assert sample.framing is not None
        longest = max(longest, sample.framing.rows(count))
        crops.append(crop_at(sample, first, np.zeros((count, 0), np.float32)))  # targets only
    batch = collate(crops, split.classes, bdr, reach, scales)
    frames = torch.zeros(len(clips), longest, size, size, 3, dtype=torch.uint8)
    for row, clip in enumerate(clips):
        frames[row, : len(clip)] = torch.from_numpy(clip)
    batch.features = frames
    return batch


def clip_of(
    sample: Sample, first: int, count: int, size: int, options: FrameAugmentConfig, random: np.random.Generator
) -> Frames:
    """The frames of `count` positions from `first` on, varied: (N, size, size, 3)."""
    assert sample.video is not None and sample.framing is not None
    begin, rows = first * sample.framing.stride, sample.framing.rows(count)
    frames = sample.video.read(begin, rows, decoded_side(options, size))
    return vary_frames(frames, draw_variation(options, rows, frames.shape[1:3], size, random), size)


def skip_clip(
    sample: Sample, first: int, count: int, size: int, options: FrameAugmentConfig, random: np.random.Generator
) -> None:
    """Draw what `clip_of` draws, and decode no more than a frame: the clips after it are those of the whole batch."""
    assert sample.video is not None and sample.framing is not None
    picture = (size, size)
    if options.crop:  # how large a picture is decides what is drawn
        height, width = sample.video.read(first * sample.framing.stride, 1, decoded_side(options, size)).shape[1:3]
        picture = (height, width)
    draw_variation(options, sample.framing.rows(count), picture, size, random)
