"""`tridet`: scalable-granularity perception layers and a trident head (Shi et al., TriDet, CVPR 2023)."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.layers import Branch, Regularization
from temporalzoom.models.pyramid import (
    ConvolutionHead,
    Level,
    PyramidDetector,
    class_head,
    halved,
    max_pooled,
)
from temporalzoom.models.registry import no_depth, register
from temporalzoom.models.retrofit import retrofitted


class MaskedGroupNorm(nn.Module):
    """Group norm over the valid positions. The published code also counts the padding. (B, T, D) -> (B, T, D)."""

    def __init__(self, width: int, groups: int) -> None:
        super().__init__()
        self.groups = groups
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        grouped = tokens.unflatten(-1, (self.groups, -1))
        valid = mask[:, :, None, None].to(tokens.dtype)
        count = (valid.sum(1, keepdim=True) * grouped.shape[-1]).clamp(min=1)
        mean = (grouped * valid).sum((1, 3), keepdim=True) / count
        variance = ((grouped - mean).square() * valid).sum((1, 3), keepdim=True) / count
        normed = ((grouped - mean) * torch.rsqrt(variance + 1e-5)).flatten(-2)
        return normed * self.weight + self.bias


class SGP(nn.Module):
    """Scalable-granularity perception: an instant-level and a window-level branch, both depthwise, then feed-forward.

    With stride 2, the sequence is max-pooled first. The instant-level branch compares a token with the mean of its
    sequence; the window-level branch looks with a narrow and a wide kernel, gated.
    """

    def __init__(
        self, width: int, stride: int, granularity: float, expansion: float, regularization: Regularization
    ) -> None:
        super().__init__()
        narrow = 1
        wide = round((narrow + 1) * granularity)
        wide += 1 - wide % 2

        def depthwise(size: int) -> nn.Conv1d:
            convolution = nn.Conv1d(width, width, size, padding=size // 2, groups=width)
            # From zero, the start of the published code, the products below would have no gradient, ever.
            nn.init.normal_(convolution.weight, std=0.1)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            return convolution

        self.stride = stride
        self.norm = nn.LayerNorm(width)
        self.instant, self.sequence = depthwise(1), depthwise(1)
        self.narrow, self.wide, self.gate = depthwise(narrow), depthwise(wide), depthwise(narrow)
        self.feed_forward_norm = MaskedGroupNorm(width, math.gcd(16, width))
        hidden = round(expansion * width)
        self.feed_forward = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self.perception_scale, self.feed_forward_scale = Branch(width, regularization), Branch(width, regularization)

    def forward(self, level: Level) -> Level:
        tokens = level.tokens if self.stride == 1 else max_pooled(level)
        mask = level.mask if self.stride == 1 else halved(level.mask)
        valid = mask.unsqueeze(-1)
        normed = self.norm(tokens) * valid
        mean = normed.sum(1, keepdim=True) / valid.sum(1, keepdim=True).clamp(min=1)
        x = normed.transpose(1, 2)
        overall = torch.relu(self.sequence(mean.transpose(1, 2)))
        perceived = self.instant(x) * overall + (self.narrow(x) + self.wide(x)) * self.gate(x) + x
        tokens = tokens + self.perception_scale(perceived.transpose(1, 2) * valid)
        forward = self.feed_forward(self.feed_forward_norm(tokens, mask)) * valid
        return Level(tokens + self.feed_forward_scale(forward), mask, level.stride * self.stride)


def neighbours(logits: Tensor, bins: int, after: bool) -> Tensor:
    """For every position the logits of its `bins` neighbours and its own, nearest to farthest.

    logits: (B, T, C) -> (B, T, C, bins + 1). after: those that follow; else those before. Beyond the ends: zero.
    """
    padded = F.pad(logits, (0, 0, 0, bins) if after else (0, 0, bins, 0))
    windows = padded.unfold(1, bins + 1, 1)
    return windows if after else windows.flip(-1)


class TriDet(PyramidDetector):
    """Boundaries are expectations over the neighbours of a point: how much a start (or end) the class's boundary head
    sees at each of them, plus what the point itself says about each."""

    def __init__(
        self,
        input_width: int,
        classes: int,
        *,
        levels: int = 6,
        head_layers: int = 3,
        stem_layers: int = 2,
        expansion: float | None = None,
        bins: int = 16,
        granularity: float = 5.0,
        drop_path: float = 0.1,
        layer_scale: float | None = 1e-4,
        **options: object,
    ) -> None:
        super().__init__(input_width, classes, levels=levels, head_layers=head_layers, **options)  # type: ignore
        self.bins = bins
        regularization = Regularization(drop_path=drop_path, layer_scale=layer_scale)

        def layer(stride: int) -> SGP:
            return SGP(
                self.width, stride, granularity, expansion or 1.5, regularization if stride > 1 else Regularization()
            )

        self.layers = nn.ModuleList(layer(stride) for stride in [1] * stem_layers + [2] * (levels - 1))
        self.start_head, self.end_head = (class_head(self.width, classes, head_layers) for _ in range(2))
        self.center_head = ConvolutionHead(self.width, 2 * (bins + 1), head_layers)
        self.scales = nn.Parameter(torch.ones(levels))
        self.register_buffer("bin_distance", torch.arange(bins + 1, dtype=torch.float32), persistent=False)

    def read_offsets(self, level: Level, number: int) -> Tensor:
        """(B, T / stride, C, 2)."""
        apart = Level(level.tokens.detach(), level.mask, level.stride)  # boundary heads do not shape the features
        center = F.relu(self.center_head(level) * self.scales[number]).unflatten(-1, (2, self.bins + 1))
        sides = (
            neighbours(self.start_head(apart), self.bins, after=False) + center[:, :, :1],
            neighbours(self.end_head(apart), self.bins, after=True) + center[:, :, 1:],
        )
        return torch.stack([side.softmax(-1) @ self.bin_distance for side in sides], -1)

    bin_distance: Tensor


@register("tridet")
def build_tridet(depth: int | None, input_width: int, classes: int, /, **options: Any) -> nn.Module:
    no_depth("tridet", depth)
    return retrofitted(TriDet, input_width, classes, options)
