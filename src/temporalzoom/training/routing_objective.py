"""What networks learn that route positions to one of several depths: each depth's own loss, and how to choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from temporalzoom.config import ZoomSection
from temporalzoom.models import Outputs, Routing
from temporalzoom.models.routing import price_for


def routing_terms(
    routing: Routing,
    mask: Tensor,
    options: ZoomSection,
    path_terms: Callable[[Outputs], Mapping[str, Tensor]],
    path_map: Callable[[Outputs], Tensor],
    class_targets: Callable[[Outputs], Tensor],
) -> dict[str, Tensor]:
    """Terms without weights. path_terms: the loss terms of the outputs of one depth; path_map: their loss by position,
    (B, T); class_targets: what logits are to become, (B, T, C)."""
    paths, depths = routing.paths(), options.paper.depths
    deep = [torch.stack(list(path_terms(path).values())).sum() for path, n in zip(paths, depths, strict=True) if n]
    terms = {"deep": torch.stack(deep).mean()}
    kind = options.paper.allocation
    if kind in ("discrete", "reinforce"):
        with torch.no_grad():
            losses = torch.stack([path_map(path) for path in paths], -1)  # (B, T, K)
        if kind == "discrete":
            best = best_depths(losses[mask], losses.new_tensor(depths), options.share * max(depths))
            terms["depth"] = F.cross_entropy(routing.logits[mask], best)
        else:
            terms["depth"] = policy_loss(routing.logits[mask], routing.chosen[mask], losses[mask])
    if routing.temperatures is not None:
        terms["temperature"] = calibration_loss(paths, routing.temperatures, mask, class_targets)
    return terms


def best_depths(losses: Tensor, layers: Tensor, mean: float) -> Tensor:
    """Which of K depths is worth its price at each of N positions, at the price at which they have `mean` layers on
    average. losses: (N, K), layers: (K,) -> (N,)."""
    gains = losses[:, :1] - losses
    gains = gains / gains.abs().mean().clamp(min=1e-9)
    return (gains - price_for(gains, layers, mean, sampled=False) * layers).argmax(-1)


def policy_loss(policy: Tensor, chosen: Tensor, losses: Tensor) -> Tensor:
    """REINFORCE: its gradient is, in expectation over the samples, that of the expected loss, in units of what depth
    changes. policy: (N, K) logits; chosen: (N, K), one-hot samples of it; losses: (N, K), of every depth.

    The reward is what a position gains over the first depth. Baseline: the mean reward of all other positions, which
    does not depend on the sample.
    """
    gains = losses[:, :1] - losses
    reward = (gains * chosen).sum(-1) / gains.abs().mean().clamp(min=1e-9)
    count = len(reward)
    others = (reward.sum() - reward) / max(count - 1, 1) if count > 1 else torch.zeros_like(reward)
    log_policy = (policy.log_softmax(-1) * chosen).sum(-1)
    return -((reward - others).detach() * log_policy).mean()


def calibration_loss(
    paths: Sequence[Outputs], temperatures: Tensor, mask: Tensor, class_targets: Callable[[Outputs], Tensor]
) -> Tensor:
    """Teaches each exit's temperature, and nothing else: cross-entropy of logits that are held fixed."""
    losses = []
    for path, temperature in zip(paths, temperatures, strict=True):
        logits = path.logits.detach()[mask] / temperature
        losses.append(F.binary_cross_entropy_with_logits(logits, class_targets(path)[mask]))
    return torch.stack(losses).mean()
