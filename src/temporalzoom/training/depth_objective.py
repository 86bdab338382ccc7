"""What adaptive depth adds to the objective: both paths' own losses, uncertainty, the value of depth, pruning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from temporalzoom.config import ZoomSection
from temporalzoom.models import Depth, Outputs
from temporalzoom.training.batches import Batch
from temporalzoom.training.losses import gaussian_nll
from temporalzoom.training.routing_objective import routing_terms

# The paper's linear penalty, from the first step on, drives tau to zero before the deep path has learned anything.
PENALTY_WARMUP = 0.3
# Weights of the paths' own losses, and of the depth predictor's.
SHALLOW_WEIGHT, DEEP_WEIGHT, DEPTH_WEIGHT = 0.5, 1.0, 0.5
ROUTING_WEIGHTS = {"deep": DEEP_WEIGHT, "depth": DEPTH_WEIGHT, "temperature": 1.0}
# Limits of the value of depth, in units of its price; and what scales its squared error to the size of other terms.
GAIN_LIMITS = (-3.0, 6.0)
VALUE_SCALE = 0.2


def depth_terms(
    outputs: Outputs,
    batch: Batch,
    options: ZoomSection,
    path_terms: Callable[[Outputs], Mapping[str, Tensor]],
    path_map: Callable[[Outputs], Tensor],
    progress: float,
    matches: Tensor,
    class_targets: Callable[[Outputs], Tensor],
) -> dict[str, Tensor]:
    """Weighted terms. path_terms: the loss terms of one path on its own; path_map: its loss by position, (B, T);
    progress: share of the training that is done; matches: (B, N), see `objective.assign`; class_targets: what a path's
    logits are to become, (B, T, C)."""
    depth = outputs.depth
    assert depth is not None and depth.shallow is not None
    terms = {"shallow": SHALLOW_WEIGHT * _total(path_terms(depth.shallow))}
    if depth.deep is not None:
        terms["deep"] = DEEP_WEIGHT * _total(path_terms(depth.deep))
    if depth.routing is not None:
        found = routing_terms(depth.routing, batch.mask, options, path_terms, path_map, class_targets)
        return terms | {name: ROUTING_WEIGHTS[name] * value for name, value in found.items()}
    if options.paper.allocation != "tau":  # nothing is predicted
        return terms
    if options.uncertainty and outputs.distances is not None:
        terms["uncertainty"] = options.paper.uncertainty_weight * _uncertainty(outputs, depth, batch)
    elif options.uncertainty:
        terms["uncertainty"] = options.paper.uncertainty_weight * _box_uncertainty(outputs, depth, batch, matches)
    if options.depth and options.paper.supervision == "value" and depth.deep is not None:
        with torch.no_grad():
            gain = (path_map(depth.shallow) - path_map(depth.deep)) * depth.tried
        terms["depth"] = DEPTH_WEIGHT * value_loss(depth, gain, batch.mask, options)
    if options.depth and options.paper.supervision in ("penalty", "stopped"):
        warm = min(progress / PENALTY_WARMUP, 1.0)
        terms["compute"] = warm * options.paper.compute_weight * depth.tau[batch.mask].mean()
    if options.pruning:
        terms["prune"] = options.paper.prune_weight * depth.importance[batch.mask].mean()
    return terms


def value_targets(gain: Tensor, tried: Tensor, mask: Tensor, share: float) -> Tensor:
    """Targets of the depth predictor: the gain of depth, in units of its price. (B, T) each.

    gain: the shallow path's loss minus the deep path's, zero where depth was not tried. The price is what the `share`
    most profitable positions gain at least, and no less than what depth changes on average. Linear in the gain, so that
    what is learned is its mean: the positions with the highest means are those that a budget is best spent on. Only
    outliers are clipped: single positions must not dominate the gradient.
    """
    sizes = gain[tried].abs()
    usual = (sizes.mean() if len(sizes) else gain.new_tensor(1.0)).clamp(min=1e-6)
    price = torch.maximum(torch.quantile(gain[mask], 1 - share), usual)
    return (gain / price).clamp(*GAIN_LIMITS)


def value_loss(depth: Depth, gain: Tensor, mask: Tensor, options: ZoomSection) -> Tensor:
    """Squared error between the depth predictor and the value of depth, where depth was tried."""
    target = value_targets(gain, depth.tried, mask, options.share)
    weight = depth.tried.float()
    return (VALUE_SCALE * (depth.logits - target).square() * weight).sum() / weight.sum().clamp(min=1.0)


def _uncertainty(outputs: Outputs, depth: Depth, batch: Batch) -> Tensor:
    """Heteroscedastic Gaussian, mean over the valid positions (the paper's sum would swamp every other term)."""
    assert outputs.distances is not None and batch.distances is not None and batch.distance_weights is not None
    error = outputs.distances - batch.distances
    weights = batch.distance_weights * batch.mask.unsqueeze(-1)
    loss = gaussian_nll(error, depth.log_variance.unsqueeze(-1))
    return (loss * weights).sum() / weights.sum().clamp(min=1.0)


def _box_uncertainty(outputs: Outputs, depth: Depth, batch: Batch, matches: Tensor) -> Tensor:
    """Without distances, the same with the errors of the boxes, mean over the positive positions and both ends.

    A point of a coarser level teaches the position where it stands. matches: (B, N).
    """
    sequence, row = (matches >= 0).nonzero(as_tuple=True)
    counts = torch.tensor([0, *(len(starts) for starts in batch.starts)], device=matches.device)
    instance = matches[sequence, row] + counts.cumsum(0)[sequence]
    starts, ends = torch.cat(batch.starts)[instance], torch.cat(batch.ends)[instance]
    position = row if outputs.points is None else outputs.points.positions[row].long()
    offsets = outputs.boxes(sequence, row, torch.cat(batch.labels)[instance])
    error = offsets - torch.stack((position - starts, ends - position), -1)
    loss = gaussian_nll(error, depth.log_variance[sequence, position].unsqueeze(-1))
    return loss.sum() / max(loss.numel(), 1)


def _total(terms: Mapping[str, Tensor]) -> Tensor:
    return torch.stack(list(terms.values())).sum()
