"""From tokens to raw outputs: class logits, box offsets, boundary distances."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from temporalzoom.bdr import DistanceHead
from temporalzoom.models.outputs import Outputs


def mlp(width: int, bias: list[float], layers: int = 3) -> nn.Sequential:
    """`layers` linear layers with GELU between them; outputs, one per bias, start near the given biases."""
    parts: list[nn.Module] = []
    hidden_width = width // 2  # a full-width head at every position would cost a sixth of a transformer layer each
    for before in [width, *[hidden_width] * (layers - 2)]:
        hidden = nn.Linear(before, hidden_width)
        nn.init.xavier_uniform_(hidden.weight)
        parts += [hidden, nn.GELU()]
    last = nn.Linear(hidden_width, len(bias))
    nn.init.normal_(last.weight, std=0.01)
    with torch.no_grad():
        last.bias.copy_(torch.tensor(bias))
    return nn.Sequential(*parts, last)


class Heads(nn.Module):
    """The three heads: classes, box, distance (optional). Tokens (B, T, D) -> Outputs."""

    def __init__(
        self, width: int, classes: int, distance_channels: int | None, prior: float = 0.01, levels: int = 1
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.classes = mlp(width, [-math.log((1 - prior) / prior)] * classes)  # focal loss: instances are rare
        # Lengths span two orders of magnitude: the box head predicts the logarithm of the offsets, from about 7
        # positions on, and the logarithm of their variance, from "off by several positions" on. With several levels,
        # this is the one of the shortest instances.
        self.box = mlp(width, [2.0, 2.0, 4.0, 4.0] if levels == 1 else [0.7, 0.7, 1.0, 1.0])
        self.distance = DistanceHead(width, distance_channels, width // 2, variance=True) if distance_channels else None

    def forward(self, tokens: Tensor) -> Outputs:
        tokens = self.norm(tokens)
        box = self.box(tokens)
        offsets = torch.exp(box[..., :2].clamp(max=10.0))
        outputs = Outputs(self.classes(tokens), offsets, box[..., 2:])
        if self.distance is not None:
            outputs.distances, outputs.distance_log_variance = self.distance(tokens)
        return outputs
