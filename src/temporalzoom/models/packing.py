"""Tokens of a batch that stay, packed: gather, run, scatter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from temporalzoom.models.layers import TokenLayout
from temporalzoom.models.outputs import Outputs


@dataclass(frozen=True)
class Packed:
    """index: (R, M) into the flattened batch; mask: (R, M), entries that hold a token to run; visible: (R, M), tokens
    that the others may attend to; window: of attention; length: of a sequence.

    One row (R = 1) holds the whole batch, whatever the number of tokens of each sequence, and nothing is padded. With
    global attention that row would cost the square of the batch: there each sequence has a row of its own (R = B),
    padded to the longest.
    """

    index: Tensor
    mask: Tensor
    visible: Tensor
    window: int | None
    length: int

    @classmethod
    def of(
        cls,
        tokens: Tensor,
        window: int | None,
        *,
        visible: Tensor | None = None,
        dense: bool = False,
        by_sequence: bool = False,
    ) -> Packed:
        """tokens: (B, T), those to run; visible: (B, T), those that the others may attend to, default the same.

        dense: every position is an entry, and masks do the rest: the same result at full cost. by_sequence: a row for
        each sequence.
        """
        batch, length = tokens.shape
        entries = torch.ones_like(tokens) if dense else tokens
        if by_sequence and batch > 1:
            index, filled = _leading(entries)
            index = index + length * torch.arange(batch, device=tokens.device)[:, None]
        else:
            index = entries.flatten().nonzero().squeeze(1)[None]
            filled = torch.ones_like(index, dtype=torch.bool)
        mask = filled & tokens.flatten()[index] if dense else filled
        seen = mask if visible is None else filled & visible.flatten()[index]
        return cls(index, mask, seen, window, length)

    @property
    def sequence(self) -> Tensor:
        """(R, M): which sequence of the batch an entry is from."""
        return self.index.div(self.length, rounding_mode="floor")

    @property
    def positions(self) -> Tensor:
        """(R, M); in a row of several sequences, these follow each other farther apart than the window reaches."""
        if len(self.index) > 1:
            return self.index - self.sequence * self.length
        return self.index + self.sequence * (self.length + (self.window or 0))

    @cached_property
    def layout(self) -> TokenLayout:
        return TokenLayout.build(self.visible, self.window, self.positions)

    def select(self, keep: Tensor) -> tuple[Packed, Tensor]:
        """Only the entries where `keep`, (R, M) -> the smaller packing (R, N), and where its entries were: (R, N) into
        the flattened entries."""
        if len(keep) > 1:
            chosen, filled = _leading(keep)
            chosen = chosen + keep.shape[1] * torch.arange(len(keep), device=keep.device)[:, None]
        else:
            chosen = keep.flatten().nonzero().squeeze(1)[None]
            filled = torch.ones_like(chosen, dtype=torch.bool)
        index, mask, visible = (
            take(x.unsqueeze(-1), chosen).squeeze(-1) for x in (self.index, self.mask, self.visible)
        )
        return Packed(index, mask & filled, visible & filled, self.window, self.length), chosen

    def masked(self, keep: Tensor) -> Packed:
        """All entries; those where not `keep`, (R, M), neither run nor are seen."""
        return Packed(self.index, self.mask & keep, self.visible & keep, self.window, self.length)

    def gather(self, values: Tensor) -> Tensor:
        """(B, T, D) -> (R, M, D)."""
        return take(values, self.index)

    def gather_around(self, *values: Tensor, reach: int) -> tuple[Tensor, ...]:
        """Each of N entries with its neighbours, zero beyond the ends: (B, T, D) each -> (N, 2 reach + 1, D) each."""
        first = (self.index + self.sequence * 2 * reach).flatten()
        around = first[:, None] + torch.arange(2 * reach + 1, device=first.device)

        def gather(x: Tensor) -> Tensor:
            padded = F.pad(x, (0, 0, reach, reach)).flatten(0, 1)
            if torch.jit.is_tracing():
                return padded[around]
            # index_select, not indexing: where indices repeat, its gradient adds up in one order on any threads.
            return padded.index_select(0, around.flatten()).unflatten(0, around.shape)

        return tuple(gather(x) for x in values)

    def scatter_into(self, base: Outputs, packed: Outputs) -> Outputs:
        """`base` (B, T, ...) with the rows of the entries to run (R, M, ...) in their places."""
        every, valid = self.index.flatten(), self.mask.flatten().nonzero().squeeze(1)
        some = len(valid) < len(every)  # in sparse execution mostly all are valid: nothing to pick
        index = every[valid] if some else every

        def placed(below: Tensor | None, above: Tensor | None) -> Tensor | None:
            if below is None or above is None:
                return None
            rows = above.flatten(0, 1)
            rows = rows.index_select(0, valid) if some else rows
            return put(below.flatten(0, 1), index, rows.to(below.dtype)).view_as(below)

        names = [name for name in vars(base) if name != "depth"]
        return Outputs(**{name: placed(getattr(base, name), getattr(packed, name)) for name in names})  # type: ignore


def take(values: Tensor, index: Tensor) -> Tensor:
    """values: (B, T, D), index: (R, M) into its flattened rows -> (R, M, D)."""
    return in_rows(values.flatten(0, 1).index_select(0, index.flatten()), len(index))


def in_rows(values: Tensor, rows: int) -> Tensor:
    """(R * M, ...) -> (R, M, ...)."""
    return values[None] if rows == 1 else values.unflatten(0, (rows, -1))  # exporters take what is split for constant


def put(below: Tensor, index: Tensor, rows: Tensor) -> Tensor:
    """`below`, (L, ...), with `rows`, (N, ...), in the places `index`, (N,), each of them once; N may be 0."""
    # Not `index_copy`, which exporters get wrong.
    return below.scatter(0, index.view(-1, *[1] * (rows.ndim - 1)).expand_as(rows), rows)


def _leading(keep: Tensor) -> tuple[Tensor, Tensor]:
    """Where each row is True, the first of them first, padded with other entries of the row to the fullest row.

    (R, M) boolean -> entries (R, N), each of a row but once, and which of them are True, (R, N).
    """
    counts = keep.sum(1, keepdim=True)
    most = int(counts.max())
    order = keep.to(torch.uint8).argsort(dim=1, descending=True, stable=True)[:, :most]
    return order, torch.arange(most, device=keep.device) < counts
