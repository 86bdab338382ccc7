"""What the field's pyramid detectors share: levels of halving resolution, points on them, convolutional heads.

ActionFormer, TriDet and TemporalMaxer differ in how a level is made from the one before and in how boundaries are read
from it. Level l has the tokens at positions 0, 2^l, 2 * 2^l, ...; a sequence of any length, even 1, gives all levels.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.convolution import TokenConvolution
from temporalzoom.models.inputs import Projection
from temporalzoom.models.outputs import Outputs, Points

UNLIMITED = 1e4  # offsets of the coarsest level, as in the published settings
LOWEST = -1e30  # below every token, and zero times it is zero


@dataclass
class Level:
    """tokens: (B, T / stride, D), zero in the padding; mask: (B, T / stride)."""

    tokens: Tensor
    mask: Tensor
    stride: int = 1


def halved(mask: Tensor) -> Tensor:
    """The mask of the next level. (B, T) -> (B, ceil(T / 2))."""
    return mask[:, ::2]


def max_pooled(level: Level) -> Tensor:
    """The highest of three neighbouring tokens at every second position: (B, T, D) -> (B, ceil(T / 2), D).

    Padding never wins: the published codes let its zeros compete.
    """
    # Added and multiplied: several times as fast as filling where a mask says so.
    padding = LOWEST * ~level.mask.unsqueeze(-1)
    tokens = F.pad(level.tokens + padding, (0, 0, 1, 1), value=LOWEST)
    # Not `max_pool1d`, which wants time last: turning tokens around takes longer than comparing them.
    pooled = torch.maximum(torch.maximum(tokens[:, :-2:2], tokens[:, 1:-1:2]), tokens[:, 2::2])
    return pooled * halved(level.mask).unsqueeze(-1)


def pyramid_points(masks: Sequence[Tensor], finest: float) -> Points:
    """Where the tokens of all levels stand, and which offsets each level answers for: the first up to `finest`.

    masks: of the levels, (B, T), (B, ceil(T / 2)), ...
    """
    device, counts = masks[0].device, [mask.shape[1] for mask in masks]
    scales = [float(2**number) for number in range(len(masks))]
    limits = [finest * scale for scale in scales]
    by_level = torch.tensor([scales, [0.0, *limits[:-1]], [*limits[:-1], UNLIMITED]], device=device)
    strides, shortest, longest = by_level.repeat_interleave(torch.tensor(counts, device=device), 1)
    each = [scale * torch.arange(count, device=device) for scale, count in zip(scales, counts, strict=True)]
    return Points(torch.cat(each), strides, shortest, longest, torch.cat(list(masks), 1))


class ConvolutionHead(nn.Module):
    """`layers` convolutions of size 3, shared by all levels; layer norm and ReLU between them.

    (B, T, D) -> (B, T, outputs), zero in the padding.
    """

    def __init__(self, width: int, outputs: int, layers: int, bias: float = 0.0) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(TokenConvolution(width, width, bias=False) for _ in range(layers - 1))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers - 1))
        self.last = TokenConvolution(width, outputs)
        nn.init.constant_(self.last.bias, bias)  # type: ignore[arg-type]

    def forward(self, level: Level, neighbours: Tensor | None = None) -> Tensor:
        """neighbours: what is `beside` the tokens, where several heads read the same ones."""
        tokens, valid = level.tokens, level.mask.unsqueeze(-1)
        for convolution, norm in zip(self.hidden, self.norms, strict=True):
            tokens, neighbours = F.relu(norm(convolution(tokens, neighbours))) * valid, None
        return self.last(tokens) * valid


def prior_logit(prior: float = 0.01) -> float:
    """Initial bias of class logits under the focal loss: instances are rare."""
    return -math.log((1 - prior) / prior)


def class_head(width: int, classes: int, layers: int, prior: float = 0.01) -> ConvolutionHead:
    """Logits that start at the prior: instances are rare."""
    return ConvolutionHead(width, classes, layers, prior_logit(prior))


class OffsetHead(nn.Module):
    """Distances to start and end, in strides of the level, each level with its own scale. Level -> (B, T, 2)."""

    def __init__(self, width: int, levels: int, layers: int) -> None:
        super().__init__()
        self.convolutions = ConvolutionHead(width, 2, layers)
        self.scales = nn.Parameter(torch.ones(levels))

    def forward(self, level: Level, number: int) -> Tensor:
        return F.relu(self.convolutions(level) * self.scales[number])


class PyramidDetector(nn.Module, ABC):
    """Embedding, levels, heads. A detector says which `layers` make the levels, and how boundaries are read."""

    def __init__(
        self,
        input_width: int,
        classes: int,
        *,
        width: int = 512,
        levels: int = 6,
        finest: float = 4.0,
        head_layers: int = 3,
        standardize: bool = False,
        stem: Sequence[int] = (),
        stem_window: int | None = None,
    ) -> None:
        super().__init__()
        self.width, self.levels, self.finest = width, levels, finest
        self.embedding = Projection(
            input_width, width, standardize=standardize, stem=stem, stem_window=stem_window, activation=F.relu
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(levels))
        self.class_head = class_head(width, classes, head_layers)

    attends = False  # whether its own layers have heads of attention
    receptive_field = None  # windows of a long sequence overlap by a share of their length

    layers: nn.ModuleList  # each makes a level from the one before; those of stride 1 only rework the finest

    def build_levels(self, level: Level) -> list[Level]:
        """The embedded sequence -> all levels, the finest first."""
        levels = [level]
        for layer in self.layers:
            after = layer(levels[-1])
            levels = [*levels, after] if after.stride > levels[-1].stride else [after]
        return levels

    @abstractmethod
    def read_offsets(self, level: Level, number: int) -> Tensor:
        """(B, T / stride, 2), or (B, T / stride, C, 2) where they depend on the class; in strides of the level."""

    def features(self, features: Tensor, mask: Tensor) -> list[Level]:
        """features: (B, T, F), mask: (B, T) -> the levels that the heads see."""
        levels = self.build_levels(Level(self.embedding(features, mask), mask))
        for level, norm in zip(levels, self.norms, strict=True):
            level.tokens = norm(level.tokens) * level.mask.unsqueeze(-1)
        return levels

    def detect(self, levels: list[Level]) -> Outputs:
        """What the heads say at all points of all levels, in grid units."""
        offsets = [self.read_offsets(level, number) * level.stride for number, level in enumerate(levels)]
        logits = [self.class_head(level) for level in levels]
        return Outputs(
            torch.cat(logits, 1),
            torch.cat(offsets, 1),
            points=pyramid_points([level.mask for level in levels], self.finest),
        )

    def forward(self, features: Tensor, mask: Tensor) -> Outputs:
        """features: (B, T, F), mask: (B, T) -> Outputs with one row per point."""
        return self.detect(self.features(features, mask))
