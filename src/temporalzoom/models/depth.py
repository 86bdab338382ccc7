"""Where depth is worth it: local-context uncertainty, the depth `tau`, hysteresis, token importance."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.convolution import side_by_side
from temporalzoom.models.layers import Encoder, TokenLayout

LocalContext = Literal["convolution", "attention"]

LOCAL_WINDOW = 3
LOCAL_DEPTH = 3
# Gates are so narrow that ReLUs which fall silent would be missed; GELU takes several times as long.
LEAK = 0.1


def gradient_magnitude(features: Tensor, mask: Tensor, factor: Tensor | None = None) -> Tensor:
    """`||F[t+1] - F[t-1]||`, reflected at the edges of each sequence. features: (B, T, D), mask: (B, T) -> (B, T).

    factor: (D,), of each channel; of standardized features, the means cancel. In units of its own mean, so that it
    means the same for features of any scale.
    """
    if mask.shape[1] < 3:
        return torch.zeros_like(mask, dtype=features.dtype)
    # Reflected at an edge, both neighbours are the same position: the difference is zero there.
    change = features[:, 2:] - features[:, :-2]
    if factor is not None:
        change *= factor  # in place: features are wide, and memory is what this waits for
    size = torch.linalg.vector_norm(change, dim=-1)
    size = F.pad(size * (mask[:, :-2] & mask[:, 2:]), (1, 1))
    mean = size.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
    return size / mean.clamp(min=1e-6)


class RunningStandard(nn.Module):
    """Channels to zero mean and unit variance, as they were lately in training. (B, T, C) -> (B, T, C).

    For inputs whose size nobody knows beforehand, and which change while the network learns.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("square", torch.ones(channels))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """mask: (B, T)."""
        if self.training:
            valid = values.detach()[mask].float()
            share = 0.1 if int(self.batches) else 1.0
            self.mean.lerp_(valid.mean(0), share)
            self.square.lerp_(valid.square().mean(0), share)
            self.batches += 1
        return (values - self.mean) * (self.square - self.mean.square()).clamp(min=1e-4).rsqrt()

    mean: Tensor
    square: Tensor
    batches: Tensor


def gate(inputs: int, hidden: int, bias: float) -> nn.Sequential:
    """A small MLP with one output that starts at `bias`."""
    last = nn.Linear(hidden, 1)
    nn.init.normal_(last.weight, std=0.01)
    nn.init.constant_(last.bias, bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.LeakyReLU(LEAK), last)


class DepthPredictor(nn.Module):
    """What depth is expected to gain at each position, (B, T): in prices, where it is taught the value of depth.

    It sees tokens (B, T, D) and hears `heard` (B, T, K): how uncertain a position is, and what the shallow path claims.
    """

    def __init__(self, width: int, heard: int, hidden: int) -> None:
        super().__init__()
        self.standard = RunningStandard(heard)
        self.gate = gate(width + heard, hidden, bias=0.0)

    def forward(self, tokens: Tensor, heard: Tensor, mask: Tensor) -> Tensor:
        return self.gate(torch.cat((tokens, self.standard(heard, mask)), -1)).squeeze(-1)


class LocalConvolution(nn.Module):
    """One convolution over all positions that local context sees. (B, T, D), mask (B, T) -> (B, T, D).

    One wide one: at the length of a recording, several small operations cost more than what they compute.
    """

    def __init__(self, width: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.mix = nn.Linear((2 * reach + 1) * width, width)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        tokens = F.leaky_relu(tokens, LEAK) * mask.unsqueeze(-1)
        return F.leaky_relu(self.mix(side_by_side(tokens, self.reach)), LEAK)


class Uncertainty(nn.Module):
    """`log sigma^2_t = MLP([local context; g_t; shallow token])`, (B, T).

    The local context is narrow and one pass over the sequence. The paper has a transformer of three layers on the +-3
    positions around each: one window per position would cost more than the deep path that it is meant to spare.
    `convolution`: one of size 7 sees just these positions; `attention`: three layers of banded attention, +-3 positions
    each, which costs more.
    """

    def __init__(self, width: int, narrow: int, context: LocalContext = "convolution", limit: float = 8.0) -> None:
        super().__init__()
        self.limit = limit
        self.narrow = nn.Linear(width, narrow)
        if context == "attention":
            self.context: nn.Module = Encoder(narrow, 1, LOCAL_DEPTH, LOCAL_WINDOW, expansion=1, mix=False)
        else:
            self.context = LocalConvolution(narrow, LOCAL_WINDOW)
        self.head = gate(narrow + 1 + width, narrow, bias=2.0)

    def forward(self, tokens: Tensor, gradient: Tensor, mask: Tensor) -> Tensor:
        """tokens: (B, T, D), gradient: (B, T), mask: (B, T) -> (B, T)."""
        narrow = self.narrow(tokens)
        if isinstance(self.context, LocalConvolution):
            context = self.context(narrow, mask)
        else:
            context = self.context(narrow, TokenLayout.build(mask, LOCAL_WINDOW))
        stacked = torch.cat((context, gradient.unsqueeze(-1), tokens), dim=-1)
        return self.head(stacked).squeeze(-1).clamp(-self.limit, self.limit)


def hold(tau: Tensor, band: float) -> Tensor:
    """Hysteresis of the paper's main text: keep the previous tau while the new one is within the band. (B, T).

    A recurrence that no vector operation expresses; plain floats are the fastest form of it.
    """
    rows = tau.detach().cpu().tolist()
    for row in rows:
        held = math.inf
        for index, value in enumerate(row):
            if -band < value - held < band:
                row[index] = held
            else:
                held = value
    held_rows = torch.from_numpy(np.array(rows)).to(tau)  # by way of an array: quicker than from lists
    return straight_through(held_rows, tau)


def dead_zone(tau: Tensor, band: float) -> Tensor:
    """Hysteresis of the paper's appendix: within the band around one half, tau is one half. (B, T) -> (B, T)."""
    return straight_through(torch.where((tau - 0.5).abs() <= band, torch.full_like(tau, 0.5), tau).detach(), tau)


def straight_through(value: Tensor, gradient: Tensor) -> Tensor:
    """`value`, with the gradient of `gradient`."""
    return value + (gradient - gradient.detach()) if gradient.requires_grad else value


def near_crossings(distances: Tensor, reach: int) -> Tensor:
    """Positions within `reach` of a rising zero crossing of any field. distances: (B, T, K) -> (B, T) boolean."""
    before = distances < 0
    rising = (before[:, :-1] & ~before[:, 1:]).any(-1)
    # A crossing lies between two positions: both of them, and `reach` more to either side.
    marks = F.pad(rising.float(), (reach + 1, reach + 1)).unsqueeze(1)
    return F.max_pool1d(marks, 2 * reach + 2, 1).squeeze(1) > 0


def crossing_weight(distances: Tensor) -> Tensor:
    """How much a distance has to do with where its field crosses zero: 1 up to one position away, 0 from two on."""
    return (2.0 - distances.abs()).clamp(0.0, 1.0)


def keep_highest(scores: Tensor, mask: Tensor, share: float) -> Tensor:
    """The `floor(share * length)` highest scores of each sequence, ties in order. All (B, T); boolean result."""
    ranked = scores.masked_fill(~mask, float("-inf")).argsort(dim=1, descending=True, stable=True)
    counts = (mask.sum(1, keepdim=True).double() * share + 1e-9).floor().long()
    chosen = torch.arange(scores.shape[1], device=scores.device) < counts
    return torch.zeros_like(mask).scatter(1, ranked, chosen) & mask
