"""From tokens to raw outputs: class logits, box offsets, boundary distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from temporalzoom.bdr import DistanceHead


@dataclass
class Outputs:
    """Raw outputs of a detector, in grid units, one row per position.

    logits: (B, T, C); offsets: (B, T, 2), distances from the position back to the start and on to the end, >= 0;
    offset_log_variance: (B, T, 2); distances and distance_log_variance: (B, T, K), None without BDR.
    """

    logits: Tensor
    offsets: Tensor
    offset_log_variance: Tensor
    distances: Tensor | None = None
    distance_log_variance: Tensor | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> Outputs:
        """The same outputs with `function` applied to every tensor."""
        columns = {name: None if tensor is None else function(tensor) for name, tensor in vars(self).items()}
        return Outputs(**columns)  # type: ignore[arg-type]

    @classmethod
    def concatenate(cls, parts: Sequence[Outputs]) -> Outputs:
        """Along the first dimension, tensor by tensor."""
        columns = {name: [getattr(part, name) for part in parts] for name in vars(parts[0])}
        joined = {name: None if column[0] is None else torch.cat(column) for name, column in columns.items()}
        return cls(**joined)  # type: ignore[arg-type]


def mlp(width: int, bias: list[float], layers: int = 3) -> nn.Sequential:
    """`layers` linear layers with GELU between them; outputs, one per bias, start near the given biases."""
    parts: list[nn.Module] = []
    for _ in range(layers - 1):
        hidden = nn.Linear(width, width)
        nn.init.xavier_uniform_(hidden.weight)
        parts += [hidden, nn.GELU()]
    last = nn.Linear(width, len(bias))
    nn.init.normal_(last.weight, std=0.01)
    with torch.no_grad():
        last.bias.copy_(torch.tensor(bias))
    return nn.Sequential(*parts, last)


class Heads(nn.Module):
    """The three heads: classes, box, distance (optional). Tokens (B, T, D) -> Outputs."""

    def __init__(self, width: int, classes: int, distance_channels: int | None, prior: float = 0.01) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.classes = mlp(width, [-math.log((1 - prior) / prior)] * classes)  # focal loss: instances are rare
        # Lengths span two orders of magnitude: the box head predicts the logarithm of the offsets, from about 7
        # positions on, and the logarithm of their variance, from "off by several positions" on.
        self.box = mlp(width, [2.0, 2.0, 4.0, 4.0])
        self.distance = DistanceHead(width, distance_channels, variance=True) if distance_channels else None

    def forward(self, tokens: Tensor) -> Outputs:
        tokens = self.norm(tokens)
        box = self.box(tokens)
        offsets = torch.exp(box[..., :2].clamp(max=10.0))
        outputs = Outputs(self.classes(tokens), offsets, box[..., 2:])
        if self.distance is not None:
            outputs.distances, outputs.distance_log_variance = self.distance(tokens)
        return outputs
