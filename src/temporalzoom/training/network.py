"""From a configuration to a network."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from temporalzoom.config import Config
from temporalzoom.errors import InputError
from temporalzoom.models import build_model

# Settings of the section `tzn` that shape the objective, not the network.
_OBJECTIVE = {
    "supervision",
    "shallow_weight",
    "deep_weight",
    "depth_weight",
    "compute_weight",
    "prune_weight",
    "uncertainty_weight",
}


def model_from_config(config: Config, input_width: int, classes: int, stride: float) -> nn.Module:
    """The network that `config` describes, for features of `input_width` channels every `stride` frames."""
    channels = {"start_end": 2, "joint": 1}[config.bdr.channels] if config.bdr.enabled else None
    options: dict[str, Any] = config.model.model_dump(exclude={"name"}) | {"distance_channels": channels}
    if config.model.name.split("-")[0] == "tzn":
        options |= config.tzn.model_dump(exclude=_OBJECTIVE | {"protect_frames"})
        options["protect"] = math.ceil(config.tzn.protect_frames / stride)
    try:
        return build_model(config.model.name, input_width, classes, **options)
    except ValueError as error:
        raise InputError(str(error)) from None
