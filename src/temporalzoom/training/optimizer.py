"""AdamW, its schedule, and the moving average of the weights."""

from __future__ import annotations

import math

import torch
from torch import nn

from temporalzoom.config import TrainingConfig


def build_optimizer(model: nn.Module, training: TrainingConfig) -> torch.optim.AdamW:
    """Weight decay on the matrices of linear layers and convolutions only: none on norms and biases of any kind."""
    parameters = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    decayed = [p for name, p in parameters if name.endswith("weight") and p.ndim > 1]
    plain = [p for name, p in parameters if not (name.endswith("weight") and p.ndim > 1)]
    groups = [{"params": decayed, "weight_decay": training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=training.betas)


def learning_rate(step: int, training: TrainingConfig) -> float:
    """Linear warm-up, then cosine to zero."""
    if step < training.warmup_steps:
        return training.learning_rate * (step + 1) / training.warmup_steps
    progress = (step - training.warmup_steps) / max(training.steps - training.warmup_steps, 1)
    return training.learning_rate * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


@torch.no_grad()
def update_average(average: nn.Module, model: nn.Module, step: int, decay: float) -> None:
    """Exponential moving average of the weights; young averages follow faster."""
    decay = min(decay, (1 + step) / (10 + step))
    for slow, fast in zip(average.state_dict().values(), model.state_dict().values(), strict=True):
        if slow.is_floating_point():
            slow.lerp_(fast, 1 - decay)
        else:
            slow.copy_(fast)
