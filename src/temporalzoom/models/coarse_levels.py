"""Coarser levels above an encoder that works at full resolution: long instances are found where they are short."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from temporalzoom.models.outputs import Outputs, Points
from temporalzoom.models.pyramid import ConvolutionHead, Level, class_head, halved, max_pooled, pyramid_points


def all_points(mask: Tensor, levels: int, finest: float = 4.0) -> Points:
    """The points of a sequence at full resolution, mask (B, T), and of the levels above it."""
    masks = [mask]
    while len(masks) < levels:
        masks.append(halved(masks[-1]))
    return pyramid_points(masks, finest)


class CoarseLevels(nn.Module):
    """Tokens are max-pooled level by level, and narrow convolutions, shared by the levels, read them.

    The encoder's own outputs are the finest level; boundary distances are read there only.
    """

    def __init__(self, width: int, classes: int, levels: int, finest: float) -> None:
        super().__init__()
        self.finest = finest
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(levels - 1))
        self.classes = class_head(width, classes, 3, hidden=width // 2)
        self.box = ConvolutionHead(width, 4, 3, hidden=width // 2)
        # As in `Heads`: logarithms, here in strides of a level, whose instances are a few strides long.
        with torch.no_grad():
            self.box.last.bias.copy_(torch.tensor([0.7, 0.7, 1.0, 1.0]))  # type: ignore[union-attr]

    def forward(self, outputs: Outputs, tokens: Tensor, mask: Tensor) -> Outputs:
        """The encoder's outputs and tokens (B, T, D), mask (B, T) -> outputs with the points of all levels."""
        level, rows = Level(tokens * mask.unsqueeze(-1), mask), [outputs]
        for norm in self.norms:
            level = Level(max_pooled(level), halved(level.mask), 2 * level.stride)
            rows.append(self.read(replace(level, tokens=norm(level.tokens) * level.mask.unsqueeze(-1))))
        return replace(
            outputs,
            logits=torch.cat([row.logits for row in rows], 1),
            offsets=torch.cat([row.offsets for row in rows], 1),
            offset_log_variance=torch.cat([row.offset_log_variance for row in rows], 1),  # type: ignore[misc]
            points=all_points(mask, len(rows), self.finest),
        )

    def read(self, level: Level) -> Outputs:
        """Classes and boxes of one level, in grid units."""
        box = self.box(level)
        offsets = level.stride * torch.exp(box[..., :2].clamp(max=10.0))
        return Outputs(self.classes(level), offsets, box[..., 2:] + 2 * math.log(level.stride))
