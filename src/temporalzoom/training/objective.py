"""The training objective: `L = L_TAL + L_BDR`, term by term, and what adaptive depth adds to it."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from temporalzoom.bdr import distance_loss, distance_nll
from temporalzoom.config import BDRConfig, Config, TrainingConfig, adaptive_depth
from temporalzoom.models import Outputs
from temporalzoom.models.depth import crossing_weight
from temporalzoom.training.assignment import assign_center, assign_hungarian, assign_points
from temporalzoom.training.batches import Batch
from temporalzoom.training.bmn_objective import bmn_terms
from temporalzoom.training.depth_objective import depth_terms
from temporalzoom.training.losses import boundary_loss, focal_loss, gaussian_nll, interval_diou, interval_giou
from temporalzoom.training.teacher import teacher_terms

# In positions. Beyond this error a boundary is lost: by how much makes no difference.
LOST = 1.5
# What one position of error in a distance beside a boundary counts for the value of depth.
BOUNDARY_VALUE = 0.5
# Weights of what teaches predicted variances.
VARIANCE_WEIGHT = 0.1
# A crossing of the shallow field belongs to a boundary that is nearer than this.
BELONGS = 3.0


class RunningPositives:
    """How many positives a batch usually has: losses per that number do not jump with the batch.

    mean: () float32, which a checkpoint holds, so that a resumed training goes on with it.
    """

    def __init__(self, initial: float) -> None:
        self.mean = torch.tensor(float(initial))

    def __call__(self, count: float) -> float:
        """Takes the count of one more batch into account -> the running mean."""
        self.mean.mul_(0.9).add_(0.1 * max(count, 1))
        return float(self.mean)


def objective(
    outputs: Outputs,
    batch: Batch,
    config: Config,
    progress: float = 1.0,
    positives: Callable[[float], float] | None = None,
    taught: Outputs | None = None,
) -> dict[str, Tensor]:
    """All terms, weighted; their sum is what training minimises.

    progress: share of the training that is done. positives: from the number of positives in the batch to what the
    losses are divided by; None: that number. taught: what the teacher of a student says to the batch.
    """
    if outputs.maps is not None:
        return bmn_terms(outputs, batch) | distance_terms(outputs, batch, config.bdr)
    matches = assign(outputs, batch, config.training)
    divisor = None if positives is None else positives(count_positives(matches, batch))

    def path_terms(path: Outputs) -> dict[str, Tensor]:
        rows = matches[:, : path.logits.shape[1]]  # a single path has the finest level only
        terms = detection_terms(path, rows, batch, config.training, divisor)
        return terms | distance_terms(path, batch, config.bdr)

    terms = path_terms(outputs)
    if outputs.depth is not None:
        crossings = read_crossings(outputs.depth.shallow, batch)

        def path_map(path: Outputs) -> Tensor:
            return position_loss(path, matches[:, : path.logits.shape[1]], batch, config, crossings)

        def path_targets(path: Outputs) -> Tensor:
            return class_targets(path, matches[:, : path.logits.shape[1]], batch)

        options = adaptive_depth(config.model)
        assert options is not None  # a network without these has no depth to learn
        terms |= depth_terms(outputs, batch, options, path_terms, path_map, progress, matches, path_targets)
        if taught is not None:
            count = divisor or max(count_positives(matches, batch), 1.0)
            terms |= teacher_terms(outputs, taught, batch, options.paper.depths, count, config.bdr.weight)
    return terms


def assign(outputs: Outputs, batch: Batch, training: TrainingConfig) -> Tensor:
    """(B, N): index of the instance that a position (or point) answers for, -1 = background."""
    rows = []
    points = outputs.points
    for row in range(len(batch.starts)):
        starts, ends, labels = batch.starts[row], batch.ends[row], batch.labels[row]
        if points is not None:
            matches = assign_points(starts, ends, points)
            rows.append(torch.where(points.valid[row], matches, -1))
            continue
        mask = batch.mask[row]
        matches = torch.full((len(mask),), -1, dtype=torch.long, device=mask.device)
        if training.assignment in ("center", "both"):
            valid = int(mask.sum())
            matches[:valid] = assign_center(starts, ends, valid)
        if training.assignment in ("hungarian", "both"):
            one_to_one = assign_hungarian(
                outputs.logits[row].detach().float(), outputs.offsets[row].detach().float(), mask, starts, ends, labels
            )
            matches = torch.where(one_to_one >= 0, one_to_one, matches)
        rows.append(matches)
    return torch.stack(rows)


def count_positives(matches: Tensor, batch: Batch) -> float:
    """How many positions (or points) answer for an instance; each counts as its score. matches: (B, N)."""
    sequence, row = (matches >= 0).nonzero(as_tuple=True)
    return float(_instance_scores(batch)[_instances(matches, batch)[sequence, row]].sum())


def _instances(matches: Tensor, batch: Batch) -> Tensor:
    """(B, N): indices of a sequence's own instances as those of all instances of the batch. Only where matched."""
    offset = torch.tensor([0, *(len(s) for s in batch.starts)], device=matches.device).cumsum(0)[:-1]
    return matches + offset[:, None]


