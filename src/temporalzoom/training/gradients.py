"""How much the gradients of a depth predictor vary over a training: the paper's `sigma^2` of the gradient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn


class GradientVariance:
    """Variance over the steps of each parameter's gradient, then the mean over parameters.

    A checkpoint holds its `state`, so that a resumed training goes on with it.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        size = sum(parameter.numel() for parameter in self.parameters)
        self.steps, self.mean, self.squares = torch.zeros(()), torch.zeros(size), torch.zeros(size)

    def add(self) -> None:
        """Takes the gradients of one more step into account; none, where any of them is not finite."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        gradient = torch.cat([part.detach().flatten().float().cpu() for part in gradients])
        if not bool(gradient.isfinite().all()):
            return
        self.steps += 1
        change = gradient - self.mean  # Welford: no difference of two large numbers
        self.mean += change / self.steps
        self.squares += change * (gradient - self.mean)

    def summary(self) -> dict[str, float]:
        """depth_gradient_variance: as the paper has it; depth_gradient_noise: as a share of the mean square, from 0,
        all steps agree, to 1: it does not depend on how a loss is weighted."""
        if not len(self.mean) or float(self.steps) < 2:
            return {}
        variance = float((self.squares / (self.steps - 1)).mean())
        total = variance + float(self.mean.square().mean())
        return {"depth_gradient_variance": variance, "depth_gradient_noise": variance / total if total else 0.0}

    @property
    def state(self) -> dict[str, Tensor]:
        if not self.parameters:
            return {}
        return {"gradient_steps": self.steps, "gradient_mean": self.mean, "gradient_squares": self.squares}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """From what a checkpoint holds; one of an earlier version holds nothing of it."""
        if self.parameters and "gradient_steps" in state:
            self.steps, self.mean, self.squares = (state[name] for name in self.state)
