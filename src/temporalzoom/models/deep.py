"""The deep path: layers for the few active tokens, which zoom in on the shallow tokens around them.

Attention among the active tokens alone would give them less context than a network that is deep everywhere: most of
their neighbours are not active. So they attend to the *shallow* tokens around them, in every layer. The keys and values
of these are computed once and serve all layers and all heads. The deep path's output at a position then depends on the
shallow path only, not on which other positions are active: it can be trained at every position and run at any few.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from temporalzoom.models.attention import AttentionLayout, attend_shared, barrier, initial_bias
from temporalzoom.models.layers import Branch, Regularization, TokenLayout, feed_forward, xavier
from temporalzoom.models.packing import Packed


@dataclass(frozen=True)
class Surroundings:
    """What tokens see around them, as keys and values of width E, in one of two forms.

    Of N packed tokens: keys, values (N, R, E) for R = 2 * reach + 1 positions, barred (N, 1, R), 0 or -inf beyond the
    ends. Of all tokens of a batch: keys, values (B, T, E), and the layout of block-local attention.
    """

    keys: Tensor
    values: Tensor
    barred: Tensor | None = None
    layout: AttentionLayout | None = None

    def select(self, chosen: Tensor) -> Surroundings:
        """Of the packed tokens only those at `chosen`, (M,)."""
        assert self.barred is not None
        keys, values, barred = (x.index_select(0, chosen) for x in (self.keys, self.values, self.barred))
        return Surroundings(keys, values, barred)


class Zoom(nn.Module):
    """From shallow tokens (B, T, D) to the surroundings of the packed ones, up to `reach` positions away."""

    def __init__(self, width: int, heads: int, reach: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"model.width {width} is not a multiple of model.heads {heads}")
        self.reach = reach
        self.norm = nn.LayerNorm(width)
        self.key_value = nn.Linear(width, 2 * (width // heads))

    def forward(self, tokens: Tensor, mask: Tensor, packed: Packed, everywhere: bool) -> Surroundings:
        """mask: (B, T). everywhere: all tokens are packed; then nothing is gathered."""
        return self.around(self.keys_and_values(tokens), mask, packed, everywhere)

    def keys_and_values(self, tokens: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, 2 E)."""
        return self.key_value(self.norm(tokens))

    def around(self, both: Tensor, mask: Tensor, packed: Packed, everywhere: bool) -> Surroundings:
        """both: from `keys_and_values`, which several packings may share."""
        if everywhere:
            keys, values = both.chunk(2, -1)
            return Surroundings(keys, values, layout=TokenLayout.build(mask, self.reach).attention)
        # Keys and values each on their own: many small products are faster where the matrices lie in one piece.
        keys, values, inside = packed.gather_around(*both.chunk(2, -1), mask.unsqueeze(-1), reach=self.reach)
        return Surroundings(keys, values, barrier(inside.transpose(1, 2)))


class ZoomAttention(nn.Module):
    """Attention of tokens (1, N, D) to their surroundings; all heads share keys and values."""

    def __init__(self, width: int, heads: int, reach: int) -> None:
        super().__init__()
        self.heads, self.key_width = heads, width // heads
        self.query = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.distance_bias = nn.Parameter(initial_bias(heads, reach))

    def forward(self, tokens: Tensor, around: Surroundings) -> Tensor:
        query = self.query(tokens)
        if around.layout is not None:
            query = query.view(*around.keys.shape[:2], self.heads, -1)
            seen = attend_shared(query, around.keys, around.values, around.layout, self.distance_bias)
            seen = seen.reshape(tokens.shape)
        else:
            assert around.barred is not None
            query = query.squeeze(0).unflatten(1, (self.heads, self.key_width)) * self.key_width**-0.5
            similarity = torch.bmm(query, around.keys.transpose(1, 2))  # (N, H, R)
            similarity = similarity + self.distance_bias + around.barred
            seen = torch.bmm(similarity.softmax(-1), around.values).flatten(1).unsqueeze(0)
        return self.output(seen)


class ZoomLayer(nn.Module):
    """Pre-norm layer: attention to the surroundings, feed-forward. (1, N, D) -> (1, N, D)."""

    def __init__(self, width: int, heads: int, reach: int, regularization: Regularization, expansion: int) -> None:
        super().__init__()
        # The names of these attributes are the names of stored weights.
        self.look_norm = nn.LayerNorm(width)
        self.look = ZoomAttention(width, heads, reach)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward(width, expansion)
        self.look_branch, self.feed_forward_branch = Branch(width, regularization), Branch(width, regularization)
        xavier(self)

    def forward(self, tokens: Tensor, around: Surroundings) -> Tensor:
        tokens = tokens + self.look_branch(self.look(self.look_norm(tokens), around))
        return tokens + self.feed_forward_branch(self.feed_forward(self.feed_forward_norm(tokens)))
