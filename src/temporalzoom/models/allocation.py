"""Where depth goes without a predictor: at random, at regular distances, at true boundaries. Controls of `tzn`.

Each ranks the positions of a sequence; the first `share` of them go deep. All (B, T).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from temporalzoom.processes import uniform

Allocation = Literal["tau", "random", "regular", "oracle", "none"]
# How far from a true boundary a position is at most that the oracle is told of: the ones to either side of it.
ORACLE_REACH = 1


def ranks(allocation: Allocation, mask: Tensor, share: float, boundaries: Tensor | None, seed: int | None) -> Tensor:
    """Scores of which the highest go deep. boundaries: of the oracle, positions beside a true one. seed: of the random
    ones; None: new ones with each call."""
    if allocation == "random":
        return uniform(mask.shape, mask) if seed is None else shuffled(mask, seed)
    if allocation == "regular":
        return spaced(mask, share)
    if boundaries is None:
        raise ValueError("the oracle needs the true boundaries")
    return -distance_to(boundaries)


def shuffled(mask: Tensor, seed: int) -> Tensor:
    """A pseudo-random number from 0 to 1 for each position, which depends on it and on the seed only: a batch gives
    what its sequences give alone, on every device."""
    value = torch.arange(mask.shape[1], device=mask.device) + 1 + 7919 * (seed % 2**16)
    for _ in range(3):  # multiply and shift, in 32 bits
        value = (value * 0x45D9F3B) & 0xFFFFFFFF
        value = value ^ (value >> 16)
    return (value.float() / 2**32).expand(mask.shape)


def spaced(mask: Tensor, share: float) -> Tensor:
    """1 at `floor(share * length)` positions at equal distances, as far as whole positions can be; 0 elsewhere."""
    place = torch.arange(mask.shape[1] + 1, dtype=torch.float32, device=mask.device)
    passed = (place * share + 1e-6).floor()
    return (passed[1:] > passed[:-1]).float().expand(mask.shape)


def distance_to(marked: Tensor) -> Tensor:
    """How many positions away the nearest marked one is; the length where none is. marked: boolean."""
    length = marked.shape[1]
    here = torch.arange(length, device=marked.device).expand(marked.shape)
    before = torch.where(marked, here, -length).cummax(1).values
    after = torch.where(marked, here, 2 * length).flip(1).cummin(1).values.flip(1)
    return torch.minimum(here - before, after - here).clamp(max=length).float()
