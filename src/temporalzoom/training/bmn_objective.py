"""What `bmn` is trained on: boundary regions, the overlap of every cell with the instances, classes of positions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from temporalzoom.models.bmn import cells_inside
from temporalzoom.models.outputs import BoundaryMaps, Outputs
from temporalzoom.training.batches import Batch
from temporalzoom.training.losses import focal_loss

# Published: a boundary's region is a tenth of the instance wide but at least three positions; a position is in it when
# it shares more than half of its own width with it.
REGION_SHARE, REGION, INSIDE = 0.1, 3.0, 0.5
HIGH, LOW = 0.7, 0.3  # tIoU of the cells that the regression samples in equal numbers
POSITIVE = 0.9  # tIoU of a positive of the classification


def bmn_terms(
    outputs: Outputs,
    batch: Batch,
    *,
    boundary_weight: float = 1.0,
    overlap_weight: float = 10.0,
    proposal_weight: float = 1.0,
    class_weight: float = 1.0,
    focal_alpha: float = -1.0,
    focal_gamma: float = 0.0,
) -> dict[str, Tensor]:
    """The weighted terms; without distances, which are the same as any model's.

    `boundary`: temporal evaluation; `overlap`: the regression of the map; `proposal`: its classification; `class`: of
    the positions, where there are several classes (by default cross-entropy).
    """
    maps = outputs.maps
    assert maps is not None, "bmn returns its maps in training mode only"
    device, (length, durations) = maps.starts.device, (batch.mask.shape[1], maps.confidence.shape[2])
    starts, ends = ([column.to(device) for column in columns] for columns in (batch.starts, batch.ends))
    spans = list(zip(starts, ends, strict=True))
    overlap = torch.stack([cell_tiou(start, end, durations, length) for start, end in spans])
    inside = cells_inside(batch.mask, durations)
    terms = {
        "boundary": boundary_weight * _boundary_loss(maps, spans, batch.mask),
        "overlap": overlap_weight * overlap_loss(maps.confidence[:, 1], overlap, inside),
        "proposal": proposal_weight * balanced_loss(maps.confidence[:, 0], overlap > POSITIVE, inside),
    }
    if outputs.logits.shape[-1] > 1:
        targets = position_classes(batch, outputs.logits)
        losses = focal_loss(outputs.logits, targets, focal_alpha, focal_gamma).sum(-1)
        terms["class"] = class_weight * (losses * batch.mask).sum() / batch.mask.sum().clamp(min=1)
    return terms


def cell_tiou(starts: Tensor, ends: Tensor, durations: int, length: int) -> Tensor:
    """Highest tIoU of each cell's segment [s, s + d + 1] with any instance. starts, ends: (M,) -> (D, T)."""
    if not len(starts):
        return starts.new_zeros(durations, length)
    first = torch.arange(length, device=starts.device, dtype=starts.dtype)
    long = torch.arange(1, durations + 1, device=starts.device, dtype=starts.dtype)[:, None]
    true_start, true_end = starts[:, None, None], ends[:, None, None]
    shared = (torch.minimum(first + long, true_end) - torch.maximum(first, true_start)).clamp(min=0)
    return (shared / (long + (true_end - true_start) - shared)).amax(0)


def boundary_regions(points: Tensor, durations: Tensor, length: int) -> Tensor:
    """Which positions are in the region of a boundary. points, durations of their instances: (M,) -> (T,) boolean."""
    half = (REGION_SHARE * durations).clamp(min=REGION)[:, None] / 2
    position = torch.arange(length, device=points.device, dtype=points.dtype)
    low, high = points[:, None] - half, points[:, None] + half
    shared = torch.minimum(position + 0.5, high) - torch.maximum(position - 0.5, low)
    return (shared > INSIDE).any(0)


def _boundary_loss(maps: BoundaryMaps, spans: list[tuple[Tensor, Tensor]], mask: Tensor) -> Tensor:
    length = mask.shape[1]
    starts = torch.stack([boundary_regions(start, end - start, length) for start, end in spans])
    ends = torch.stack([boundary_regions(end, end - start, length) for start, end in spans])
    return balanced_loss(maps.starts, starts, mask) + balanced_loss(maps.ends, ends, mask)


def balanced_loss(logits: Tensor, positive: Tensor, valid: Tensor) -> Tensor:
    """Weighted binary logistic loss: half the mean over the positives plus half the mean over the negatives. All (...).

    The published coefficients, 0.5 r for positives and 0.5 r / (r - 1) for negatives with r = entries / positives,
    come to this; and this is defined where one of the two is missing.
    """
    positive, negative = positive & valid, ~positive & valid
    missed = (F.softplus(-logits) * positive).sum() / positive.sum().clamp(min=1)
    false = (F.softplus(logits) * negative).sum() / negative.sum().clamp(min=1)
    return 0.5 * (missed + false)


def overlap_loss(logits: Tensor, overlap: Tensor, inside: Tensor) -> Tensor:
    """Half the squared error of the predicted tIoU, over a sample of cells. All (B, D, T).

    Every cell of high tIoU, and at random about as many of medium tIoU and of low, which is above zero. The choice
    depends on torch's seed only.
    """
    high = (overlap > HIGH) & inside
    medium = (overlap <= HIGH) & (overlap > LOW) & inside
    low = (overlap <= LOW) & (overlap > 0) & inside
    chance = torch.rand(overlap.shape).to(overlap.device)  # one generator, whatever the device
    count = high.sum()
    chosen = high
    for group in (medium, low):
        chosen = chosen | (group & (chance < count / group.sum().clamp(min=1)))
    error = (torch.sigmoid(logits) - overlap).square()
    return 0.5 * (error * chosen).sum() / chosen.sum().clamp(min=1)


def position_classes(batch: Batch, like: Tensor) -> Tensor:
    """The classes of each position, (B, T, C) as `like`: those of all instances that it is in.

    An instance between two positions has the one nearest to its middle.
    """
    targets = torch.zeros_like(like)
    position = torch.arange(like.shape[1], device=like.device)
    for row, columns in enumerate(zip(batch.starts, batch.ends, batch.labels, strict=True)):
        starts, ends, labels = (column.to(like.device) for column in columns)
        within = (position >= starts[:, None]) & (position <= ends[:, None])
        within |= (position - (starts + ends)[:, None] / 2).abs() <= 0.5  # (M, T)
        one_hot = F.one_hot(labels, like.shape[-1]).to(like.dtype)
        targets[row] = (within.T.to(like.dtype) @ one_hot).clamp(max=1.0)
    return targets
