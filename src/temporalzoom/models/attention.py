"""Local self-attention without a T x T tensor.

Queries are cut into blocks; each block sees its own keys and those of `window` entries on either side. A mask on the
*positions* makes it exact: a query attends to the valid tokens at most `window` positions away and to nothing else.
Cost and memory are linear in the length. The same function serves packed sequences (only some positions kept, in
ascending order): tokens within `window` positions of each other are at most `window` entries apart once packed.
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

    Local: barred (B, N, 1, block, keys) and distance (B or 1, N or 1, block, keys) for N blocks of queries, where
    keys = block + 2 * window. Global: barred (B, 1, T, T), distance (B, T, T), window None.
    barred: 0 for keys that may be seen, -inf for the others;
    distance: key position minus query position, clipped to +-reach and shifted to 0 .. 2 * reach.
    """

    barred: Tensor
    distance: Tensor
    window: int | None


def local_layout(positions: Tensor, mask: Tensor, window: int, contiguous: bool = False) -> AttentionLayout:
    """positions: (B, T) ascending integers; mask: (B, T); contiguous: positions are 0..T-1 in every row."""
    batch, length = positions.shape
    block = max(window, MIN_BLOCK)
    keys = block + 2 * window
    blocks = -(-length // block)
    padding = blocks * block - length
    query_position = F.pad(positions, (0, padding)).view(batch, blocks, block, 1)
    key_position = F.pad(positions, (window, window + padding)).unfold(1, keys, block).unsqueeze(2)
    key_valid = F.pad(mask, (window, window + padding)).unfold(1, keys, block).unsqueeze(2)
    difference = key_position - query_position
    # A padded query sees itself, so that no row of the softmax is empty.
    itself = torch.arange(keys, device=mask.device) == torch.arange(block, device=mask.device)[:, None] + window
    allowed = ((difference.abs() <= window) & key_valid) | itself
    if contiguous:  # every block looks the same: one table serves all
        entry = torch.arange(keys, device=mask.device) - torch.arange(block, device=mask.device)[:, None] - window
        difference = entry[None, None]
    return AttentionLayout(_barrier(allowed).unsqueeze(2), difference.clamp(-window, window) + window, window)


def _barrier(allowed: Tensor) -> Tensor:
    """What a boolean mask adds to similarities: 0 where allowed, -inf elsewhere. Adding is faster than masking."""
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill_(~allowed, float("-inf"))


def global_layout(positions: Tensor, mask: Tensor, reach: int, limit: int | None = None) -> AttentionLayout:
    """Every valid token sees every valid token, up to `limit` positions away. positions, mask: (B, T)."""
    difference = positions[:, None, :] - positions[:, :, None]
    allowed = mask[:, None, :] if limit is None else mask[:, None, :] & (difference.abs() <= limit)
    allowed = allowed | torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    return AttentionLayout(_barrier(allowed).unsqueeze(1), difference.clamp(-reach, reach) + reach, None)


def attend(query: Tensor, key: Tensor, value: Tensor, layout: AttentionLayout, bias: Tensor) -> Tensor:
    """query, key, value: (B, T, H, E); bias: (H, 2 * reach + 1), what a distance adds to similarity -> (B, T, H, E)."""
    batch, length, heads, width = query.shape
    # index_select, not indexing: where indices repeat, its gradient is added up in one order, whatever the threads do.
    by_distance = bias.index_select(1, layout.distance.flatten()).view(heads, *layout.distance.shape).movedim(0, -3)
    query = query * width**-0.5
    window = layout.window
    if window is None:
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        return _weighted_sum(query, key, value, by_distance, layout.barred).transpose(1, 2)
    blocks, block, keys = layout.barred.shape[1], layout.barred.shape[3], layout.barred.shape[4]
    padding = blocks * block - length

    def around_blocks(x: Tensor) -> Tensor:
        padded = F.pad(x, (0, 0, 0, 0, window, window + padding))
        return padded.unfold(1, keys, block).transpose(3, 4)  # (B, N, H, keys, E)

    if padding:
        query = F.pad(query, (0, 0, 0, 0, 0, padding))
    queries = query.reshape(batch, blocks, block, heads, width).transpose(2, 3)
    attended = _weighted_sum(queries, around_blocks(key), around_blocks(value), by_distance, layout.barred)
    return attended.transpose(2, 3).reshape(batch, blocks * block, heads, width)[:, :length]


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
