"""From a configuration to a network."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from temporalzoom.bdr import distance_targets
from temporalzoom.bdr.arrays import Numbers
from temporalzoom.config import Config
from temporalzoom.errors import InputError
from temporalzoom.models import build_model

# Settings of the section `tzn` that shape the objective, not the network.
_OBJECTIVE = {
    "shallow_weight",
    "deep_weight",
    "depth_weight",
    "boundary_value",
    "compute_weight",
    "prune_weight",
    "uncertainty_weight",
}


def model_from_config(config: Config, input_width: int, classes: int, stride: float) -> nn.Module:
    """The network that `config` describes, for features of `input_width` channels every `stride` frames."""
    channels = {"start_end": 2, "joint": 1}[config.bdr.channels] if config.bdr.enabled else None
    options: dict[str, Any] = config.model.model_dump(exclude={"name"}) | {"distance_channels": channels}
    if _is_tzn(config):
        options |= config.tzn.model_dump(exclude=_OBJECTIVE | {"protect_frames", "protection"})
        options["protect"] = _protect_positions(config, stride)
    try:
        return build_model(config.model.name, input_width, classes, **options)
    except ValueError as error:
        raise InputError(str(error)) from None


def oracle_reach(config: Config, stride: float) -> int | None:
    """With `tzn.protection: oracle`: how many positions around each true boundary pruning may not drop.

    None: the truth plays no part, because the network protects the boundaries it predicts, or prunes nothing.
    """
    is_oracle = _is_tzn(config) and config.tzn.pruning and config.tzn.protection == "oracle"
    return _protect_positions(config, stride) if is_oracle else None


def near_boundaries(starts: Numbers, ends: Numbers, length: int, reach: int, first: int = 0) -> Tensor:
    """Positions within `reach` of a start or an end: (length,) boolean.

    starts, ends: (N,), in grid units of the whole recording; first: its position at index 0 of a crop.
    """
    distance = distance_targets(
        starts, ends, length, channels="joint", radius=reach + 1.0, first=float(first), dtype=torch.float64
    )
    # Boundaries come from seconds: one that is meant to lie on a position misses it by a rounding error.
    return distance[:, 0].abs() <= reach + 1e-6


def _is_tzn(config: Config) -> bool:
    return config.model.name.split("-")[0] == "tzn"


def _protect_positions(config: Config, stride: float) -> int:
    return math.ceil(config.tzn.protect_frames / stride)
