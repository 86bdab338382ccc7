"""Losses on distance fields: pure functions, padding masked, means over valid positions."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .targets import jump_mask


class DistanceLossTerms(NamedTuple):
    """The two terms of the BDR loss, scalars, before `alpha`."""

    regression: Tensor
    slope: Tensor


def distance_loss(
    predicted: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    *,
    alpha: float = 0.1,
    weights: Tensor | None = None,
    target_jumps: Tensor | None = None,
) -> Tensor:
    """The BDR loss: `mean |predicted - target| + alpha * mean max(0, |step| - 1)^2`, a scalar.

    predicted, target: (B, T, K); mask: (B, T) bool, True = valid, None = all; weights: broadcastable to (B, T, K);
    target_jumps: (B, T-1, K) bool, by default `jump_mask(target)`.

    The means run over all valid positions (and over all steps between two valid ones) of the batch together, so every
    position counts the same however sequences are batched; for one sequence they are the paper's 1/T and 1/(T-1).
    Nothing valid gives 0, with a (zero) gradient.
    """
    terms = distance_loss_terms(predicted, target, mask, weights=weights, target_jumps=target_jumps)
    return terms.regression + alpha * terms.slope


def distance_loss_terms(
    predicted: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    *,
    weights: Tensor | None = None,
    target_jumps: Tensor | None = None,
) -> DistanceLossTerms:
    """The two terms of `distance_loss` by themselves; same arguments.

    The slope term limits steps to the slope 1 of a distance field, except where the target itself jumps. (The paper's
    appendix has `||gradient||^2` instead, which would punish the very slope we want.)
    """
    predicted, target, valid = _aligned(predicted, target, mask)
    regression = _weighted_mean((predicted - target).abs(), valid, weights)

    steps = valid[..., 1:, :] & valid[..., :-1, :]
    jumps = jump_mask(target) if target_jumps is None else target_jumps
    excess = (predicted.diff(dim=-2).abs() - 1).clamp(min=0).masked_fill(jumps, 0.0)
    return DistanceLossTerms(regression, _weighted_mean(excess.square(), steps, None))


def distance_nll(
    predicted: Tensor,
    log_variance: Tensor,
    target: Tensor,
    mask: Tensor | None = None,
    *,
    weights: Tensor | None = None,
    detach_mean: bool = False,
    log_variance_range: tuple[float, float] = (-8.0, 8.0),
) -> Tensor:
    """Gaussian negative log-likelihood (without its constant) of the target: a scalar.

    predicted, log_variance, target: (B, T, K); mask, weights as in `distance_loss`. `detach_mean` trains the variance
    only and leaves the distances to `distance_loss`; else positions of high variance hardly learn their distance.
    """
    mean, target, valid = _aligned(predicted.detach() if detach_mean else predicted, target, mask)
    log_variance = log_variance.to(mean.dtype).masked_fill(~valid, 0.0).clamp(*log_variance_range)
    return _weighted_mean(0.5 * (log_variance + (mean - target).square() * torch.exp(-log_variance)), valid, weights)


def _aligned(predicted: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Both fields in the wider of their types and zero in the padding (which may hold NaN), and validity (B, T, K)."""
    if predicted.shape != target.shape:
        raise ValueError(f"predicted {tuple(predicted.shape)} and target {tuple(target.shape)} differ in shape")
    if mask is None:
        mask = torch.ones(predicted.shape[:-1], dtype=torch.bool, device=predicted.device)
    if mask.shape != predicted.shape[:-1] or mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool {tuple(predicted.shape[:-1])}, got {mask.dtype} {tuple(mask.shape)}")
    valid = mask.unsqueeze(-1).expand_as(predicted)
    dtype = torch.promote_types(predicted.dtype, target.dtype)  # half-precision predictions are compared in float32
    return predicted.to(dtype).masked_fill(~valid, 0.0), target.to(dtype).masked_fill(~valid, 0.0), valid


def _weighted_mean(values: Tensor, valid: Tensor, weights: Tensor | None) -> Tensor:
    """`sum(w * values) / sum(w)` over valid entries, 0 if there are none."""
    weight = valid.to(values.dtype)
    if weights is not None:
        weight = weights.to(values.dtype).expand_as(values).masked_fill(~valid, 0.0)
    total = weight.sum()
    return (weight * values).sum() / torch.where(total > 0, total, 1.0)
