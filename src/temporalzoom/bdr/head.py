"""The head that predicts distance fields."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class DistanceHead(nn.Module):
    """An MLP applied at every position: `(..., T, width)` -> `(..., T, channels)` distances in grid units.

    The last layer starts near zero, so that an added head does not disturb a model that is already trained.
    With `variance=True` the head also predicts the log-variance of each distance and returns
    `(distances, log_variances)`, both `(..., T, channels)`; train it with `distance_nll`, use it in `refine_segments`.
    """

    def __init__(
        self, width: int, channels: int = 2, hidden: int | None = None, layers: int = 3, variance: bool = False
    ) -> None:
        super().__init__()
        if layers < 1:
            raise ValueError(f"a head has at least one layer, got {layers}")
        self.channels, self.variance = channels, variance
        widths = [width] + [hidden or width] * (layers - 1)
        body: list[nn.Module] = []
        for before, after in pairwise(widths):
            hidden_layer = nn.Linear(before, after)
            nn.init.xavier_uniform_(hidden_layer.weight)
            body += [hidden_layer, nn.ReLU()]
        self.body = nn.Sequential(*body)
        self.last = nn.Linear(widths[-1], channels * (2 if variance else 1))
        nn.init.normal_(self.last.weight, std=0.01)
        nn.init.zeros_(self.last.bias)
        # Untrained distances are off by several positions: variances that start at 1 would flood the encoder.
        nn.init.constant_(self.last.bias[channels:], 4.0)

    def forward(self, hidden: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        output: Tensor = self.last(self.body(hidden))
        if not self.variance:
            return output
        distances, log_variances = torch.split(output, self.channels, dim=-1)
        return distances, log_variances
