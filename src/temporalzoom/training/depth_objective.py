"""What adaptive depth adds to the objective: both paths' own losses, uncertainty, the value of depth, pruning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from temporalzoom.config import TZNConfig
from temporalzoom.models import Depth, Outputs
from temporalzoom.training.batches import Batch
from temporalzoom.training.losses import gaussian_nll

# The paper's linear penalty, from the first step on, drives tau to zero before the deep path has learned anything.
PENALTY_WARMUP = 0.3
# Values of depth, in prices; and what brings their squared errors to about the size of the other terms.
GAIN_LIMITS = (-3.0, 6.0)
VALUE_SCALE = 0.2


def depth_terms(
    outputs: Outputs,
    batch: Batch,
    options: TZNConfig,
    path_terms: Callable[[Outputs], Mapping[str, Tensor]],
    path_map: Callable[[Outputs], Tensor],
    progress: float,
) -> dict[str, Tensor]:
    """Weighted terms. path_terms: the loss terms of one path on its own; path_map: its loss by position, (B, T);
    progress: share of the training that is done."""
    depth = outputs.depth
    assert depth is not None and depth.shallow is not None
    terms = {"shallow": options.shallow_weight * _total(path_terms(depth.shallow))}
    if depth.deep is not None:
        terms["deep"] = options.deep_weight * _total(path_terms(depth.deep))
    if options.uncertainty and outputs.distances is not None:
        terms["uncertainty"] = options.uncertainty_weight * _uncertainty(outputs, depth, batch)
    if options.depth and options.supervision == "value" and depth.deep is not None:
        with torch.no_grad():
            gain = (path_map(depth.shallow) - path_map(depth.deep)) * depth.tried
        terms["depth"] = options.depth_weight * value_loss(depth, gain, batch.mask, options)
    if options.depth and options.supervision == "penalty":
        warm = min(progress / PENALTY_WARMUP, 1.0)
        terms["compute"] = warm * options.compute_weight * depth.tau[batch.mask].mean()
    if options.pruning:
        terms["prune"] = options.prune_weight * depth.importance[batch.mask].mean()
    return terms


def value_targets(gain: Tensor, tried: Tensor, mask: Tensor, share: float) -> Tensor:
    """What the depth predictor should say: how many times its price depth gains. (B, T) each.

    gain: the shallow path's loss minus the deep path's, zero where depth was not tried. The price is what the `share`
    most profitable positions gain at least, and no less than what depth changes on average. Linear in the gain, so that
    what is learned is its mean: the positions with the highest means are those that a budget is best spent on. Only
    what lies far outside is cut off, lest single positions shake the predictor.
    """
    sizes = gain[tried].abs()
    usual = (sizes.mean() if len(sizes) else gain.new_tensor(1.0)).clamp(min=1e-6)
    price = torch.maximum(torch.quantile(gain[mask], 1 - share), usual)
    return (gain / price).clamp(*GAIN_LIMITS)


def value_loss(depth: Depth, gain: Tensor, mask: Tensor, options: TZNConfig) -> Tensor:
    """Squared error between the depth predictor and the value of depth, where depth was tried.

    Positions that came in by lot stand for all those that did not.
    """
    target = value_targets(gain, depth.tried, mask, options.share)
    weight = torch.where(depth.active, 1.0, 1.0 / max(options.explore, 1e-3)) * depth.tried
    return (VALUE_SCALE * (depth.logits - target).square() * weight).sum() / weight.sum().clamp(min=1.0)


def _uncertainty(outputs: Outputs, depth: Depth, batch: Batch) -> Tensor:
    """Heteroscedastic Gaussian, mean over the valid positions (the paper's sum would swamp every other term)."""
    assert outputs.distances is not None and batch.distances is not None and batch.distance_weights is not None
    error = outputs.distances - batch.distances
    weights = batch.distance_weights * batch.mask.unsqueeze(-1)
    loss = gaussian_nll(error, depth.log_variance.unsqueeze(-1))
    return (loss * weights).sum() / weights.sum().clamp(min=1.0)


def _total(terms: Mapping[str, Tensor]) -> Tensor:
    return torch.stack(list(terms.values())).sum()
