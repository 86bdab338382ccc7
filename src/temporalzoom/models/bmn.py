"""`bmn`: Boundary-Matching Network (Lin et al., ICCV 2019), which scores every segment of a map of (start, duration).

Cell (d, s) of a map stands for the segment [s, s + d + 1] in grid units, where position t is the point t: it starts at
position s, ends at position e = s + d + 1 and is d + 1 long. A cell exists where both positions are in the sequence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.flop_counter import flop_registry, register_flop_formula

from temporalzoom.bdr import DistanceHead
from temporalzoom.models.inputs import Standardize, Stem
from temporalzoom.models.outputs import BoundaryMaps, Outputs, Points
from temporalzoom.models.registry import no_depth, register

GROUPS = 4  # of the base and boundary convolutions, as published
BIN = 3  # points that are averaged to one sample, as published
TILE = 32  # start positions, BLOCK: channels, that are read at once: what they need fits into a processor's cache
BLOCK = 64
PEAK = 0.5  # a boundary may also stand where its probability exceeds this share of the highest
PRIOR = 0.01  # classes are rare, at first
FARTHEST = 30.0  # log-odds of scores are clamped here: finite, and beyond float32's resolution of a probability

Bag = tuple[Tensor, Tensor, Tensor]  # indices, offsets, weights of `embedding_bag`


def cells_inside(mask: Tensor, durations: int) -> Tensor:
    """Which cells have both their ends in the sequence. mask: (B, T) -> (B, D, T)."""
    start, duration = torch.arange(mask.shape[1], device=mask.device), torch.arange(durations, device=mask.device)
    end = start + duration[:, None] + 1
    reaches = mask[:, end.clamp(max=mask.shape[1] - 1)] & (end < mask.shape[1])
    return mask[:, None] & reaches


def sampling_kernel(durations: int, samples: int, widened: float) -> tuple[Tensor, int]:
    """The boundary-matching layer's sampling matrix, of which all starts share the rows.

    Returns (D, N, K) and `first`: sample n of cell (d, s) is the sum over k of [d, n, k] times position
    s + first + k. `samples` bins of three points each, linearly interpolated, span the segment and, as published, a
    share `widened` of its length plus one before and after it. Positions outside the sequence count as zero.
    """
    length = torch.arange(1, durations + 1, dtype=torch.float64)[:, None]
    before = (length + 1) * widened
    points = torch.arange(samples * BIN, dtype=torch.float64) / max(samples * BIN - 1, 1) * (length + 2 * before)
    points = points - before
    below = points.floor()
    first = int(below.min())
    rows = torch.arange(durations)[:, None].expand_as(points)
    bins = (torch.arange(samples * BIN) // BIN).expand_as(points)
    place, share = (below - first).long(), points - below
    kernel = torch.zeros(durations, samples, int(place.max()) + 2, dtype=torch.float64)
    kernel.index_put_((rows, bins, place), (1 - share) / BIN, accumulate=True)
    kernel.index_put_((rows, bins, place + 1), share / BIN, accumulate=True)
    return kernel.float(), first


class _ReadTiles(torch.autograd.Function):
    """Weighted sums of table rows, the same ones in every tile. (G, P, N, W) -> (G, tiles, TILE * D, W).

    A matrix product with a sparse matrix; `embedding_bag` does it ten times as fast as torch's sparse formats.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, reach: int, forth: Bag, back: Bag) -> Tensor:
        ctx.reach, ctx.back, ctx.shape = reach, back, table.shape
        groups, length, _, width = table.shape
        tiles = (length - reach) // TILE
        read = table.new_empty(groups, tiles, len(forth[1]), width)
        for group, tile in product(range(groups), range(tiles)):
            rows = table[group, tile * TILE : (tile + 1) * TILE + reach].reshape(-1, width)
            read[group, tile] = _bag(rows, forth)
        return read

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        table = gradient.new_zeros(ctx.shape)
        groups, _, samples, width = ctx.shape
        gradient = gradient.contiguous()
        for group, tile in product(range(groups), range(gradient.shape[1])):
            rows = _bag(gradient[group, tile], ctx.back).view(-1, samples, width)
            table[group, tile * TILE : (tile + 1) * TILE + ctx.reach] += rows
        return table, None, None, None


def _bag(rows: Tensor, bag: Bag) -> Tensor:
    indices, offsets, weights = bag
    return F.embedding_bag(indices, rows, offsets, mode="sum", per_sample_weights=weights.to(rows.dtype))


def _bag_flops(table: Any, indices: Any, *others: Any, **named: Any) -> int:
    """From shapes: a multiplication and an addition for every weight and channel. torch counts none of them."""
    return 2 * indices[0] * table[1]


for _operation in (torch.ops.aten._embedding_bag, torch.ops.aten._embedding_bag_forward_only):
    if _operation not in flop_registry:
        register_flop_formula(_operation)(_bag_flops)


