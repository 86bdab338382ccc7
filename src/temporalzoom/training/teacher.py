"""What a student with early exits learns from a trained `tzn`: how deep to go where, and what to say.

The paper's distillation: `L_TAL + 0.5 * policy + 0.1 * prediction`. It does not say what these two are. Here the policy
is a classifier of each position over the student's exits, matched to the teacher's depth by cross-entropy; predictions
are matched in classes, boxes and distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.config import Config, ZoomSection
from temporalzoom.config.networks import TAUGHT
from temporalzoom.datasets.samples import Split
from temporalzoom.errors import InputError
from temporalzoom.models import Outputs
from temporalzoom.models.tzn import TemporalZoom
from temporalzoom.runs.checkpoint import find_checkpoint, load_network, read_info
from temporalzoom.training.batches import Batch
from temporalzoom.training.losses import focal_loss, interval_diou

POLICY_WEIGHT, PREDICTION_WEIGHT = 0.5, 0.1  # the paper's lambda_tau and lambda_KD


def load_teacher(run: Path | None, config: Config, split: Split) -> nn.Module | None:
    """The network of a trained run, fixed, if it can teach the network of `config` on these recordings."""
    is_taught = isinstance(config.model, ZoomSection) and config.model.paper.allocation == TAUGHT
    if run is None:
        if is_taught:
            raise InputError(f"model.paper.allocation: {TAUGHT} learns from a trained network: use tzoom distill")
        return None
    if not is_taught:
        raise InputError(f"model.paper.allocation: a student of {run} must have {TAUGHT}")
    checkpoint = find_checkpoint(run)
    info = read_info(checkpoint)
    check_teacher(run, info.config)
    if split.samples[0].video is not None or info.video is not None:
        raise InputError(f"{run}: distillation needs features, not videos (data.videos)")
    if info.classes != split.classes:
        raise InputError(f"{run}: the teacher knows other classes than the recordings to learn from")
    if info.input_width != split.input_width:
        raise InputError(f"{run}: trained on {info.input_width} channels, the recordings have {split.input_width}")
    if info.config.model.levels != config.model.levels:
        raise InputError(f"model.levels: must be {info.config.model.levels}, that of the teacher {run}")
    network, _ = load_network(checkpoint, info)
    assert isinstance(network, TemporalZoom)
    return network.requires_grad_(False)


def check_teacher(run: Path, config: Config) -> None:
    """Only a network that decides how deep to go has a policy to teach."""
    model = config.model
    if not isinstance(model, ZoomSection) or model.paper.allocation != "tau" or not model.depth:
        raise InputError(f"{run}: a teacher must be a tzn that predicts where depth pays, this is {model.name}")
    if model.pruning and model.paper.protection == "oracle":
        raise InputError(f"{run}: a teacher that is told the true boundaries (model.paper.protection) is no teacher")


def teacher_terms(
    outputs: Outputs, taught: Outputs, batch: Batch, depths: Sequence[int], divisor: float, distance_weight: float
) -> dict[str, Tensor]:
    """Weighted terms. taught: outputs of the teacher on the same batch; divisor: number of positives."""
    assert outputs.depth is not None and outputs.depth.routing is not None and taught.depth is not None
    best = nearest_depths(taught.depth.tau * taught.depth.active, depths)
    policy = F.cross_entropy(outputs.depth.routing.logits[batch.mask], best[batch.mask])
    prediction = prediction_loss(outputs, taught, batch.mask, divisor, distance_weight)
    return {"policy": POLICY_WEIGHT * policy, "prediction": PREDICTION_WEIGHT * prediction}


def nearest_depths(tau: Tensor, depths: Sequence[int]) -> Tensor:
    """Which of K exits, as a share of all layers, is nearest to the teacher's depth; of two the shallower. With exits
    after 2, 4 and 6 layers what the teacher leaves shallow (tau below one half) takes the first. (...) -> (...)."""
    shares = tau.new_tensor(depths) / max(depths)
    return (tau.unsqueeze(-1) - shares).abs().argmin(-1)


def prediction_loss(
    outputs: Outputs, taught: Outputs, mask: Tensor, divisor: float, distance_weight: float = 1.0
) -> Tensor:
    """How far the outputs are from the teacher's: zero where they are equal. mask: (B, T).

    Classes by the focal loss with the teacher's probabilities as targets, boxes by distance IoU as far as the teacher
    sees anything there, both per positive as in the detection loss; distances by their mean absolute difference.
    """
    valid = mask if outputs.points is None else outputs.points.valid
    wanted = torch.sigmoid(taught.logits)
    classes = (focal_loss(outputs.logits, wanted, alpha=-1.0).sum(-1) * valid).sum()
    # A target between 0 and 1 leaves a cross-entropy of its own, but with the weight of how far apart the two are: 0.
    reach = (outputs.offsets[..., 0], outputs.offsets[..., 1], taught.offsets[..., 0], taught.offsets[..., 1])
    overlap = interval_diou(-reach[0], reach[1], -reach[2], reach[3])
    boxes = ((1 - overlap) * wanted.amax(-1) * valid).sum()
    total = (classes + boxes) / divisor
    if outputs.distances is not None and taught.distances is not None:
        apart = (outputs.distances - taught.distances).abs().mean(-1) * mask
        total = total + distance_weight * apart.sum() / mask.sum().clamp(min=1)
    return total
