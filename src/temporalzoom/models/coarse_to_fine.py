"""Levels above tokens at full resolution: max pooling, attention on each, and what coarse levels know handed down.

A layer on level l reaches 2^l times as far as one on the tokens themselves, and costs 2^l times less: a layer on each
coarser level costs less than one layer more at every position, and together they see the whole sequence. Evidence that
lies far from a boundary (has the action been completed?) then reaches the position that decides about it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from temporalzoom.models.layers import Encoder, Regularization, TokenLayout
from temporalzoom.models.pyramid import Level, halved, max_pooled

# How far attention on a coarser level reaches, in positions of that level. Twice as far was not better.
REACH = 8


def pooled_levels(tokens: Tensor, mask: Tensor, count: int) -> list[Level]:
    """`count` levels by max pooling alone, the finest first. tokens: (B, T, D), mask: (B, T)."""
    levels = [Level(tokens * mask.unsqueeze(-1), mask)]
    while len(levels) < count:
        levels.append(_next(levels[-1]))
    return levels


def _next(level: Level) -> Level:
    return Level(max_pooled(level), halved(level.mask), 2 * level.stride)


class CoarseToFine(nn.Module):
    """Tokens (B, T, D), mask (B, T) -> `count` levels, the finest first.

    Each is max-pooled from the one before and passes `layers` transformer layers with local attention. Then, from the
    coarsest down, a linear map of a level is added to the finer one: the finest has no layers of its own here, but
    hears from all others.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        count: int,
        layers: int,
        regularization: Regularization = Regularization(),
        expansion: int = 2,
    ) -> None:
        super().__init__()
        self.count = count
        coarser = range(count - 1 if layers else 0)
        self.encoders = nn.ModuleList(Encoder(width, heads, layers, REACH, regularization, expansion) for _ in coarser)
        self.down = nn.ModuleList(nn.Linear(width, width) for _ in coarser)
        for linear in self.down:
            # Small: at first a position says what it says itself.
            nn.init.normal_(linear.weight, std=0.02)  # type: ignore[arg-type]
            nn.init.zeros_(linear.bias)  # type: ignore[arg-type]

    def forward(self, tokens: Tensor, mask: Tensor) -> list[Level]:
        if not len(self.encoders):
            return pooled_levels(tokens, mask, self.count)
        levels = pooled_levels(tokens, mask, 1)
        for encoder in self.encoders:
            level = _next(levels[-1])
            seen = encoder(level.tokens, TokenLayout.build(level.mask, REACH))
            levels.append(replace(level, tokens=seen * level.mask.unsqueeze(-1)))
        for number in reversed(range(self.count - 1)):
            finer, above = levels[number], levels[number + 1]
            heard = _doubled(self.down[number](above.tokens), finer.tokens.shape[1])
            levels[number] = replace(finer, tokens=(finer.tokens + heard) * finer.mask.unsqueeze(-1))
        return levels


def _doubled(tokens: Tensor, length: int) -> Tensor:
    """Every token twice: (B, ceil(length / 2), D) -> (B, length, D)."""
    return torch.stack((tokens, tokens), 2).flatten(1, 2)[:, :length]
