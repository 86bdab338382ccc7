"""From a configuration to a network."""

from __future__ import annotations

from torch import nn

from temporalzoom.config import Config
from temporalzoom.errors import InputError
from temporalzoom.models import build_model


def model_from_config(config: Config, input_width: int, classes: int) -> nn.Module:
    """The network that `config` describes."""
    channels = {"start_end": 2, "joint": 1}[config.bdr.channels] if config.bdr.enabled else None
    model = config.model
    try:
        return build_model(
            model.name,
            input_width,
            classes,
            width=model.width,
            heads=model.heads,
            window=model.window,
            dropout=model.dropout,
            distance_channels=channels,
        )
    except ValueError as error:
        raise InputError(str(error)) from None
