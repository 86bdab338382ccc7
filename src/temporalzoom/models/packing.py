"""Tokens of a batch that stay, packed into one row: gather, run, scatter."""

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
    """index: (N,) into the flattened batch, ascending; mask: (1, N); length: of a sequence.

    One row holds the whole batch, whatever the number of active tokens in each sequence, and nothing is padded.
    """

    index: Tensor
    mask: Tensor
    window: int | None
    length: int

    @classmethod
    def of(cls, active: Tensor, window: int | None, dense: bool = False) -> Packed:
        """active: (B, T). `dense` keeps every token and masks instead: the same result at full cost."""
        index = (torch.ones_like(active) if dense else active).flatten().nonzero().squeeze(1)
        valid = active.flatten()[index] if dense else torch.ones_like(index, dtype=torch.bool)
        return cls(index, valid[None], window, active.shape[1])

    @property
    def row(self) -> Tensor:
        """(N,): which sequence of the batch a token is from."""
        return self.index.div(self.length, rounding_mode="floor")

    @property
    def positions(self) -> Tensor:
        """(1, N) ascending; sequences follow each other farther apart than the window reaches."""
        return (self.index + self.row * (self.length + (self.window or 0)))[None]

    @cached_property
    def layout(self) -> TokenLayout:
        return TokenLayout.build(self.mask, self.window, self.positions, self.length)

    def select(self, keep: Tensor) -> Packed:
        """Only the tokens where `keep`, (N,)."""
        return Packed(self.index[keep], self.mask[:, keep], self.window, self.length)

    def masked(self, keep: Tensor) -> Packed:
        """All tokens, those where not `keep` masked. keep: (N,)."""
        return Packed(self.index, self.mask & keep, self.window, self.length)

    def gather(self, values: Tensor) -> Tensor:
        """(B, T, D) -> (1, N, D)."""
        return values.flatten(0, 1).index_select(0, self.index)[None]

    def gather_around(self, *values: Tensor, reach: int) -> tuple[Tensor, ...]:
        """Each token with its neighbours, zero beyond the ends: (B, T, D) each -> (N, 2 reach + 1, D) each."""
        first = self.index + self.row * 2 * reach
        around = (first[:, None] + torch.arange(2 * reach + 1, device=self.index.device)).flatten()

        def gather(x: Tensor) -> Tensor:
            padded = F.pad(x, (0, 0, reach, reach)).flatten(0, 1)
            # index_select, not indexing: where indices repeat, its gradient adds up in one order on any threads.
            return padded.index_select(0, around).view(len(self.index), 2 * reach + 1, -1)

        return tuple(gather(x) for x in values)

    def scatter_into(self, base: Outputs, packed: Outputs) -> Outputs:
        """`base` (B, T, ...) with the rows of the valid packed tokens (1, N, ...) in their places."""
        valid = self.mask[0].nonzero().squeeze(1)
        some = len(valid) < len(self.index)  # in sparse execution all are valid: nothing to pick
        index = self.index[valid] if some else self.index

        def put(below: Tensor | None, above: Tensor | None) -> Tensor | None:
            if below is None or above is None:
                return None
            rows = above[0].index_select(0, valid) if some else above[0]
            flat = below.flatten(0, 1).index_copy(0, index, rows.to(below.dtype))
            return flat.view_as(below)

        names = [name for name in vars(base) if name != "depth"]
        return Outputs(**{name: put(getattr(base, name), getattr(packed, name)) for name in names})  # type: ignore
