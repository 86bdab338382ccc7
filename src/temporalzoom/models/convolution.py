"""Convolutions over tokens that lie one after the other."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Beyond this number of values, every row beside its neighbours takes more memory than it saves time.
LARGEST = 2**25


def beside(tokens: Tensor) -> Tensor | None:
    """Every token between the one before and the one after it, zero beyond the ends: (B, T, D) -> (B, T, 3 D).

    None where that would be too large.
    """
    return None if 3 * tokens.numel() > LARGEST else side_by_side(tokens, 1)


def side_by_side(tokens: Tensor, reach: int) -> Tensor:
    """Every token between its `reach` neighbours on either side, zero beyond the ends.

    (B, T, D) -> (B, T, (2 reach + 1) D).
    """
    padded = F.pad(tokens, (0, 0, reach, reach))
    # Counted from the end: an exporter would take a length for a constant.
    shifted = [padded[:, first : (first - 2 * reach) or None] for first in range(2 * reach + 1)]
    return torch.cat(shifted, -1)


class TokenConvolution(nn.Conv1d):
    """(B, T * stride, D) -> (B, T, E): from every `stride` rows and as many before and after them, one token.

    The weights are those of a convolution of size `3 * stride`. It is computed as one matrix product: on a CPU a
    quarter faster than PyTorch's own, backward included, which turns the tokens around twice.
    """

    def __init__(self, before: int, after: int, stride: int = 1, bias: bool = True) -> None:
        super().__init__(before, after, 3 * stride, stride, padding=stride, bias=bias)
        # Same shape, but laid out in memory as the product reads it: otherwise every call would copy it first.
        self.weight.data = self.weight.data.transpose(1, 2).contiguous().transpose(1, 2)

    def forward(self, tokens: Tensor, neighbours: Tensor | None = None) -> Tensor:
        """neighbours: what is `beside` the tokens, where several convolutions read the same ones."""
        if neighbours is None and self.stride[0] == 1 and 4 * self.out_channels <= self.in_channels:
            return self._spread(tokens)
        if neighbours is None:
            neighbours = beside(tokens.unflatten(1, (-1, self.stride[0])).flatten(2) if self.stride[0] > 1 else tokens)
        if neighbours is None:
            return super().forward(tokens.transpose(1, 2)).transpose(1, 2)
        return F.linear(neighbours, self.weight.transpose(1, 2).flatten(1), self.bias)

    def _spread(self, tokens: Tensor) -> Tensor:
        """Each token says what it gives to its neighbours: of few outputs, less to copy than what they read."""
        given = F.linear(tokens, self.weight.permute(2, 0, 1).flatten(0, 1))  # (B, T, 3 E)
        forward, own, back = given.chunk(3, -1)
        result = own if self.bias is None else own + self.bias
        return result + F.pad(forward[:, :-1], (0, 0, 1, 0)) + F.pad(back[:, 1:], (0, 0, 0, 1))
