"""Coarser levels above an encoder that works at full resolution: long instances are found where they are short."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from temporalzoom.models.layers import TokenLayout, TransformerLayer
from temporalzoom.models.outputs import Outputs
from temporalzoom.models.pyramid import ConvolutionHead, Level, class_head, halved, max_pooled, pyramid_points


class CoarseLevels(nn.Module):
    """Tokens are max-pooled level by level, optionally with a transformer layer on each, and narrow
    convolutions read them.

    The encoder's own outputs are the finest level; boundary distances are read there only.
    """

    def __init__(
        self,
        width: int,
        classes: int,
        heads: int,
        window: int | None,
        dropout: float,
        expansion: int,
        *,
        levels: int,
        finest: float,
        mixing: bool = False,
    ) -> None:
        super().__init__()
        self.window, self.finest = window, finest
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, window, dropout, expansion) if mixing else nn.Identity()
            for _ in range(levels - 1)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(levels - 1))
        self.classes = class_head(width, classes, 3, width // 2)
        self.box = ConvolutionHead(width, 4, 3, hidden=width // 2)
        # As in `Heads`: logarithms, here in strides of a level, whose instances are a few strides long.
        with torch.no_grad():
            self.box.last.bias.copy_(torch.tensor([0.7, 0.7, 1.0, 1.0]))  # type: ignore[union-attr]

    def forward(self, outputs: Outputs, tokens: Tensor, mask: Tensor) -> Outputs:
        """The encoder's outputs and tokens (B, T, D), mask (B, T) -> outputs with the points of all levels."""
        levels = [Level(tokens * mask.unsqueeze(-1), mask)]
        rows = [outputs]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            before = levels[-1]
            level = Level(max_pooled(before), halved(before.mask), 2 * before.stride)
            if isinstance(layer, TransformerLayer):
                level.tokens = layer(level.tokens, TokenLayout.build(level.mask, self.window))
                level.tokens = level.tokens * level.mask.unsqueeze(-1)
            levels.append(level)
            rows.append(self.read(Level(norm(level.tokens) * level.mask.unsqueeze(-1), level.mask, level.stride)))
        return replace(
            outputs,
            logits=torch.cat([row.logits for row in rows], 1),
            offsets=torch.cat([row.offsets for row in rows], 1),
            offset_log_variance=torch.cat([row.offset_log_variance for row in rows], 1),  # type: ignore[misc]
            points=pyramid_points(levels, self.finest),
        )

    def read(self, level: Level) -> Outputs:
        """Classes and boxes of one level, in grid units."""
        box = self.box(level)
        offsets = level.stride * torch.exp(box[..., :2].clamp(max=10.0))
        return Outputs(self.classes(level), offsets, box[..., 2:] + 2 * math.log(level.stride))
