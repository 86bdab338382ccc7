"""Local self-attention without a T x T tensor.

Queries are cut into blocks; each block sees its own keys and those of `window` entries on either side. A mask on the
*positions* makes it exact: a query attends to the valid tokens at most `window` positions away and to nothing else.
Cost and memory are linear in the length. The same function serves packed sequences (only some positions kept, in
ascending order): tokens within `window` positions of each other are at most `window` entries apart once packed.

While an exporter traces the network (`torch.jit.is_tracing`), sizes that depend on the data must not become constants
of the graph: windows are then gathered row by row, and packed tokens get the reach that is right for any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Larger blocks waste multiplications on masked keys, smaller ones drown in per-block overhead; measured on CPU.
MIN_BLOCK = 32


@dataclass(frozen=True)
class AttentionLayout:
    """Which keys a query may see and how far away they are; computed once per batch, shared by all layers.

    Local: barred (B or 1, N, 1, block, keys), distance (B or 1, N or 1, block, keys) for N blocks of queries, where
    keys = block + 2 * reach. Global: barred (B or 1, 1, T, T), distance (B or 1, T, T), reach None.
    barred: 0 for keys that may be seen, -inf for the others;
    distance: key position minus query position, clipped to +-window and shifted to 0 .. 2 * window;
    reach: how many entries before and after a block can hold keys that it may see.
    """

    barred: Tensor
    distance: Tensor
    reach: int | None


def local_layout(positions: Tensor, mask: Tensor, window: int, contiguous: bool = False) -> AttentionLayout:
    """positions: (B, T) ascending integers; mask: (B, T); contiguous: positions are 0..T-1 in every row."""
    batch, length = positions.shape
    reach = window if contiguous or torch.jit.is_tracing() else entries_within(positions, window)
    block = max(reach, MIN_BLOCK)
    keys = block + 2 * reach
    blocks = (length + block - 1) // block  # not -(-a // b): the integers of ONNX round towards zero
    padding = blocks * block - length
    key_valid = windows(F.pad(mask, (reach, reach + padding)), keys, block).unsqueeze(2)
    entry = torch.arange(keys, device=mask.device) - torch.arange(block, device=mask.device)[:, None] - reach
    if contiguous:  # every block looks the same: one table serves all
        difference = entry[None, None]
    else:
        query_position = F.pad(positions, (0, padding)).view(batch, blocks, block, 1)
        key_position = windows(F.pad(positions, (reach, reach + padding)), keys, block).unsqueeze(2)
        difference = key_position - query_position
    # A padded query sees itself, so that no row of the softmax is empty.
    allowed = ((difference.abs() <= window) & key_valid) | (entry == 0)
    return AttentionLayout(barrier(allowed).unsqueeze(2), difference.clamp(-window, window) + window, reach)


def entries_within(positions: Tensor, window: int) -> int:
    """How many entries apart two tokens at most `window` positions apart can be. positions: (B, T) ascending.

    Of a packed sequence few tokens are left within the window, and the blocks of keys shrink with them.
    """
    after = torch.searchsorted(positions.contiguous(), positions + window, right=True)
    return int((after - torch.arange(1, positions.shape[1] + 1, device=positions.device)).max())


def barrier(allowed: Tensor) -> Tensor:
    """What a boolean mask adds to similarities: 0 where allowed, -inf elsewhere. Adding is faster than masking."""
    return torch.zeros_like(allowed, dtype=torch.float32).masked_fill(~allowed, float("-inf"))


def windows(rows: Tensor, size: int, step: int) -> Tensor:
    """Overlapping windows of `size` rows, one every `step` rows: (B, L, ...) -> (B, N, ..., size), like `unfold`."""
    if not torch.jit.is_tracing():
        return rows.unfold(1, size, step)
    first = torch.arange(0, rows.shape[1] - size + 1, step, device=rows.device)
    return rows[:, first[:, None] + torch.arange(size, device=rows.device)].movedim(2, -1)


def bias_of(bias: Tensor, distance: Tensor) -> Tensor:
    """What each distance adds to similarity. bias: (H, 2 * reach + 1), distance: (...) -> (H, ...)."""
    if torch.jit.is_tracing():  # in one operator, which no empty dimension can confuse
        return bias[:, distance]
    # index_select, not indexing: where indices repeat, its gradient is added up in one order, whatever the threads do.
    return bias.index_select(1, distance.flatten()).view(len(bias), *distance.shape)


def global_layout(positions: Tensor, mask: Tensor, reach: int) -> AttentionLayout:
    """Every token sees every valid token, and itself. positions, mask: (B, T)."""
    difference = positions[:, None, :] - positions[:, :, None]
    entry = torch.arange(mask.shape[1], device=mask.device)
    allowed = mask[:, None, :] | (entry == entry[:, None])
    return AttentionLayout(barrier(allowed).unsqueeze(1), difference.clamp(-reach, reach) + reach, None)


def attend(query: Tensor, key: Tensor, value: Tensor, layout: AttentionLayout, bias: Tensor) -> Tensor:
    """query, key, value: (B, T, H, E); bias: (H, 2 * reach + 1), what a distance adds to similarity -> (B, T, H, E)."""
    batch, length, heads, width = query.shape
    if heads == 1 and not torch.jit.is_tracing():
        return attend_shared(query, key.squeeze(2), value.squeeze(2), layout, bias)
    by_distance = bias_of(bias, layout.distance).movedim(0, -3)
    query = query * width**-0.5
    reach = layout.reach
    if reach is None:
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        return _weighted_sum(query, key, value, by_distance, layout.barred).transpose(1, 2)
    blocks, block, keys = layout.barred.shape[1], layout.barred.shape[3], layout.barred.shape[4]
    padding = blocks * block - length

    def around_blocks(x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, 0, 0, reach, reach + padding))
        return windows(padded, keys, block).transpose(3, 4)  # (B, N, H, keys, E)

    if padding or torch.jit.is_tracing():
        query = F.pad(query, (0, 0, 0, 0, 0, padding))
    queries = query.reshape(batch, blocks, block, heads, width).transpose(2, 3)
    attended = _weighted_sum(queries, around_blocks(key), around_blocks(value), by_distance, layout.barred)
    return attended.transpose(2, 3).reshape(batch, blocks * block, heads, width)[:, :length]


def attend_shared(query: Tensor, key: Tensor, value: Tensor, layout: AttentionLayout, bias: Tensor) -> Tensor:
    """The same with one key and one value for all heads. query: (B, T, H, E), key, value: (B, T, E) -> (B, T, H, E).

    The queries of all heads are then rows of one product, larger and without a copy.
    """
    batch, length, heads, width = query.shape
    by_distance = bias_of(bias, layout.distance).movedim(0, -2)
    query = query * width**-0.5
    reach = layout.reach
    if reach is None:
        similarity = torch.matmul(query.view(batch, length * heads, width), key.transpose(1, 2))
        similarity = similarity.view(batch, length, heads, length) + by_distance + layout.barred.transpose(1, 2)
        return torch.matmul(similarity.softmax(-1).view(batch, length * heads, length), value).view(query.shape)
    blocks, block, keys = layout.barred.shape[1], layout.barred.shape[3], layout.barred.shape[4]
    padding = blocks * block - length

    def around_blocks(x: Tensor) -> Tensor:
        return windows(F.pad(x, (0, 0, reach, reach + padding)), keys, block)  # (B, N, E, keys)

    if padding or torch.jit.is_tracing():
        query = F.pad(query, (0, 0, 0, 0, 0, padding))
    similarity = torch.matmul(query.view(batch, blocks, block * heads, width), around_blocks(key))
    similarity = similarity.view(batch, blocks, block, heads, keys)
    similarity.add_(by_distance).add_(layout.barred.transpose(2, 3))
    shares = similarity.softmax(-1).view(batch, blocks, block * heads, keys)
    attended = torch.matmul(shares, around_blocks(value).transpose(2, 3))
    return attended.view(batch, blocks * block, heads, width)[:, :length]


def _weighted_sum(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, barred: Tensor) -> Tensor:
    """Written out: for blocks this small, plain products are faster on CPU than the fused kernel, backward included."""
    similarity = torch.matmul(query, key.transpose(-1, -2))
    # In place: these are the largest tensors of the network, and no gradient needs what they held before.
    similarity.add_(bias).add_(barred)
    return torch.matmul(similarity.softmax(-1), value)


def initial_bias(heads: int, reach: int) -> Tensor:
    """(heads, 2 * reach + 1): in turn, heads start by looking back, ahead, near and everywhere.

    Without that start, before and after look alike to attention, and it is slow to find out that they differ.
    """
    distance = torch.arange(-reach, reach + 1, dtype=torch.float32)
    looks = torch.stack(
        (-4.0 * (distance > 0), -4.0 * (distance < 0), -0.5 * distance.abs(), torch.zeros_like(distance))
    )
    return looks[torch.arange(heads) % len(looks)]


class SelfAttention(nn.Module):
    """Multi-head self-attention that knows how far away a token is, not where in the recording it stands."""

    def __init__(self, width: int, heads: int, reach: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"model.width {width} is not a multiple of model.heads {heads}")
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.distance_bias = nn.Parameter(initial_bias(heads, reach))

    def forward(self, tokens: Tensor, layout: AttentionLayout) -> Tensor:
        """tokens: (B, T, D) -> (B, T, D)."""
        batch, length, width = tokens.shape
        query, key, value = (
            self.query_key_value(tokens).view(batch, length, 3, self.heads, width // self.heads).unbind(2)
        )
        return self.output(attend(query, key, value, layout, self.distance_bias).reshape(batch, length, width))
