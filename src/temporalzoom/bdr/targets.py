"""Regression targets: the signed distance of every position to the nearest boundary."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Numbers = ArrayLike | Tensor
Channels = Literal["start_end", "joint"]


def as_float64(values: Numbers) -> Floats:
    """Numbers of any type and device as a numpy array of the same shape."""
    if isinstance(values, Tensor):
        return values.detach().to("cpu", torch.float64).numpy()
    return np.asarray(values, np.float64)


def distance_targets(
    starts: Numbers,
    ends: Numbers,
    length: int,
    *,
    channels: Channels = "start_end",
    radius: float | None = 16.0,
    smoothing: float = 0.0,
    first: float = 0.0,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """The field `d(t) = t - b(t)`, `b(t)` the boundary nearest to `t`: `(length, K)`.

    starts, ends: (N,), (M,) boundaries in grid units, in any order, also outside the grid.
    channels: `start_end` gives K = 2 fields (0 = nearest start, 1 = nearest end); `joint` K = 1 over all boundaries.
    radius: distances are clipped at `+-radius`; None keeps them whole, the paper's literal form.
    smoothing: standard deviation of the annotations in grid units, see `_smoothing_correction`; at most
    `(radius - 1) / 6`, or it would reach from where the field is clipped to its boundary.
    first: the position of index 0, so that a crop gets the field of the whole sequence.

    A position exactly midway belongs to the later boundary; with that choice boundaries two positions apart are still
    resolved by `extract_boundaries`. Where no boundary of a kind exists the field is the constant `-radius` ("none so
    far"), and `-length` without a radius: finite, never a crossing, and of weight zero in `distance_weights`.
    """
    if radius is not None and not radius >= 1:
        raise ValueError(f"radius must be at least 1, or it clips the two positions around a boundary; got {radius!r}")
    if not smoothing >= 0:
        raise ValueError(f"smoothing must not be negative, got {smoothing!r}")
    if radius is not None and smoothing > (widest := (radius - 1) / 6):
        raise ValueError(f"smoothing {smoothing:g} is too wide for radius {radius:g}: (radius - 1) / 6 is {widest:.4g}")
    fields = []
    for boundaries in _boundary_sets(starts, ends, channels):
        distance, gap = _nearest(boundaries, length, first)
        field = distance if radius is None else distance.clamp(-radius, radius)
        if smoothing > 0:
            field = field + _smoothing_correction(distance, gap, radius, smoothing)
        fields.append(field.masked_fill(field.isinf(), -float(length)))
    return torch.stack(fields, -1).to(device=device, dtype=dtype or torch.get_default_dtype())


def distance_weights(
    starts: Numbers,
    ends: Numbers,
    length: int,
    *,
    channels: Channels = "start_end",
    radius: float | None = 16.0,
    far_weight: float = 0.1,
    first: float = 0.0,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """How much each position counts in the loss: `(length, K)`. Arguments as in `distance_targets`.

    `1 - |d| / radius`, and at least `far_weight`: what is read off the field is where it crosses zero, and far away no
    local feature tells which boundary is nearer. `far_weight` where there is no boundary at all. With `radius=None`: 1
    everywhere, and 0 where there is no boundary, as no distance exists.
    """
    weights = []
    for boundaries in _boundary_sets(starts, ends, channels):
        distance, _ = _nearest(boundaries, length, first)
        if radius is None:
            weights.append(distance.isfinite().double())
        else:
            weights.append((1 - distance.abs() / radius).clamp(min=far_weight))
    return torch.stack(weights, -1).to(device=device, dtype=dtype or torch.get_default_dtype())


def jump_mask(targets: Tensor) -> Tensor:
    """Steps on which the target itself jumps: `(..., T, K)` -> `(..., T-1, K)` bool.

    A distance field rises with slope 1, or 0 where it is clipped; it falls only where the nearest boundary changes.
    """
    return targets.diff(dim=-2) < 0


def _boundary_sets(starts: Numbers, ends: Numbers, channels: Channels) -> list[Tensor]:
    """One tensor of boundaries per channel: sorted, distinct, float64."""
    columns = {"starts": starts, "ends": ends}
    tensors = [torch.tensor(as_float64(c)).reshape(-1) for c in columns.values()]
    for name, tensor in zip(columns, tensors, strict=True):
        if not bool(tensor.isfinite().all()):
            raise ValueError(f"{name} holds a value that is not finite")
    if channels == "start_end":
        return [tensor.unique() for tensor in tensors]
    if channels == "joint":
        return [torch.cat(tensors).unique()]
    raise ValueError(f"channels must be 'start_end' or 'joint', got {channels!r}")


def _nearest(boundaries: Tensor, length: int, first: float) -> tuple[Tensor, Tensor]:
    """Unclipped distances `(T,)`, and the gap `(T,)` between the boundaries to the left and right of each position.

    Boundaries at +-infinity close both ends, so that the gap is infinite there and without any boundary `d = -inf`.
    """
    positions = first + torch.arange(length, dtype=torch.float64)
    infinity = boundaries.new_tensor([math.inf])
    closed = torch.cat([-infinity, boundaries, infinity])
    right = torch.searchsorted(boundaries, positions, right=True) + 1
    after_left, before_right = positions - closed[right - 1], closed[right] - positions
    distance = torch.where(after_left < before_right, after_left, -before_right)
    return distance, closed[right] - closed[right - 1]


def _smoothing_correction(distance: Tensor, gap: Tensor, radius: float | None, smoothing: float) -> Tensor:
    """What a convolution of the clipped field with a Gaussian adds to it: `(T,)`.

    The expectation of `d` over an uncertain boundary. Linear parts keep their value, so only the corners at `+-radius`
    and the jumps at midpoints soften, both in closed form. A Gaussian wide for its gap would move the zeros and, from
    `sigma = gap / sqrt(2 pi)` on, turn the falling jump into a rising one: a false boundary. So within each gap sigma
    is at most a sixth of `reach - 1`, the way from the sample beside a boundary to its corner or jump (a gap may be too
    narrow for the sigma asked for; a radius is not, `distance_targets` refuses it), and what is left within one
    position of a boundary (1e-9 of the jump's height) is dropped: there the field is exactly `t - b`.
    """
    beside = distance.abs() <= 1
    nothing = distance.isinf()
    far = 1e9  # stands for infinity where infinity times zero would appear
    gap, distance = gap.clamp(max=far), distance.clamp(-far, far)
    reach = (gap / 2).clamp(max=far if radius is None else radius)  # from a boundary to its corner or jump
    sigma = ((reach - 1) / 6).clamp(0.0, smoothing)
    safe = sigma.clamp(min=1e-12)
    size = distance.abs()

    def corner(offset: Tensor) -> Tensor:
        """Convolved minus sharp `max(0, x)`, at `x = offset`: an even function."""
        u = (offset / safe).abs()
        return safe * (torch.exp(-0.5 * u**2) / math.sqrt(2 * math.pi) - u * torch.special.ndtr(-u))

    jump = 2 * reach * torch.special.ndtr((size - gap / 2) / safe)
    # On one side of a boundary: the corner where clipping begins, the one where it ends, and the jump between them.
    correction = distance.sign() * (corner(gap - reach - size) - corner(size - reach) - jump)
    return correction.masked_fill((sigma == 0) | beside | nothing, 0.0)
