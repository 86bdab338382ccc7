"""Where depth is worth it: local-context uncertainty, the depth `tau`, hysteresis, token importance."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.convolution import TokenConvolution
from temporalzoom.models.layers import Encoder, TokenLayout

LocalContext = Literal["convolution", "attention"]

LOCAL_WINDOW = 3
LOCAL_DEPTH = 3


def gradient_magnitude(features: Tensor, mask: Tensor) -> Tensor:
    """`||F[t+1] - F[t-1]||`, reflected at the edges of each sequence. features: (B, T, D), mask: (B, T) -> (B, T).

    In units of its own mean, so that it means the same for features of any scale.
    """
    # Reflected at an edge, both neighbours are the same position: the difference is zero there.
    inner = F.pad(mask[:, :-2] & mask[:, 2:], (1, 1)) if mask.shape[1] > 2 else torch.zeros_like(mask)
    size = torch.linalg.vector_norm(features[:, 2:] - features[:, :-2], dim=-1)
    size = F.pad(size, (1, 1))[:, : mask.shape[1]] * inner
    mean = size.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
    return size / mean.clamp(min=1e-6)


def gate(inputs: int, hidden: int, bias: float) -> nn.Sequential:
    """A small MLP with one output that starts at `bias`."""
    last = nn.Linear(hidden, 1)
    nn.init.normal_(last.weight, std=0.01)
    nn.init.constant_(last.bias, bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), last)


class LocalConvolutions(nn.Module):
    """Residual convolutions of size 3. Tokens (B, T, D), mask (B, T) -> (B, T, D)."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(TokenConvolution(width, width) for _ in range(depth))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        valid = mask.unsqueeze(-1)
        for convolution in self.convolutions:
            tokens = tokens * valid
            tokens = tokens + F.gelu(convolution(tokens))
        return tokens


class Uncertainty(nn.Module):
    """`log sigma^2_t = MLP([local context; g_t; shallow token])`, (B, T).

    The local context is narrow, three layers deep, and one pass over the sequence. The paper has a transformer on the
    +-3 positions around each: one window per position would cost more than the deep path that it is meant to spare.
    `convolution`: three of size 3 see just these positions; `attention`: three layers of banded attention, +-3
    positions each, which costs more.
    """

    def __init__(self, width: int, narrow: int, context: LocalContext = "convolution", limit: float = 8.0) -> None:
        super().__init__()
        self.limit = limit
        self.narrow = nn.Linear(width, narrow)
        if context == "attention":
            self.context: nn.Module = Encoder(narrow, 1, LOCAL_DEPTH, LOCAL_WINDOW, expansion=1, mix=False)
        else:
            self.context = LocalConvolutions(narrow, LOCAL_DEPTH)
        self.head = gate(narrow + 1 + width, narrow, bias=2.0)

    def forward(self, tokens: Tensor, gradient: Tensor, mask: Tensor) -> Tensor:
        """tokens: (B, T, D), gradient: (B, T), mask: (B, T) -> (B, T)."""
        narrow = self.narrow(tokens)
        if isinstance(self.context, LocalConvolutions):
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
    return straight_through(tau.new_tensor(rows), tau)


def dead_zone(tau: Tensor, band: float) -> Tensor:
    """Hysteresis of the paper's appendix: within the band around one half, tau is one half. (B, T) -> (B, T)."""
    return straight_through(torch.where((tau - 0.5).abs() <= band, torch.full_like(tau, 0.5), tau).detach(), tau)


def straight_through(value: Tensor, gradient: Tensor) -> Tensor:
    """`value`, with the gradient of `gradient`."""
    return value + (gradient - gradient.detach()) if gradient.requires_grad else value


def near_crossings(distances: Tensor, reach: int) -> Tensor:
    """Positions within `reach` of a rising zero crossing of any field. distances: (B, T, K) -> (B, T) boolean."""
    rising = (distances[:, :-1] < 0) & (distances[:, 1:] >= 0)
    crossing = F.pad(rising.any(-1), (0, 1)) | F.pad(rising.any(-1), (1, 0))
    if reach == 0:
        return crossing
    return F.max_pool1d(crossing.float().unsqueeze(1), 2 * reach + 1, 1, reach).squeeze(1) > 0


def keep_highest(scores: Tensor, mask: Tensor, share: float) -> Tensor:
    """The `floor(share * length)` highest scores of each sequence, ties in order. All (B, T); boolean result."""
    ranked = scores.masked_fill(~mask, float("-inf")).argsort(dim=1, descending=True, stable=True)
    counts = (mask.sum(1, keepdim=True).double() * share + 1e-9).floor().long()
    chosen = torch.arange(scores.shape[1], device=scores.device) < counts
    return torch.zeros_like(mask).scatter(1, ranked, chosen) & mask
