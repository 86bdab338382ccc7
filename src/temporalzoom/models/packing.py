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
    """index: (N,) into the flattened batch; positions: (1, N) ascending; mask: (1, N).

    Sequences follow each other farther apart than the window reaches, so that one row holds the whole batch, whatever
    the number of active tokens in each, and nothing is padded.
    """

    index: Tensor
    positions: Tensor
    mask: Tensor
    window: int | None
    length: int

    @classmethod
    def of(cls, active: Tensor, window: int | None, dense: bool = False) -> Packed:
        """active: (B, T). `dense` keeps every token and masks instead: the same result at full cost."""
        batch, length = active.shape
        rows = torch.arange(batch, device=active.device)[:, None] * (2 * length + (window or 0))
        positions = (rows + torch.arange(length, device=active.device)).flatten()
        chosen = torch.ones_like(active) if dense else active
        index = chosen.flatten().nonzero().squeeze(1)
        return cls(index, positions[index][None], active.flatten()[index][None], window, length)

    @cached_property
    def layout(self) -> TokenLayout:
        return TokenLayout.build(self.mask, self.window, self.positions, self.length)

    def select(self, keep: Tensor) -> Packed:
        """Only the tokens where `keep`, (N,)."""
        return Packed(self.index[keep], self.positions[:, keep], self.mask[:, keep], self.window, self.length)

    def masked(self, keep: Tensor) -> Packed:
        """All tokens, those where not `keep` masked. keep: (N,)."""
        return Packed(self.index, self.positions, self.mask & keep, self.window, self.length)

    def gather(self, values: Tensor) -> Tensor:
        """(B, T, D) -> (1, N, D)."""
        return values.flatten(0, 1).index_select(0, self.index)[None]

    def gather_around(self, *values: Tensor, reach: int) -> tuple[Tensor, ...]:
        """Each token with its neighbours, zero beyond the ends: (B, T, D) each -> (N, 2 reach + 1, D) each."""
        first = self.index + self.index.div(self.length, rounding_mode="floor") * 2 * reach
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