class BoundaryMatching(nn.Module):
    """Samples of every cell's segment and the convolution over them. (B, C, T) -> (B, O, D, T), before the ReLU.

    Published as a product with a (T, N * D * T) matrix and a convolution of the (C, N, D, T) result. Both are linear
    and commute: here every sample's part of the convolution is applied at all positions first, then read where the
    cells sample it. Same numbers, without the large tensor and C times fewer operations per cell.
    """

    def __init__(self, width: int, output_width: int, durations: int, samples: int, widened: float) -> None:
        super().__init__()
        self.durations, self.samples = durations, samples
        self.block = math.gcd(output_width, BLOCK)
        self.convolution = nn.Conv3d(width, output_width, (samples, 1, 1))  # holds the weights
        kernel, self.first = sampling_kernel(durations, samples, widened)
        self.reach = kernel.shape[2] - 1
        duration, sample, place = kernel.nonzero(as_tuple=True)  # by duration
        start = torch.arange(TILE)[:, None]
        cell = (start * durations + duration).flatten()
        row = ((start + place) * samples + sample).flatten()
        weight = kernel[duration, sample, place].repeat(TILE)
        by_row = row.argsort(stable=True)
        bags = {
            "forth": (row, cell, weight, TILE * durations),
            "back": (cell[by_row], row[by_row], weight[by_row], (TILE + self.reach) * samples),
        }
        for name, (indices, owners, weights, count) in bags.items():
            sizes = torch.bincount(owners, minlength=count)
            # Follow from the settings: not stored with the weights.
            self.register_buffer(f"{name}_indices", indices.int(), persistent=False)
            self.register_buffer(f"{name}_offsets", (sizes.cumsum(0) - sizes).int(), persistent=False)
            self.register_buffer(f"{name}_weights", weights, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, width, length = tokens.shape
        tiles = math.ceil(length / TILE)
        after = tiles * TILE + self.reach + self.first - length
        padded = F.pad(tokens, (-self.first, after)).transpose(1, 2)  # (B, P, C)
        weight = self.convolution.weight.view(-1, self.block, width, self.samples).permute(0, 2, 3, 1)
        table = padded @ weight.reshape(len(weight), 1, width, -1)  # (O / W, B, P, N * W)
        table = table.to(self.forth_weights.dtype).view(-1, padded.shape[1], self.samples, self.block)
        forth, back = (self._bag(name) for name in ("forth", "back"))
        read = _ReadTiles.apply(table, self.reach, forth, back)
        read = read.view(-1, batch, tiles * TILE, self.durations, self.block)[:, :, :length]
        cells = read.permute(1, 0, 4, 3, 2).reshape(batch, -1, self.durations, length)
        assert self.convolution.bias is not None
        return cells.add_(self.convolution.bias[:, None, None])  # in place: it is the largest tensor of all

    def _bag(self, name: str) -> Bag:
        indices, offsets, weights = (getattr(self, f"{name}_{part}") for part in ("indices", "offsets", "weights"))
        return indices, offsets, weights

    forth_weights: Tensor


class ProposalEvaluation(nn.Module):
    """Two confidences of every cell, logits: (B, C, T) -> (B, 2, D, T)."""

    def __init__(self, width: int, durations: int, samples: int, widened: float) -> None:
        super().__init__()
        narrow = max(width // 2, 1)
        self.input = nn.Conv1d(width, width, 3, padding=1)
        self.matching = BoundaryMatching(width, 2 * width, durations, samples, widened)
        self.reduce = nn.Conv2d(2 * width, narrow, 1)
        self.neighbours = nn.ModuleList(nn.Conv2d(narrow, narrow, 3, padding=1) for _ in range(2))
        self.output = nn.Conv2d(narrow, 2, 1)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        inside = cells_inside(mask, self.matching.durations)[:, None]
        cells = self.matching(F.relu(self.input(tokens)) * mask[:, None])
        cells = F.relu(self.reduce(F.relu(cells, inplace=True)))
        for convolution in self.neighbours:
            cells = F.relu(convolution(cells * inside))  # a cell that leaves the sequence says nothing to others
        return self.output(cells)


class Branch(nn.Module):
    """Two temporal convolutions, masked. (B, C, T) -> (B, outputs, T)."""

    def __init__(self, width: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.hidden = nn.Conv1d(width, width, 3, padding=1, groups=math.gcd(GROUPS, width))
        self.output = nn.Conv1d(width, outputs, kernel, padding=kernel // 2)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        return self.output(F.relu(self.hidden(tokens)) * mask[:, None])


class BMN(nn.Module):
    """Base module, temporal evaluation (boundaries), proposal evaluation (cells); for several classes, a class head.

    `width` 256 with 32 samples is the published network: 256 channels along time, 512 out of the samples, 128 in the
    map. There is no dropout in it; here it acts on the base features. The published network knows no classes: where
    there are several, the classes of a segment are the mean of those of its positions.
    """

    def __init__(
        self,
        input_width: int,
        classes: int,
        *,
        width: int = 128,
        durations: int = 64,
        samples: int = 32,
        widened: float = 0.5,
        dropout: float = 0.0,
        standardize: bool = False,
        stem: Sequence[int] = (),
        stem_window: int | None = None,
        distance_channels: int | None = None,
    ) -> None:
        super().__init__()
        self.durations, self.class_count = durations, classes
        self.standard = Standardize(input_width) if standardize else None
        self.stem = Stem(input_width, width, stem, stem_window) if stem else None
        widths = (width if stem else input_width, width, width)
        self.base = nn.ModuleList(
            nn.Conv1d(before, after, 3, padding=1, groups=math.gcd(GROUPS, before, after))
            for before, after in pairwise(widths)
        )
        self.dropout = nn.Dropout(dropout)
        self.start, self.end = Branch(width, 1, 1), Branch(width, 1, 1)
        self.proposals = ProposalEvaluation(width, durations, samples, widened)
        self.classes = Branch(width, classes, 3) if classes > 1 else None
        if self.classes is not None:
            assert self.classes.output.bias is not None
            nn.init.constant_(self.classes.output.bias, -math.log((1 - PRIOR) / PRIOR))
        # Last, so that the other weights start the same without it
        self.distance = (
            DistanceHead(width, distance_channels, max(width // 2, 1), variance=True) if distance_channels else None
        )

    def forward(self, features: Tensor, mask: Tensor) -> Outputs:
        """features: (B, T, F), mask: (B, T) -> Outputs.

        In training: `maps`, and as logits those of the classes at every position (zeros for a single class), without
        offsets. Otherwise: one row per candidate segment of any sequence in the batch, as a point in its middle.
        """
        tokens = self._base(features, mask)
        starts, ends = self.start(tokens, mask)[:, 0], self.end(tokens, mask)[:, 0]
        confidence = self.proposals(tokens, mask)
        classes = None if self.classes is None else self.classes(tokens, mask).transpose(1, 2)
        maps = BoundaryMaps(starts, ends, confidence)
        if self.training:
            logits = starts.new_zeros(*mask.shape, 1) if classes is None else classes
            outputs = Outputs(logits, starts.new_zeros(*mask.shape, 2), maps=maps)
        else:
            outputs = candidate_segments(maps, classes, mask)
        if self.distance is not None:
            outputs.distances, outputs.distance_log_variance = self.distance(tokens.transpose(1, 2))
        return outputs

    def _base(self, features: Tensor, mask: Tensor) -> Tensor:
        """(B, T, F) -> (B, C, T), zero in the padding."""
        tokens = features if self.standard is None else self.standard(features)
        if self.stem is not None:
            tokens = self.stem(tokens, mask)
        tokens, valid = tokens.transpose(1, 2), mask[:, None]
        for convolution in self.base:
            tokens = F.relu(convolution(tokens * valid))
        return self.dropout(tokens) * valid


def peaks(probability: Tensor, mask: Tensor) -> Tensor:
    """Where a segment may start (or end): above both neighbours, or above half the sequence's highest. (B, T)."""
    probability = probability.masked_fill(~mask, -1.0)
    around = F.pad(probability, (1, 1), value=-1.0)
    local = (probability > around[:, :-2]) & (probability > around[:, 2:])
    return mask & (local | (probability > PEAK * probability.amax(1, keepdim=True)))


def candidate_segments(maps: BoundaryMaps, classes: Tensor | None, mask: Tensor) -> Outputs:
    """The published proposal generation: cells between peaks, scored start * end * both confidences * class.

    classes: (B, T, C) logits, None for a single class that is certain; mask: (B, T).
    """
    length, durations = mask.shape[1], maps.confidence.shape[2]
    starts_here, ends_here = (peaks(torch.sigmoid(logits), mask) for logits in (maps.starts, maps.ends))
    index = torch.arange(length, device=mask.device)
    reached = (index[:, None] + torch.arange(1, durations + 1, device=mask.device)).clamp(max=length - 1)
    chosen = cells_inside(mask, durations).transpose(1, 2) & starts_here[:, :, None] & ends_here[:, reached]
    start, duration = chosen.any(0).nonzero(as_tuple=True)  # (N,), in the order of the starts
    end = start + duration + 1

    score = F.logsigmoid(maps.starts)[:, start] + F.logsigmoid(maps.ends)[:, end]
    score = (score + F.logsigmoid(maps.confidence).sum(1)[:, duration, start]).unsqueeze(-1)
    if classes is not None:
        total = F.pad(torch.sigmoid(classes).cpu().double().cumsum(1), (0, 0, 1, 0))  # mps has no double
        covered = (total[:, end.cpu() + 1] - total[:, start.cpu()]) / (duration.cpu() + 2)[:, None]
        score = score + covered.log().to(score)
    logits = (score - torch.log(-torch.expm1(score))).clamp(-FARTHEST, FARTHEST)

    half = (end - start).to(logits.dtype) / 2
    points = Points(start + half, torch.ones_like(half), half, half, chosen[:, start, duration])
    return Outputs(logits, half[:, None].expand(len(mask), -1, 2).contiguous(), points=points)


@register("bmn")
def build_bmn(depth: int | None, input_width: int, classes: int, /, **options: Any) -> BMN:
    no_depth("bmn", depth)
    return BMN(input_width, classes, **options)
