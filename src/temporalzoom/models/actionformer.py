"""`actionformer`: local-window transformer layers that halve the sequence (Zhang et al., ActionFormer, ECCV 2022)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from temporalzoom.models.attention import AttentionLayout, attend, global_layout, local_layout
from temporalzoom.models.layers import Branch, Regularization, feed_forward
from temporalzoom.models.pyramid import Level, OffsetHead, PyramidDetector, halved, max_pooled
from temporalzoom.models.registry import no_depth, register
from temporalzoom.models.retrofit import retrofitted


class ConvolvedProjection(nn.Module):
    """Depthwise convolution, layer norm, linear: what queries, keys and values are made by. (B, T, D) -> (B, T', D)."""

    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, 3, stride, padding=1, groups=width, bias=False)
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, tokens: Tensor, valid: Tensor) -> Tensor:
        """valid: (B, T', 1), of the result."""
        convolved = self.convolution(tokens.transpose(1, 2)).transpose(1, 2) * valid
        return self.linear(self.norm(convolved))


class ConvolutionalTransformer(nn.Module):
    """Pre-norm transformer layer; with stride 2 it halves the sequence, and the skip connection is max pooling."""

    def __init__(
        self, width: int, heads: int, window: int | None, stride: int, expansion: float, regularization: Regularization
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"model.width {width} is not a multiple of model.heads {heads}")
        self.heads, self.window, self.stride = heads, window, stride
        self.attention_norm = nn.LayerNorm(width)
        self.query, self.key, self.value = (ConvolvedProjection(width, stride) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.attention_scale = Branch(width, regularization)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, int(expansion))
        self.feed_forward_scale = Branch(width, regularization)

    def forward(self, level: Level) -> Level:
        mask = level.mask if self.stride == 1 else halved(level.mask)
        skip = level.tokens if self.stride == 1 else max_pooled(level)
        valid = mask.unsqueeze(-1)
        tokens = self.attention_norm(level.tokens) * level.mask.unsqueeze(-1)
        query, key, value = (part(tokens, valid).unflatten(-1, (self.heads, -1)) for part in self._parts())
        no_bias = tokens.new_zeros(self.heads, 2 * self._reach() + 1)  # positions enter through the convolutions
        attended = attend(query, key, value, self._layout(mask), no_bias).flatten(-2)
        tokens = skip + self.attention_scale(self.output(attended) * valid)
        tokens = tokens + self.feed_forward_scale(self.feed_forward(self.feed_forward_norm(tokens)) * valid)
        return Level(tokens, mask, level.stride * self.stride)

    def _parts(self) -> tuple[nn.Module, nn.Module, nn.Module]:
        return self.query, self.key, self.value

    def _reach(self) -> int:
        return 1 if self.window is None else self.window

    def _layout(self, mask: Tensor) -> AttentionLayout:
        """Which tokens of the level see which. mask: (B, T)."""
        if bool(mask.all()):  # all sequences look the same: one table serves all
            mask = mask[:1]
        positions = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
        if self.window is None:
            return global_layout(positions, mask, self._reach())
        return local_layout(positions, mask, self.window, contiguous=True)


class ActionFormer(PyramidDetector):
    """`stem_layers` layers at full resolution, then one that halves it per level."""

    attends = True

    def __init__(
        self,
        input_width: int,
        classes: int,
        *,
        heads: int = 4,
        window: int | None = 9,
        levels: int = 6,
        head_layers: int = 3,
        stem_layers: int = 2,
        expansion: float | None = None,
        drop_path: float = 0.1,
        layer_scale: float | None = 1e-4,
        **options: object,
    ) -> None:
        super().__init__(input_width, classes, levels=levels, head_layers=head_layers, **options)  # type: ignore
        regularization = Regularization(drop_path=drop_path, layer_scale=layer_scale)
        strides = [1] * stem_layers + [2] * (levels - 1)
        self.layers = nn.ModuleList(
            ConvolutionalTransformer(self.width, heads, window, stride, expansion or 4, regularization)
            for stride in strides
        )
        self.offset_head = OffsetHead(self.width, levels, head_layers)

    def read_offsets(self, level: Level, number: int) -> Tensor:
        return self.offset_head(level, number)


@register("actionformer")
def build_actionformer(depth: int | None, input_width: int, classes: int, /, **options: Any) -> nn.Module:
    no_depth("actionformer", depth)
    return retrofitted(ActionFormer, input_width, classes, options)
