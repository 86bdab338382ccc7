"""Instances with the same times are one place with several labels, not rivals."""

import torch

from temporalzoom.config import TrainingConfig
from temporalzoom.models import Outputs
from temporalzoom.training.batches import Batch
from temporalzoom.training.objective import assign, detection_terms


def class_loss(logits: torch.Tensor) -> float:
    batch = Batch(
        torch.zeros(1, 9, 2),
        torch.ones(1, 9, dtype=torch.bool),
        [torch.tensor([2.0, 2.0])],
        [torch.tensor([6.0, 6.0])],
        [torch.tensor([0, 2])],
    )
    outputs = Outputs(logits, torch.full((1, 9, 2), 2.0), torch.zeros(1, 9, 2))
    return float(detection_terms(outputs, assign(outputs, batch, TrainingConfig()), batch, TrainingConfig())["class"])


def test_both_labels_of_one_place_are_positive():
    right = torch.full((1, 9, 3), -20.0)
    right[0, 3:6, [0, 2]] = 20.0
    only_first = right.clone()
    only_first[0, 3:6, 2] = -20.0
    assert class_loss(right) < 1e-3 < class_loss(only_first)
