"""Levels above an encoder that works at full resolution: long instances are found where they are short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.convolution import TokenConvolution, beside
from temporalzoom.models.outputs import Outputs, Points
from temporalzoom.models.pyramid import ConvolutionHead, Level, class_head, halved, pyramid_points


def all_points(mask: Tensor, levels: int, finest: float = 4.0) -> Points:
    """The points of a sequence at full resolution, mask (B, T), and of the levels above it."""
    masks = [mask]
    while len(masks) < levels:
        masks.append(halved(masks[-1]))
    return pyramid_points(masks, finest)


@dataclass(frozen=True)
class Reading:
    """Outputs of all heads: at the positions, and at the coarser levels above them, level after level, if any.

    Distances of the coarser ones are in strides of each level, and there for training only.
    """

    finest: Outputs
    coarser: Outputs | None = None
    points: Points | None = None

    def joined(self, finest: Outputs) -> Outputs:
        """All levels, with refined outputs of the positions in the place of `self.finest`."""
        coarser = self.coarser
        if coarser is None:
            return finest

        def both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
            return None if first is None or second is None else torch.cat((first, second), 1)

        return replace(
            finest,
            logits=torch.cat((finest.logits, coarser.logits), 1),
            offsets=torch.cat((finest.offsets, coarser.offsets), 1),
            offset_log_variance=both(finest.offset_log_variance, coarser.offset_log_variance),
            points=self.points,
            level_distances=both(finest.distances, coarser.distances),
        )


class LevelHeads(nn.Module):
    """Convolutions of width `hidden`, shared by the levels, read them.

    The first of three is the same for classes and boxes: heads at every position are most of what a network costs.

    levels: how many; first: the number of the first that is read, 0 being the tokens themselves.
    """

    def __init__(self, width: int, classes: int, levels: int, hidden: int, first: int) -> None:
        super().__init__()
        self.first = first
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(levels - first))
        self.first_convolution = TokenConvolution(width, hidden, bias=False)
        self.first_norm = nn.LayerNorm(hidden)
        self.classes = class_head(hidden, classes, 2)
        self.box = ConvolutionHead(hidden, 4, 2)
        # As in `Heads`: logarithms, here in strides of a level, whose instances are a few strides long.
        with torch.no_grad():
            self.box.last.bias.copy_(torch.tensor([0.7, 0.7, 1.0, 1.0]))  # type: ignore[union-attr]

    def normed(self, levels: Sequence[Level]) -> list[Level]:
        """All levels, the finest first -> those that are read, normalized."""
        return [
            replace(level, tokens=norm(level.tokens) * level.mask.unsqueeze(-1))
            for level, norm in zip(levels[self.first :], self.norms, strict=True)
        ]

    def forward(self, levels: Sequence[Level]) -> Outputs:
        """Outputs of both heads, (B, N, ...), level after level."""
        logits, box = self._read(levels)
        strides = torch.cat([torch.full_like(x.tokens[0, :, :1], x.stride) for x in levels])  # (N, 1)
        offsets = strides * torch.exp(box[..., :2].clamp(max=10.0))
        return Outputs(logits, offsets, box[..., 2:] + 2 * torch.log(strides))

    def _read(self, levels: Sequence[Level]) -> tuple[Tensor, Tensor]:
        """Classes and boxes, in strides.

        All levels in one go, as a single sequence with a gap after each: most of them are so short that starting a
        convolution takes longer than the convolution.
        """
        gap = Level(torch.zeros_like(levels[0].tokens[:, :1]), torch.zeros_like(levels[0].mask[:, :1]))
        spaced = [part for level in levels for part in (level, gap)]
        joined = Level(torch.cat([x.tokens for x in spaced], 1), torch.cat([x.mask for x in spaced], 1))
        lengths = [x.tokens.shape[1] for x in spaced]
        tokens = F.relu(self.first_norm(self.first_convolution(joined.tokens)))
        joined = replace(joined, tokens=tokens * joined.mask.unsqueeze(-1))
        neighbours = beside(joined.tokens)
        split = (head(joined, neighbours).split(lengths, 1) for head in (self.classes, self.box))
        logits, box = (torch.cat(parts[::2], 1) for parts in split)
        return logits, box