def _instance_scores(batch: Batch) -> Tensor:
    """(M,) of all instances of a batch."""
    if batch.scores:
        return torch.cat(batch.scores)
    return torch.ones(sum(map(len, batch.starts)), device=batch.mask.device)


def detection_terms(
    outputs: Outputs, matches: Tensor, batch: Batch, training: TrainingConfig, divisor: float | None = None
) -> dict[str, Tensor]:
    """L_TAL, per positive: the sums of `detection_maps` over `divisor`, by default the number of positives."""
    divisor = divisor or max(count_positives(matches, batch), 1.0)
    maps = detection_maps(outputs, matches, batch, training)
    return {name: values.sum() / divisor for name, values in maps.items()}


def detection_maps(outputs: Outputs, matches: Tensor, batch: Batch, training: TrainingConfig) -> dict[str, Tensor]:
    """The terms of L_TAL, focal on classes and the losses of boxes: (B, N) for the classes, (P,) of the positive
    positions for the boxes. matches: (B, N)."""
    sequence, row = (matches >= 0).nonzero(as_tuple=True)
    instance = _instances(matches, batch)[sequence, row]
    certain = _instance_scores(batch)[instance]  # of boxes: what may be no instance teaches less about ends
    starts, ends = torch.cat(batch.starts)[instance], torch.cat(batch.ends)[instance]
    position = row if outputs.points is None else outputs.points.positions[row]
    offsets = outputs.boxes(sequence, row, torch.cat(batch.labels)[instance])
    box = (position - offsets[:, 0], position + offsets[:, 1], starts, ends)

    targets = class_targets(outputs, matches, batch)
    focal = focal_loss(outputs.logits, targets, training.focal_alpha)
    if training.quality_power:
        # As a weight only: its gradient would make boxes worse where classes are hard.
        quality = interval_giou(*box).detach().clamp(min=1e-6) ** training.quality_power
        weight = torch.ones_like(focal)
        weight[sequence, row] = torch.where(targets[sequence, row] > 0, quality[:, None], 1.0)
        focal = focal * weight
    maps = {"class": focal.sum(-1) * (batch.mask if outputs.points is None else outputs.points.valid)}

    true_offsets = torch.stack((position - starts, ends - position), -1)
    if training.box_loss == "diou":
        maps["diou"] = 1 - interval_diou(*box)
    else:
        # Relative to the instance's length: an error of one position matters more to a short instance.
        l1 = F.l1_loss(offsets, true_offsets, reduction="none").sum(-1) / (ends - starts).clamp(min=1.0)
        maps["l1"] = l1
        maps["giou"] = 1 - interval_giou(*box)
    if outputs.offset_log_variance is not None:
        spread = gaussian_nll(offsets - true_offsets, outputs.offset_log_variance[sequence, row]).mean(-1)
        maps["box_variance"] = VARIANCE_WEIGHT * spread
    return {name: values if name == "class" else values * certain for name, values in maps.items()}


def class_targets(outputs: Outputs, matches: Tensor, batch: Batch) -> Tensor:
    """What the class scores are to become, (B, N, C). matches: (B, N)."""
    sequence, row = (matches >= 0).nonzero(as_tuple=True)
    targets = torch.zeros_like(outputs.logits)
    targets[sequence, row] = _label_sets(batch, targets.shape[-1])[_instances(matches, batch)[sequence, row]]
    return targets


