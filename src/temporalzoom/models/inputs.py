"""From features, or windows of a raw signal, to tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.convolution import TokenConvolution


class Standardize(nn.Module):
    """Every input channel to zero mean and unit variance. (B, T, F) -> (B, T, F)."""

    def __init__(self, input_width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(input_width))
        self.register_buffer("factor", torch.ones(input_width))

    def set(self, mean: Tensor, deviation: Tensor) -> None:
        """mean, deviation: (F,)."""
        self.mean.copy_(mean)
        self.factor.copy_(1 / deviation)

    def forward(self, features: Tensor) -> Tensor:
        return (features - self.mean) * self.factor

    mean: Tensor
    factor: Tensor


class Stem(nn.Module):
    """Strided convolutions over raw rows, `strides` one after the other. (B, T, W * C) -> (B, T, D).

    A position comes as a window of W rows, one every S rows, S the product of the strides. Windows may overlap: the
    middle S rows of each, one window after the other, are the signal again. Kernels of three strides, so that an output
    is in the middle of what it is made of.

    window: W; None: S.
    """

    def __init__(self, input_width: int, width: int, strides: Sequence[int], window: int | None = None) -> None:
        super().__init__()
        self.rows = math.prod(strides)
        self.window = self.rows if window is None else window
        if self.window < self.rows:
            raise ValueError(
                f"model.stem: its strides make {self.rows} rows per position, more than the {self.window} of a window"
            )
        if input_width % self.window:
            raise ValueError(
                f"model.stem: the {self.window} rows of a window do not divide the {input_width} input channels; needs "
                "a raw signal, and data.stride the product of the strides"
            )
        widths = [input_width // self.window, *[max(width // 2, 8)] * (len(strides) - 1), width]
        self.convolutions = nn.ModuleList(
            TokenConvolution(before, after, stride)
            for (before, after), stride in zip(pairwise(widths), strides, strict=True)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(after) for after in widths[1:])

    def forward(self, features: Tensor, mask: Tensor | None) -> Tensor:
        """features: (B, T, W * C); mask: (B, T), None: nothing is padding."""
        middle = features.unflatten(2, (self.window, -1)).narrow(2, (self.window - self.rows) // 2, self.rows)
        rows = (middle if mask is None else middle * mask[:, :, None, None]).flatten(1, 2)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            rows = F.gelu(norm(convolution(rows)))
            if mask is not None:
                per_position = rows.shape[1] // mask.shape[1]
                rows = rows * mask.repeat_interleave(per_position, 1).unsqueeze(-1)
        return rows


class Projection(nn.Module):
    """Features to tokens: masked convolutions of size 3 with layer norm and `activation`.
    (B, T, F) -> (B, T, D).

    standardize: inputs are brought to zero mean and unit variance first. stem: strides of convolutions before, for
    windows of `stem_window` rows of a raw signal.
    """

    def __init__(
        self,
        input_width: int,
        width: int,
        layers: int = 2,
        *,
        standardize: bool = False,
        stem: Sequence[int] = (),
        stem_window: int | None = None,
        activation: Callable[[Tensor], Tensor] = F.gelu,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.standard = Standardize(input_width) if standardize else None
        self.stem = Stem(input_width, width, stem, stem_window) if stem else None
        widths = [width if stem else input_width] + [width] * layers
        self.convolutions = nn.ModuleList(TokenConvolution(before, after) for before, after in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    @property
    def reach(self) -> int:
        """How many positions to either side can influence a token."""
        return len(self.convolutions) + (0 if self.stem is None else len(self.stem.convolutions))

    @property
    def factor(self) -> Tensor | None:
        """(F,): what differences of features are multiplied by when features are standardized; None: they are not."""
        return None if self.standard is None else self.standard.factor

    def standardized(self, features: Tensor) -> Tensor:
        return features if self.standard is None else self.standard(features)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """features: (B, T, F), mask: (B, T). Padding is zeroed before each convolution: it never leaks in."""
        padding = None if bool(mask.all()) else mask  # at inference there is none to pass over
        tokens = self.standardized(features)
        if self.stem is not None:
            tokens = self.stem(tokens, padding)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            tokens = self.activation(norm(convolution(zeroed(tokens, padding))))
        return zeroed(tokens, padding)


def zeroed(tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Tokens (B, T, D), zero where the mask (B, T) is not; None: as they are."""
    return tokens if mask is None else tokens * mask.unsqueeze(-1)
