"""Crops of samples, padded into batches. Which crops a step sees depends on (seed, step) only: that is what makes a
resumed run identical to an uninterrupted one, with no generator state to store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from temporalzoom.bdr import distance_targets, distance_weights
from temporalzoom.bdr.targets import Numbers
from temporalzoom.config import BDRConfig
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.training.crops import Augmentation, Crop, plain_crop

# An instance of which less than this share is inside the crop is not asked for: what is left of it may be anything.
MIN_VISIBLE = 0.5
# Weight of positions that are far from every boundary in the distance loss.
FAR_WEIGHT = 0.05


@dataclass
class LevelTargets:
    """Of one level of a pyramid, in its strides. distances, weights: (B, T / scale, K); mask: (B, T / scale)."""

    scale: int
    distances: Tensor
    weights: Tensor
    mask: Tensor


@dataclass
class Batch:
    """features: (B, T, F), or frames of videos (see `video_batch`); mask: (B, T); instances per sequence in grid units:
    starts, ends (N,), labels (N,) integers, scores (N,) from 0 to 1: what their class scores are to become (all 1 where
    the list is empty); distances and distance_weights: (B, T, K), None without BDR; boundaries: (B, T), true positions
    that pruning may not drop, None where the network protects those it predicts; levels: where BDR is trained on all
    levels of a pyramid."""

    features: Tensor
    mask: Tensor
    starts: list[Tensor]
    ends: list[Tensor]
    labels: list[Tensor]
    distances: Tensor | None = None
    distance_weights: Tensor | None = None
    boundaries: Tensor | None = None
    levels: Sequence[LevelTargets] = ()
    scores: list[Tensor] = field(default_factory=list)

    def to(self, device: torch.device) -> Batch:
        """The same batch on a device. A copy from pinned memory to `cuda` need not be waited for."""

        def moved(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else value.to(device)
            if isinstance(value, list | tuple):
                return [moved(each) for each in value]
            if isinstance(value, LevelTargets):
                return LevelTargets(**{name: moved(part) for name, part in vars(value).items()})
            return value

        return Batch(**{name: moved(value) for name, value in vars(self).items()})


def collate(
    crops: Sequence[Crop],
    classes: Sequence[str],
    bdr: BDRConfig,
    reach: int | None = None,
    scales: Sequence[int] = (),
) -> Batch:
    """Crops padded to the longest, with their targets.

    reach: how far around its true boundaries the batch says to protect; None: it says nothing about them. scales:
    strides of the levels that want distances of their own.
    """
    longest = max(len(crop.features) for crop in crops)
    features = torch.zeros(len(crops), longest, crops[0].features.shape[1])
    mask = torch.zeros(len(crops), longest, dtype=torch.bool)
    batch = Batch(features, mask, [], [], [])
    fields: list[Tensor] = []
    weights: list[Tensor] = []
    protected: list[Tensor] = []
    for row, crop in enumerate(crops):
        features.numpy()[row, : len(crop.features)] = crop.features  # copied once
        mask[row, : len(crop.features)] = True
        starts, ends = crop.starts, crop.ends
        labels = np.array([classes.index(label) for label in crop.labels], np.int64)
        shown_starts, shown_ends = np.maximum(starts, crop.low), np.minimum(ends, crop.high)
        keep = (shown_ends - shown_starts) >= MIN_VISIBLE * (ends - starts)
        batch.starts.append(torch.from_numpy(shown_starts[keep]).float())
        batch.ends.append(torch.from_numpy(shown_ends[keep]).float())
        batch.labels.append(torch.from_numpy(labels[keep]))
        batch.scores.append(torch.from_numpy(crop.scores[keep]).float())
        if reach is not None:
            # Of the recording: where the crop cuts an instance off there is no boundary.
            protected.append(near_boundaries(*crop.likely(), longest, reach))
        if bdr.enabled:
            field, weight = distance_field(crop, longest, bdr)
            fields.append(field)
            weights.append(weight)
    if bdr.enabled:
        batch.distances, batch.distance_weights = torch.stack(fields), torch.stack(weights)
    if reach is not None:
        batch.boundaries = torch.stack(protected)
    levels = []
    for scale in scales:
        level = [distance_field(crop, -(-longest // scale), bdr, scale) for crop in crops]
        distances, level_weights = (torch.stack(column) for column in zip(*level, strict=True))
        levels.append(LevelTargets(scale, distances, level_weights, mask[:, ::scale]))
    batch.levels = levels
    return batch


def near_boundaries(starts: Numbers, ends: Numbers, length: int, reach: int, first: int = 0) -> Tensor:
    """Positions within `reach` of a start or an end: (length,) boolean.

    starts, ends: (N,), in grid units of the whole recording; first: its position at index 0 of a crop.
    """
    distance = distance_targets(
        starts, ends, length, channels="joint", radius=reach + 1.0, first=float(first), dtype=torch.float64
    )
    # Boundaries come from seconds: one that is meant to lie on a position misses it by a rounding error.
    return distance[:, 0].abs() <= reach + 1e-6


def distance_field(crop: Crop, length: int, bdr: BDRConfig, scale: int = 1) -> tuple[Tensor, Tensor]:
    """Distances and their weights at every `scale`-th position of a crop, in units of `scale`: (length, K) each."""
    starts, ends = (times / scale for times in crop.likely())
    # From all boundaries of the recording, so that a crop sees the true field ...
    where: dict[str, Any] = {"channels": bdr.channels, "radius": bdr.radius}
    sharp = distance_targets(starts, ends, length, **where)
    field = distance_targets(starts, ends, length, smoothing=bdr.smoothing, **where) if bdr.smoothing else sharp
    weight = distance_weights(starts, ends, length, far_weight=FAR_WEIGHT, **where)
    # ... but nobody can measure the distance to a boundary that the crop does not show.
    nearest = torch.arange(length)[:, None] - sharp
    far = sharp.abs() >= (bdr.radius or torch.inf)
    shown = (nearest >= crop.low / scale) & (nearest <= crop.high / scale)
    return field, weight * (far | shown)


@lru_cache(maxsize=4)
def _epoch_order(seed: int, epoch: int, size: int) -> NDArray[np.intp]:
    return np.random.default_rng([seed, 1, epoch]).permutation(size)


def samples_of_step(split: Split, seed: int, step: int, batch_size: int) -> Iterator[Sample]:
    """Those of one step: all of them once per epoch, in a new random order each time."""
    for index in range(step * batch_size, (step + 1) * batch_size):
        epoch, place = divmod(index, len(split.samples))
        yield split.samples[_epoch_order(seed, epoch, len(split.samples))[place]]


def training_batch(
    split: Split,
    seed: int,
    step: int,
    batch_size: int,
    length: int,
    bdr: BDRConfig,
    reach: int | None = None,
    augmentation: Augmentation | None = None,
    scales: Sequence[int] = (),
) -> Batch:
    """The batch of one step: samples in a new random order each epoch, a random crop of each.

    reach, scales: as in `collate`. augmentation: how crops are varied; None: not at all.
    """
    random = np.random.default_rng([seed, 2, step])
    crops = []
    for sample in samples_of_step(split, seed, step, batch_size):
        if augmentation is not None:
            crops.append(augmentation.crop(sample, length, random))
        else:
            crops.append(plain_crop(sample, int(random.integers(max(len(sample) - length, 0) + 1)), length))
    return collate(crops, split.classes, bdr, reach, scales)
