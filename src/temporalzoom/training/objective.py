"""The training objective: L = L_TAL + L_BDR (+ the terms that teach the predicted variances)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from temporalzoom.bdr import distance_loss, distance_nll
from temporalzoom.config import BDRConfig, TrainingConfig
from temporalzoom.models import Outputs
from temporalzoom.training.assignment import assign_center, assign_hungarian
from temporalzoom.training.batches import Batch
from temporalzoom.training.losses import focal_loss, gaussian_nll, interval_giou


def assign(outputs: Outputs, batch: Batch, training: TrainingConfig) -> Tensor:
    """(B, T): index of the instance that a position answers for, -1 = background."""
    rows = []
    for row in range(len(batch.starts)):
        starts, ends, labels = batch.starts[row], batch.ends[row], batch.labels[row]
        mask = batch.mask[row]
        matches = torch.full((len(mask),), -1, dtype=torch.long)
        if training.assignment in ("center", "both"):
            valid = int(mask.sum())
            matches[:valid] = assign_center(starts, ends, valid, training.center_radius, training.center_fraction)
        if training.assignment in ("hungarian", "both"):
            one_to_one = assign_hungarian(
                outputs.logits[row].detach().float(), outputs.offsets[row].detach().float(), mask, starts, ends, labels
            )
            matches = torch.where(one_to_one >= 0, one_to_one, matches)
        rows.append(matches)
    return torch.stack(rows)


def detection_terms(outputs: Outputs, batch: Batch, training: TrainingConfig) -> dict[str, Tensor]:
    """L_TAL, term by term: focal on classes, L1 and GIoU on the boxes of positive positions."""
    matches = assign(outputs, batch, training)
    sequence, position = (matches >= 0).nonzero(as_tuple=True)
    offset = torch.tensor([0, *(len(s) for s in batch.starts)]).cumsum(0)[:-1]
    instance = matches[sequence, position] + offset[sequence]
    starts, ends = torch.cat(batch.starts), torch.cat(batch.ends)
    positives = max(len(instance), 1)

    targets = torch.zeros_like(outputs.logits)
    targets[sequence, position] = _label_sets(batch, outputs.logits.shape[-1])[instance]
    focal = focal_loss(outputs.logits, targets, training.focal_alpha, training.focal_gamma)
    terms = {"class": (focal * batch.mask.unsqueeze(-1)).sum() / positives}

    offsets = outputs.offsets[sequence, position]
    true_offsets = torch.stack((position - starts[instance], ends[instance] - position), -1)
    # Relative to the instance's length: an error of one position matters more to a short instance.
    duration = (ends[instance] - starts[instance]).clamp(min=1.0)
    l1 = F.l1_loss(offsets, true_offsets, reduction="none").sum(-1) / duration
    giou = interval_giou(position - offsets[:, 0], position + offsets[:, 1], starts[instance], ends[instance])
    terms["l1"] = training.l1_weight * l1.sum() / positives
    terms["giou"] = training.giou_weight * (1 - giou).sum() / positives
    spread = gaussian_nll(offsets - true_offsets, outputs.offset_log_variance[sequence, position])
    terms["box_variance"] = training.box_variance_weight * spread.mean(-1).sum() / positives
    return terms


def _label_sets(batch: Batch, classes: int) -> Tensor:
    """(N, C): the labels of each instance and of those with exactly its times (a dive off a cliff is two classes)."""
    sets = []
    for starts, ends, labels in zip(batch.starts, batch.ends, batch.labels, strict=True):
        same = (starts[:, None] == starts) & (ends[:, None] == ends)
        sets.append((same.float() @ F.one_hot(labels, classes).float()).clamp(max=1.0))
    return torch.cat(sets)


def distance_terms(outputs: Outputs, batch: Batch, bdr: BDRConfig) -> dict[str, Tensor]:
    """L_BDR, and the term that teaches the predicted variance of the distances."""
    if not bdr.enabled:
        return {}
    assert outputs.distances is not None and outputs.distance_log_variance is not None
    assert batch.distances is not None and batch.distance_weights is not None
    distance = distance_loss(
        outputs.distances, batch.distances, batch.mask, alpha=bdr.alpha, weights=batch.distance_weights
    )
    spread = distance_nll(
        outputs.distances,
        outputs.distance_log_variance,
        batch.distances,
        batch.mask,
        weights=batch.distance_weights,
        detach_mean=True,
    )
    return {"distance": bdr.weight * distance, "distance_variance": bdr.variance_weight * spread}


def objective(outputs: Outputs, batch: Batch, training: TrainingConfig, bdr: BDRConfig) -> dict[str, Tensor]:
    """All terms, weighted; their sum is what training minimises."""
    return detection_terms(outputs, batch, training) | distance_terms(outputs, batch, bdr)
