"""Which position answers for which instance."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from temporalzoom.models import Points
from temporalzoom.training.losses import interval_giou


def assign_center(starts: Tensor, ends: Tensor, length: int, radius: float = 1.5, fraction: float = 0.0) -> Tensor:
    """Positions near an instance's centre, and inside it, answer for it; the shortest instance wins.

    Near: within `radius` positions, or within `fraction` of the instance's length. In a pyramid the radius counts the
    strides of a level, and long instances belong to coarse levels; at a single scale, the fraction stands for that.
    starts, ends: (N,) in grid units -> (T,) index of the instance, -1 = background. An instance too short to hold a
    position gets the nearest one.
    """
    nobody = torch.full((length,), -1, dtype=torch.long, device=starts.device)
    if len(starts) == 0:
        return nobody
    positions = torch.arange(length, dtype=starts.dtype, device=starts.device)[:, None]
    centres = (starts + ends) / 2
    reach = (fraction * (ends - starts)).clamp(min=radius)
    inside = (positions >= starts) & (positions <= ends) & ((positions - centres).abs() <= reach)
    nearest = centres.round().clamp(0, length - 1).long()
    inside[nearest, torch.arange(len(starts), device=starts.device)] = True
    durations = torch.where(inside, (ends - starts)[None, :], torch.inf)
    shortest, instance = durations.min(dim=1)
    return torch.where(shortest.isfinite(), instance, nobody)


def assign_points(starts: Tensor, ends: Tensor, points: Points, radius: float = 1.5) -> Tensor:
    """The field's rule for pyramids: a point answers for an instance that it is inside of, near its centre, and whose
    farther end is within the range of the point's level; the shortest such instance wins.

    starts, ends: (N,) in grid units; near: within `radius` strides of the level -> (P,) index, -1 = background. An
    instance that no point answers for is not learned.
    """
    nobody = torch.full(points.positions.shape, -1, dtype=torch.long, device=starts.device)
    if len(starts) == 0:
        return nobody
    positions, reach = points.positions[:, None], radius * points.strides[:, None]
    centres = (starts + ends) / 2
    low, high = torch.maximum(starts, centres - reach), torch.minimum(ends, centres + reach)
    farther = torch.maximum(positions - starts, ends - positions)
    answers = (positions > low) & (positions < high)
    answers &= (farther >= points.shortest[:, None]) & (farther <= points.longest[:, None])
    shortest, instance = torch.where(answers, ends - starts, torch.inf).min(dim=1)
    return torch.where(shortest.isfinite(), instance, nobody)


@torch.no_grad()
def assign_hungarian(
    logits: Tensor,
    offsets: Tensor,
    mask: Tensor,
    starts: Tensor,
    ends: Tensor,
    labels: Tensor,
) -> Tensor:
    """One-to-one assignment of least total cost (class, L1, GIoU), as in DETR.

    logits: (T, C), offsets: (T, 2), mask: (T,), starts, ends, labels: (N,) -> (T,) index of the
    instance, -1 = background.
    """
    length = len(mask)
    matches = torch.full((length,), -1, dtype=torch.long, device=mask.device)
    valid = mask.nonzero().squeeze(1)
    if len(starts) == 0 or len(valid) == 0:
        return matches
    positions = torch.arange(length, dtype=offsets.dtype, device=offsets.device)[valid]
    predicted_starts, predicted_ends = positions - offsets[valid, 0], positions + offsets[valid, 1]
    durations = (ends - starts).clamp(min=1.0)
    l1 = (predicted_starts[:, None] - starts).abs() + (predicted_ends[:, None] - ends).abs()
    giou = interval_giou(predicted_starts[:, None], predicted_ends[:, None], starts[None], ends[None])
    cost = -logits[valid][:, labels].sigmoid() + l1 / durations - giou
    rows, columns = linear_sum_assignment(np.nan_to_num(cost.cpu().double().numpy(), posinf=1e6, neginf=-1e6))
    taken, instances = (torch.as_tensor(indices, device=mask.device) for indices in (rows, columns))
    matches[valid[taken]] = instances
    return matches
