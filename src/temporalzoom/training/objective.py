"""The training objective: `L = L_TAL + L_BDR`, term by term, and what adaptive depth adds to it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from temporalzoom.bdr import distance_loss, distance_nll
from temporalzoom.config import BDRConfig, Config, TrainingConfig
from temporalzoom.models import Outputs
from temporalzoom.training.assignment import assign_center, assign_hungarian
from temporalzoom.training.batches import Batch
from temporalzoom.training.depth_objective import depth_terms
from temporalzoom.training.losses import focal_loss, gaussian_nll, interval_giou

# Positions this close to a boundary decide where the distance field crosses zero.
CROSSING = 1.0
LOST = 1.5


def objective(outputs: Outputs, batch: Batch, config: Config, progress: float = 1.0) -> dict[str, Tensor]:
    """All terms, weighted; their sum is what training minimises. progress: share of the training that is done."""
    matches = assign(outputs, batch, config.training)

    def path_terms(path: Outputs) -> dict[str, Tensor]:
        return detection_terms(path, matches, batch, config.training) | distance_terms(path, batch, config.bdr)

    terms = path_terms(outputs)
    if outputs.depth is not None:

        def path_map(path: Outputs) -> Tensor:
            return position_loss(path, matches, batch, config)

        terms |= depth_terms(outputs, batch, config.tzn, path_terms, path_map, progress)
    return terms


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


def detection_terms(outputs: Outputs, matches: Tensor, batch: Batch, training: TrainingConfig) -> dict[str, Tensor]:
    """L_TAL: focal on classes, L1 and GIoU on the boxes of positive positions, per positive. matches: (B, T)."""
    positives = max(int((matches >= 0).sum()), 1)
    maps = detection_maps(outputs, matches, batch, training)
    return {name: values.sum() / positives for name, values in maps.items()}


def detection_maps(outputs: Outputs, matches: Tensor, batch: Batch, training: TrainingConfig) -> dict[str, Tensor]:
    """The terms of L_TAL position by position: (B, T) for the classes, (P,) of the positive positions for the boxes."""
    sequence, position = (matches >= 0).nonzero(as_tuple=True)
    offset = torch.tensor([0, *(len(s) for s in batch.starts)]).cumsum(0)[:-1]
    instance = matches[sequence, position] + offset[sequence]
    starts, ends = torch.cat(batch.starts), torch.cat(batch.ends)

    targets = torch.zeros_like(outputs.logits)
    targets[sequence, position] = _label_sets(batch, outputs.logits.shape[-1])[instance]
    focal = focal_loss(outputs.logits, targets, training.focal_alpha, training.focal_gamma).sum(-1)

    offsets = outputs.offsets[sequence, position]
    true_offsets = torch.stack((position - starts[instance], ends[instance] - position), -1)
    # Relative to the instance's length: an error of one position matters more to a short instance.
    duration = (ends[instance] - starts[instance]).clamp(min=1.0)
    l1 = F.l1_loss(offsets, true_offsets, reduction="none").sum(-1) / duration
    giou = interval_giou(position - offsets[:, 0], position + offsets[:, 1], starts[instance], ends[instance])
    spread = gaussian_nll(offsets - true_offsets, outputs.offset_log_variance[sequence, position]).mean(-1)
    return {
        "class": focal * batch.mask,
        "l1": training.l1_weight * l1,
        "giou": training.giou_weight * (1 - giou),
        "box_variance": training.box_variance_weight * spread,
    }


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


def position_loss(outputs: Outputs, matches: Tensor, batch: Batch, config: Config) -> Tensor:
    """How much the detections suffer from what a path says at each position, (B, T).

    That is not the training loss. Classes and boxes count where they become segments. A distance counts where its field
    crosses zero, next to a boundary, because there it moves the end of a segment; the same error farther away moves
    nothing.
    """
    maps = detection_maps(outputs, matches, batch, config.training)
    total = maps["class"].clone()
    total[matches >= 0] += maps["l1"] + maps["giou"]
    if config.bdr.enabled:
        assert outputs.distances is not None and batch.distances is not None
        # Beyond a position or two a boundary is lost: by how much makes no difference.
        error = (outputs.distances - batch.distances).abs().clamp(max=LOST) * (batch.distances.abs() <= CROSSING)
        total = total + config.tzn.boundary_value * error.sum(-1) * batch.mask
    return total


def _label_sets(batch: Batch, classes: int) -> Tensor:
    """(N, C): the labels of each instance and of those with exactly its times (a dive off a cliff is two classes)."""
    sets = []
    for starts, ends, labels in zip(batch.starts, batch.ends, batch.labels, strict=True):
        same = (starts[:, None] == starts) & (ends[:, None] == ends)
        sets.append((same.float() @ F.one_hot(labels, classes).float()).clamp(max=1.0))
    return torch.cat(sets)
