"""The parts every encoder is made of: token layout, projection, transformer layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.attention import AttentionLayout, SelfAttention, global_layout, local_layout
from temporalzoom.processes import kept_values, uniform

# With global attention, tokens farther apart than this are all equally far to the distance bias.
GLOBAL_REACH = 64


@dataclass(frozen=True)
class TokenLayout:
    """Where the tokens of a batch sit in time, and which of them the others see; computed once, shared by all layers.

    previous, following: (B, T, 1) floats, 1 where the neighbouring entry is visible and exactly one position away.
    """

    attention: AttentionLayout
    previous: Tensor
    following: Tensor

    @classmethod
    def build(cls, mask: Tensor, window: int | None, positions: Tensor | None = None) -> TokenLayout:
        """mask: (B, T), tokens that others may see; each token sees itself in any case. window: reach of attention,
        None = global. positions: (B, T), ascending, of packed sequences; default 0..T-1."""
        contiguous = positions is None
        if contiguous and bool(mask.all()):  # all sequences look the same: one table serves all
            mask = mask[:1]
        if positions is None:
            positions = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
        adjacent = positions[:, 1:] - positions[:, :-1] == 1
        if window is None:
            attention = global_layout(positions, mask, GLOBAL_REACH)
        else:
            attention = local_layout(positions, mask, window, contiguous)
        previous = F.pad((adjacent & mask[:, :-1]).float(), (1, 0)).unsqueeze(-1)
        following = F.pad((adjacent & mask[:, 1:]).float(), (0, 1)).unsqueeze(-1)
        return cls(attention, previous, following)


class NeighbourMix(nn.Module):
    """Depthwise convolution over the previous, own and following *position*: (B, T, D) -> (B, T, D).

    A neighbour that is padding, or was dropped from a packed sequence, counts as zero, so that packed and dense
    execution agree. Written as three products because no convolution kernel knows about gaps.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.taps = nn.Parameter(torch.zeros(3, width))
        with torch.no_grad():
            self.taps[1] = 1.0
            self.taps[0].normal_(std=0.4)
            self.taps[2].normal_(std=0.4)

    def forward(self, tokens: Tensor, layout: TokenLayout) -> Tensor:
        previous = F.pad(tokens[:, :-1], (0, 0, 1, 0)) * layout.previous
        following = F.pad(tokens[:, 1:], (0, 0, 0, 1)) * layout.following
        mixed = torch.addcmul(tokens * self.taps[1], previous, self.taps[0])
        return torch.addcmul(mixed, following, self.taps[2])


@dataclass(frozen=True)
class Regularization:
    """Regularization of residual branches, against overfitting.

    dropout: probability, of single values; drop_path (stochastic depth): probability, of a whole branch, drawn per
    sequence; layer_scale: initial value of a learned factor per channel, None: no factor. per_token: drop_path is drawn
    per token instead, where the sequences of a batch are packed into one.
    """

    dropout: float = 0.0
    drop_path: float = 0.0
    layer_scale: float | None = None
    per_token: bool = False


class Branch(nn.Module):
    """What a residual branch adds, regularized. (B, T, D) -> (B, T, D)."""

    def __init__(self, width: int, regularization: Regularization) -> None:
        super().__init__()
        # On the branch only: dropout inside attention would rule out fused kernels.
        self.dropout = regularization.dropout
        self.drop_path, self.per_token = regularization.drop_path, regularization.per_token
        start = regularization.layer_scale
        self.scale = None if start is None else nn.Parameter(torch.full((width,), start))

    def forward(self, added: Tensor) -> Tensor:
        if self.training and self.dropout:
            added = kept_values(added, self.dropout, rows=not self.per_token)
        if self.scale is not None:
            added = added * self.scale
        if self.training and self.drop_path:
            shape = (*added.shape[:2], 1) if self.per_token else (len(added), 1, 1)
            added = added * (uniform(shape, added, rows=not self.per_token) >= self.drop_path) / (1 - self.drop_path)
        return added


def feed_forward(width: int, expansion: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, expansion * width), nn.GELU(), nn.Linear(expansion * width, width))


def xavier(layer: nn.Module) -> None:
    """Xavier initialization of linear layers: PyTorch's default is smaller, and residual branches learn later."""
    for module in layer.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)


class TransformerLayer(nn.Module):
    """Pre-norm layer: depthwise convolution, self-attention, feed-forward. (B, T, D) -> (B, T, D).

    mix: with the convolution.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        window: int | None,
        regularization: Regularization = Regularization(),
        expansion: int = 4,
        mix: bool = True,
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.mix = NeighbourMix(width) if mix else None
        self.attention = SelfAttention(width, heads, window or GLOBAL_REACH)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, expansion)
        self.attention_branch, self.feed_forward_branch = Branch(width, regularization), Branch(width, regularization)
        xavier(self)

    def forward(self, tokens: Tensor, layout: TokenLayout) -> Tensor:
        mixed = self.attention_norm(tokens)
        if self.mix is not None:
            mixed = self.mix(mixed, layout)
        tokens = tokens + self.attention_branch(self.attention(mixed, layout.attention))
        return tokens + self.feed_forward_branch(self.feed_forward(self.feed_forward_norm(tokens)))


class Encoder(nn.Module):
    """A stack of transformer layers. (B, T, D) -> (B, T, D)."""

    def __init__(
        self,
        width: int,
        heads: int,
        depth: int,
        window: int | None,
        regularization: Regularization = Regularization(),
        expansion: int = 4,
        mix: bool = True,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, window, regularization, expansion, mix) for _ in range(depth)
        )

    def forward(self, tokens: Tensor, layout: TokenLayout) -> Tensor:
        for layer in self.layers:
            tokens = layer(tokens, layout)
        return tokens