def distance_terms(outputs: Outputs, batch: Batch, bdr: BDRConfig) -> dict[str, Tensor]:
    """L_BDR, and the term that teaches the predicted variance of the distances; of a classifier of boundaries, its
    own."""
    if not bdr.enabled:
        return {}
    assert batch.distances is not None and batch.distance_weights is not None
    terms: dict[str, Tensor] = {}
    if outputs.boundary_logits is not None:
        valid = batch.mask.unsqueeze(-1) & (batch.distance_weights > 0)
        gamma = 0.0 if bdr.loss == "bce" else 2.0
        loss = boundary_loss(outputs.boundary_logits, batch.distances, valid, gamma, bdr.radius)
        terms["boundary"] = bdr.weight * loss
    if outputs.distances is None:
        return terms
    assert outputs.distance_log_variance is not None
    distance = distance_loss(outputs.distances, batch.distances, batch.mask, weights=batch.distance_weights)
    spread = distance_nll(
        outputs.distances,
        outputs.distance_log_variance,
        batch.distances,
        batch.mask,
        weights=batch.distance_weights,
        detach_mean=True,
    )
    if outputs.level_distances is not None:
        distance = multiscale_distance_loss(outputs.level_distances, batch, bdr)
    return terms | {"distance": bdr.weight * distance, "distance_variance": VARIANCE_WEIGHT * spread}


def multiscale_distance_loss(level_distances: Tensor, batch: Batch, bdr: BDRConfig) -> Tensor:
    """The BDR loss of every level, with its weight. level_distances: (B, N, K), level after level."""
    total, first = level_distances.new_zeros(()), 0
    for level in batch.levels:
        last = first + level.mask.shape[1]
        loss = distance_loss(level_distances[:, first:last], level.distances, level.mask, weights=level.weights)
        weight = {"one": 1.0, "sqrt": level.scale**-0.5, "inverse": 1 / level.scale}[bdr.scales]
        total, first = total + weight * loss, last
    return total


def read_crossings(shallow: Outputs | None, batch: Batch) -> Tensor | None:
    """How much a distance counts for where the ends of segments move to, (B, T, K) from 0 to 1; None without BDR.

    It does beside a boundary, and where the shallow path takes that boundary to be: there depth can move it to its
    place. Where the shallow path sees one and there is none, no segment ends: depth would repair what nobody reads.
    """
    if shallow is None or shallow.distances is None or batch.distances is None:
        return None
    taken = crossing_weight(shallow.distances.detach()) * (batch.distances.abs() < BELONGS)
    return torch.maximum(crossing_weight(batch.distances), taken)


def position_loss(
    outputs: Outputs, matches: Tensor, batch: Batch, config: Config, crossings: Tensor | None = None
) -> Tensor:
    """How much the detections suffer from what a path says at each position, (B, T).

    That is not the training loss. Classes and boxes count where they become segments. A distance counts where its field
    is read, at `crossings`, because there it moves the end of a segment; the same error farther away moves nothing.
    """
    maps = detection_maps(outputs, matches, batch, config.training)
    total = maps["class"].clone()
    total[matches >= 0] += sum(maps[name] for name in ("l1", "giou", "diou") if name in maps)
    if crossings is not None:
        assert outputs.distances is not None and batch.distances is not None
        error = (outputs.distances - batch.distances).abs().clamp(max=LOST) * crossings
        total = total + BOUNDARY_VALUE * error.sum(-1) * batch.mask
    return total


def _label_sets(batch: Batch, classes: int) -> Tensor:
    """(N, C): the scores of the labels of each instance, and of those with exactly its times (a dive off a cliff is two
    classes)."""
    sets = []
    scores = _instance_scores(batch).split([len(starts) for starts in batch.starts])
    for starts, ends, labels, sure in zip(batch.starts, batch.ends, batch.labels, scores, strict=True):
        same = (starts[:, None] == starts) & (ends[:, None] == ends)
        sets.append((same.float() @ (F.one_hot(labels, classes) * sure[:, None])).clamp(max=1.0))
    return torch.cat(sets)
