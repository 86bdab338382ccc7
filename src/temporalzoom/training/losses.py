"""Detection losses: pure functions of tensors. The distance loss lives in `bdr`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def focal_loss(logits: Tensor, targets: Tensor, alpha: float = 0.25, gamma: float = 2.0) -> Tensor:
    """Sigmoid focal loss, element by element. logits, targets: (...), targets in [0, 1] -> (...).

    alpha weighs positives against negatives; alpha < 0 switches that weighting off. gamma = 0 is cross-entropy. Of a
    target between 0 and 1 the loss is least, and zero, where the probability is the target (quality focal loss, Li et
    al. 2020): what is weighted is how far the two are apart, for targets of 0 and 1 the miss of the focal loss.
    """
    cross_entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    probability = torch.sigmoid(logits)
    miss = (targets - probability).abs()
    miss = miss.clamp(min=torch.finfo(miss.dtype).tiny)  # at zero, a gamma below 1 has no slope
    loss = cross_entropy * miss**gamma
    return loss if alpha < 0 else loss * (alpha * targets + (1 - alpha) * (1 - targets))


def boundary_loss(logits: Tensor, distances: Tensor, valid: Tensor, gamma: float, radius: float | None) -> Tensor:
    """Of logits that a boundary is at a position: a scalar, per boundary. gamma: 0 is cross-entropy, 2 focal loss.

    logits, distances, valid: (B, T, K); distances: signed, of each position to the nearest boundary, clipped at
    `radius`. The target is a Gaussian of one position around the boundary, whose peak tells where between two positions
    the boundary lies.
    """
    target = torch.exp(-0.5 * distances.square())
    if radius is not None:
        target = target * (distances.abs() < radius)
    loss = focal_loss(logits.to(target.dtype), target, alpha=-1.0, gamma=gamma)
    return (loss * valid).sum() / (target * valid).sum().clamp(min=1.0)


def interval_giou(starts: Tensor, ends: Tensor, true_starts: Tensor, true_ends: Tensor) -> Tensor:
    """Generalised IoU of intervals, element by element, in (-1, 1]. All (...) with ends >= starts."""
    overlap = (torch.minimum(ends, true_ends) - torch.maximum(starts, true_starts)).clamp(min=0)
    union = (ends - starts) + (true_ends - true_starts) - overlap
    hull = torch.maximum(ends, true_ends) - torch.minimum(starts, true_starts)
    tiny = torch.finfo(starts.dtype).eps
    return overlap / union.clamp(min=tiny) - (hull - union) / hull.clamp(min=tiny)


def interval_diou(starts: Tensor, ends: Tensor, true_starts: Tensor, true_ends: Tensor) -> Tensor:
    """Distance IoU of intervals: IoU minus the squared distance of the centres in units of the hull. All (...)."""
    overlap = (torch.minimum(ends, true_ends) - torch.maximum(starts, true_starts)).clamp(min=0)
    union = (ends - starts) + (true_ends - true_starts) - overlap
    hull = torch.maximum(ends, true_ends) - torch.minimum(starts, true_starts)
    tiny = torch.finfo(starts.dtype).eps
    apart = 0.5 * (starts + ends - true_starts - true_ends) / hull.clamp(min=tiny)
    return overlap / union.clamp(min=tiny) - apart.square()


def gaussian_nll(error: Tensor, log_variance: Tensor, limit: float = 8.0) -> Tensor:
    """Negative log-likelihood of a Gaussian error, element by element; teaches `log_variance` how large errors are.

    The error is detached: it is the other losses that make it small.
    """
    log_variance = log_variance.clamp(-limit, limit)
    return 0.5 * (error.detach().square() * torch.exp(-log_variance) + log_variance)
