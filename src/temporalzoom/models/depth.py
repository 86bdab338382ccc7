"""Where depth is worth it: local-context uncertainty, the depth `tau`, hysteresis, token importance."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from temporalzoom.models.convolution import side_by_side
from temporalzoom.models.layers import Encoder, TokenLayout
from temporalzoom.processes import uniform, whole_batch

LocalContext = Literal["convolution", "attention"]

LOCAL_WINDOW = 3
LOCAL_DEPTH = 3
# Gates are so narrow that each ReLU that stays at zero would be a loss; GELU takes several times as long.
LEAK = 0.1
# In an exported graph, `hold` is exact for sequences of up to 2 ** DOUBLINGS positions.
DOUBLINGS = 17


def gradient_magnitude(features: Tensor, mask: Tensor, factor: Tensor | None = None) -> Tensor:
    """`||F[t+1] - F[t-1]||`, reflected at the edges of each sequence. features: (B, T, D), mask: (B, T) -> (B, T).

    factor: (D,), of each channel; of standardized features, the means cancel. In units of its own mean, so that it
    means the same for features of any scale.
    """
    length = mask.shape[1]
    if torch.jit.is_tracing() or length < 3:  # a graph is for any length: no tensor may become empty
        features, mask = F.pad(features, (0, 0, 0, 2)), F.pad(mask, (0, 2))
    # Reflected at an edge, both neighbours are the same position: the difference is zero there.
    change = features[:, 2:] - features[:, :-2]
    if factor is not None:
        change *= factor  # in place: features are wide, and memory is what this waits for
    size = torch.linalg.vector_norm(change, dim=-1)
    size = F.pad(size * (mask[:, :-2] & mask[:, 2:]), (1, 1))[:, :length]
    mean = size.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
    return size / mean.clamp(min=1e-6)


class RunningStandard(nn.Module):
    """Channels to zero mean and unit variance, by running statistics of training. (B, T, C) -> (B, T, C).

    For inputs whose scale is not known beforehand, and which change while the network learns.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("square", torch.ones(channels))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """mask: (B, T)."""
        if self.training:
            valid = whole_batch(values.detach())[whole_batch(mask)].float()
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
    """The gain expected from depth at each position, (B, T): relative to its price, where it learns the value of depth.

    Inputs: tokens (B, T, D) and evidence (B, T, K): the uncertainty of a position, and what the shallow path predicts.
    """

    def __init__(self, width: int, evidence: int, hidden: int) -> None:
        super().__init__()
        self.standard = RunningStandard(evidence)
        self.gate = gate(width + evidence, hidden, bias=0.0)

    def forward(self, tokens: Tensor, evidence: Tensor, mask: Tensor) -> Tensor:
        return self.gate(torch.cat((tokens, self.standard(evidence, mask)), -1)).squeeze(-1)


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

    A recurrence, written without a loop over positions. The value held from position j on lasts until the first
    position that leaves the band around tau[j]; where that is follows from the extremes of stretches of 1, 2, 4, ...
    positions. These positions, chained from the first one on, are those whose values are held; the chain is followed
    in steps of 1, 2, 4, ... links.
    """
    values, length = tau.detach().double(), tau.shape[1]
    doublings = DOUBLINGS if torch.jit.is_tracing() else length.bit_length()
    here = torch.arange(length, device=tau.device)
    highest, lowest = [values], [values]
    for level in range(doublings - 1):
        ahead = (here + 2**level).clamp(max=length - 1)  # beyond the end, the last value again: it changes nothing
        highest.append(torch.maximum(highest[-1], highest[-1].index_select(1, ahead)))
        lowest.append(torch.minimum(lowest[-1], lowest[-1].index_select(1, ahead)))
    leaves = (here + 1).expand(values.shape)
    for level in reversed(range(doublings)):
        first = leaves.clamp(max=length - 1)
        stays = (highest[level].gather(1, first) - values < band) & (values - lowest[level].gather(1, first) < band)
        leaves = leaves + 2**level * stays
    leaves = leaves.clamp(max=length)
    end = leaves[:, -1:]  # one more position, where all chains stop
    following = torch.cat((leaves, end), 1)
    held = torch.cat(((here == 0).float().expand(values.shape), torch.zeros_like(end, dtype=torch.float32)), 1)
    for _ in range(doublings):
        held = (held.scatter_add(1, following, held) > 0).float()
        following = following.gather(1, following)
    # The first position of every row is held: counted over the whole batch, each finds the last one of its own row.
    held = held[:, :-1].flatten()
    anchors = held.nonzero().squeeze(1).index_select(0, held.cumsum(0).long() - 1)
    return straight_through(tau.detach().flatten().index_select(0, anchors).view_as(tau), tau)


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
    rising, none = rising.float(), torch.zeros_like(distances[:, :1, 0])
    beside = torch.cat((rising, none), 1) + torch.cat((none, rising), 1)
    return F.max_pool1d(beside.unsqueeze(1), 2 * reach + 1, 1, reach).squeeze(1) > 0


def crossing_weight(distances: Tensor) -> Tensor:
    """How much a distance has to do with where its field crosses zero: 1 up to one position away, 0 from two on."""
    return (2.0 - distances.abs()).clamp(0.0, 1.0)


def gumbel_noise(like: Tensor) -> Tensor:
    """Gumbel noise of the shape of a tensor: adding it to logits makes the highest ones a random sample."""
    return -torch.log(-torch.log(uniform(like.shape, like, like.dtype).clamp(1e-6, 1 - 1e-6)))


def keep_highest(scores: Tensor, mask: Tensor, share: float) -> Tensor:
    """The `floor(share * length)` highest scores of each sequence, ties in order. All (B, T); boolean result."""
    # The operator of ONNX always keeps ties in order, and has no such option.
    stable = {} if torch.jit.is_tracing() else {"stable": True}
    ranked = scores.masked_fill(~mask, float("-inf")).sort(dim=1, descending=True, **stable).indices
    counts = (mask.sum(1, keepdim=True).cpu().double() * share + 1e-9).floor().long().to(mask.device)  # mps: no double
    chosen = torch.arange(scores.shape[1], device=scores.device) < counts
    return torch.zeros_like(mask).scatter(1, ranked, chosen) & mask
