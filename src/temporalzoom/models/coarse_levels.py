"""Coarser levels above an encoder that works at full resolution: long instances are found where they are short."""

from __future__ import annotations

from collections.abc import Sequence
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

    def forward(self, outputs: Outputs, tokens: Tensor, mask: Tensor, distance: nn.Module | None = None) -> Outputs:
        """The encoder's outputs and tokens (B, T, D), mask (B, T) -> outputs with the points of all levels.

        distance: a head that reads distances from the coarser levels too, in strides of each, for training to look at.
        """
        level, levels = Level(tokens * mask.unsqueeze(-1), mask), []
        for norm in self.norms:
            level = Level(max_pooled(level), halved(level.mask), 2 * level.stride)
            levels.append(replace(level, tokens=norm(level.tokens) * level.mask.unsqueeze(-1)))
        logits, box = self.read(levels)
        if distance is not None:
            assert outputs.distances is not None
            coarser = [distance(x.tokens)[0] for x in levels]
            outputs = replace(outputs, level_distances=torch.cat([outputs.distances, *coarser], 1))
        assert outputs.offset_log_variance is not None
        strides = torch.cat([torch.full_like(x.tokens[0, :, :1], x.stride) for x in levels])  # (N, 1)
        offsets = strides * torch.exp(box[..., :2].clamp(max=10.0))
        log_variance = box[..., 2:] + 2 * torch.log(strides)
        return replace(
            outputs,
            logits=torch.cat((outputs.logits, logits), 1),
            offsets=torch.cat((outputs.offsets, offsets), 1),
            offset_log_variance=torch.cat((outputs.offset_log_variance, log_variance), 1),
            points=all_points(mask, 1 + len(levels), self.finest),
        )

    def read(self, levels: Sequence[Level]) -> tuple[Tensor, Tensor]:
        """What both heads say, (B, N, ...), level after level; boxes in strides.

        All levels in one go, as a single sequence with a gap after each: most of them are so short that starting a
        convolution takes longer than the convolution.
        """
        gap = Level(torch.zeros_like(levels[0].tokens[:, :1]), torch.zeros_like(levels[0].mask[:, :1]))
        spaced = [part for level in levels for part in (level, gap)]
        joined = Level(torch.cat([x.tokens for x in spaced], 1), torch.cat([x.mask for x in spaced], 1))
        lengths = [x.tokens.shape[1] for x in spaced]
        said = (head(joined).split(lengths, 1) for head in (self.classes, self.box))
        logits, box = (torch.cat(parts[::2], 1) for parts in said)
        return logits, box
