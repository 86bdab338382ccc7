"""From tokens to raw outputs: class logits, box offsets, boundary distances.

`Heads` reads every token on its own, `ConvolutionHeads` a token and its neighbours. Both are asked for whole sequences,
and again for the few tokens that went deeper: these have left their neighbours behind, and come with what was said of
them `before`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from temporalzoom.bdr import DistanceHead
from temporalzoom.models.level_heads import LevelHeads, Reading, all_points
from temporalzoom.models.outputs import Outputs
from temporalzoom.models.pyramid import Level

HeadForm = Literal["mlp", "convolution"]


@dataclass(frozen=True)
class LevelOptions:
    """levels: how many; finest: the longest offset of the first; distances_on_all: training looks at every level's."""

    levels: int = 1
    finest: float = 4.0
    distances_on_all: bool = False


def mlp(width: int, bias: list[float], layers: int = 3, spread: float = 0.01) -> nn.Sequential:
    """`layers` linear layers with GELU between them; outputs, one per bias, start near the given biases."""
    parts: list[nn.Module] = []
    hidden_width = width // 2  # a full-width head at every position would cost a sixth of a transformer layer each
    for before in [width, *[hidden_width] * (layers - 2)]:
        hidden = nn.Linear(before, hidden_width)
        nn.init.xavier_uniform_(hidden.weight)
        parts += [hidden, nn.GELU()]
    last = nn.Linear(hidden_width, len(bias))
    nn.init.normal_(last.weight, std=spread)
    with torch.no_grad():
        last.bias.copy_(torch.tensor(bias))
    return nn.Sequential(*parts, last)


def distance_head(width: int, channels: int | None) -> DistanceHead | None:
    return DistanceHead(width, channels, width // 2, variance=True) if channels else None


class LevelledHeads(nn.Module):
    """What both forms share: how many levels there are, and what a reading of all of them consists of."""

    distance: DistanceHead | None

    def __init__(self, options: LevelOptions) -> None:
        super().__init__()
        self.options, self.levels = options, options.levels

    def _reading(self, finest: Outputs, coarser: Outputs, above: Sequence[Level], mask: Tensor) -> Reading:
        """above: the coarser levels; mask: (B, T)."""
        if self.training and self.options.distances_on_all and self.distance is not None:
            coarser.distances = torch.cat([self.distance(level.tokens)[0] for level in above], 1)
        return Reading(finest, coarser, all_points(mask, self.levels, self.options.finest))


class Heads(LevelledHeads):
    """MLPs at every position: classes, box, distance (optional); narrow convolutions on coarser levels, if any."""

    reach = 0  # how many positions to either side are read

    def __init__(
        self, width: int, classes: int, distance_channels: int | None, options: LevelOptions, prior: float = 0.01
    ) -> None:
        super().__init__(options)
        self.norm = nn.LayerNorm(width)
        self.classes = mlp(width, [-math.log((1 - prior) / prior)] * classes)  # focal loss: instances are rare
        # Lengths span two orders of magnitude: the box head predicts the logarithm of the offsets, from about 7
        # positions on, and the logarithm of their variance, from "off by several positions" on. With several levels,
        # this is the one of the shortest instances.
        self.box = mlp(width, [2.0, 2.0, 4.0, 4.0] if options.levels == 1 else [0.7, 0.7, 1.0, 1.0])
        self.distance = distance_head(width, distance_channels)
        several = options.levels > 1
        self.coarse = LevelHeads(width, classes, options.levels, width // 2, first=1) if several else None

    def forward(self, tokens: Tensor, mask: Tensor, before: Outputs | None = None) -> Reading:
        """tokens: (B, T, D), mask: (B, T). before: what was said of tokens (..., D); here it counts no more."""
        finest = self._each(tokens)
        if self.coarse is None or before is not None:
            return Reading(finest)
        levels = self.coarse.pool(tokens, mask)
        return self._reading(finest, self.coarse(levels), levels, mask)

    def _each(self, tokens: Tensor) -> Outputs:
        tokens = self.norm(tokens)
        box = self.box(tokens)
        offsets = torch.exp(box[..., :2].clamp(max=10.0))
        outputs = Outputs(self.classes(tokens), offsets, box[..., 2:])
        if self.distance is not None:
            outputs.distances, outputs.distance_log_variance = self.distance(tokens)
        return outputs


class ConvolutionHeads(LevelledHeads):
    """Convolutions that all levels share, the finest included, tell classes and boxes; an MLP tells distances.

    A token that went deeper says what to correct: its logits are added to, its offsets multiplied. zooms: there will be
    such tokens.
    """

    reach = 3

    def __init__(
        self, width: int, classes: int, distance_channels: int | None, options: LevelOptions, zooms: bool
    ) -> None:
        super().__init__(options)
        self.all_levels = LevelHeads(width, classes, options.levels, width, first=0)
        self.distance = distance_head(width, distance_channels)
        # Depth begins by correcting nothing.
        self.norm = nn.LayerNorm(width) if zooms else None
        self.classes = mlp(width, [0.0] * classes, spread=0.0) if zooms else None
        self.box = mlp(width, [0.0] * 4, spread=0.0) if zooms else None

    def forward(self, tokens: Tensor, mask: Tensor, before: Outputs | None = None) -> Reading:
        """tokens: (B, T, D), mask: (B, T). before: what was said of tokens (..., D), to be corrected."""
        if before is not None:
            return Reading(self._corrected(tokens, before))
        levels = self.all_levels.pool(tokens, mask)
        said, length = self.all_levels(levels), tokens.shape[1]
        finest = said.map(lambda x: x[:, :length])
        if self.distance is not None:
            finest.distances, finest.distance_log_variance = self.distance(levels[0].tokens)
        if self.levels == 1:
            return Reading(finest)
        return self._reading(finest, said.map(lambda x: x[:, length:]), levels[1:], mask)

    def _corrected(self, tokens: Tensor, before: Outputs) -> Outputs:
        assert self.norm is not None and self.classes is not None and self.box is not None
        assert before.offset_log_variance is not None
        tokens = self.norm(tokens)
        box = self.box(tokens)
        outputs = Outputs(
            before.logits + self.classes(tokens),
            before.offsets * torch.exp(box[..., :2].clamp(-5.0, 5.0)),
            before.offset_log_variance + box[..., 2:],
        )
        if self.distance is not None:
            outputs.distances, outputs.distance_log_variance = self.distance(tokens)
        return outputs


def build_heads(
    form: HeadForm, width: int, classes: int, distance_channels: int | None, options: LevelOptions, zooms: bool = False
) -> Heads | ConvolutionHeads:
    """zooms: some tokens will go deeper."""
    if form == "mlp":
        return Heads(width, classes, distance_channels, options)
    return ConvolutionHeads(width, classes, distance_channels, options, zooms)
