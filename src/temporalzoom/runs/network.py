"""From a configuration to a network."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from temporalzoom.config import Config, ZoomSection
from temporalzoom.errors import InputError
from temporalzoom.models import build_model
from temporalzoom.models.allocation import ORACLE_REACH
from temporalzoom.models.video import VideoDetector
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.timegrid import TimeGrid

# Of the paper's variants of `tzn`: those that shape the objective, not the network, and those that depend on the grid.
_NOT_OF_THE_NETWORK = {"compute_weight", "prune_weight", "uncertainty_weight", "protect_frames", "protection"}


def model_from_config(config: Config, input_width: int, classes: int, grid: TimeGrid) -> nn.Module:
    """The network that `config` describes, for features of `input_width` channels on `grid`."""
    channels = {"start_end": 2, "joint": 1}[config.bdr.channels]
    options: dict[str, Any] = config.model.model_dump(exclude={"name", "paper"})
    options["distance_channels"] = channels if config.bdr.measures else None
    if config.bdr.classifies:
        options["boundary_channels"] = channels
    if config.model.levels > 1:
        options["distances_on_all_levels"] = config.bdr.measures and config.bdr.scales != "finest"
    if isinstance(config.model, ZoomSection):
        options |= config.model.paper.model_dump(exclude=_NOT_OF_THE_NETWORK)
        options["protect"] = _protect_positions(config.model, grid.stride)
        options["seed"] = config.seed
    if config.model.stem:
        options["stem_window"] = int(grid.window)
    try:
        return build_model(config.model.name, input_width, classes, **options)
    except ValueError as error:
        raise InputError(str(error)) from None


def backbone_from_config(config: Config, pretrained: bool = True) -> Backbone:
    """The backbone of the section `backbone`, with a module to train.

    pretrained: False where its weights come from a checkpoint, so that nothing is downloaded first.
    """
    options: dict[str, Any] = {}
    if config.backbone.size is not None:
        options["size"] = config.backbone.size
    weights = config.backbone.weights
    if not pretrained and config.backbone.name.startswith("swin3d"):
        weights = "random"
    if weights is not None:
        options["weights"] = weights
    if weights == "random":
        options["seed"] = config.seed
    try:
        built = backbone(config.backbone.name, device="cpu", **options)  # its network moves with the detector
    except InputError as error:
        raise InputError(f"backbone.name: {error}") from None
    if built.module is None:
        raise InputError(
            f"backbone.name: {config.backbone.name} cannot be trained; use its features (tzoom extract), "
            "or one of efficientnet_lite0, swin3d_t, swin3d_s, swin3d_b"
        )
    return built


def video_model_from_config(config: Config, built: Backbone, classes: int, grid: TimeGrid) -> VideoDetector:
    """The network that `config` describes behind the module of a backbone, for windows of frames on `grid`."""
    name, wanted = config.backbone.name, config.backbone.trainable
    blocks = len(built.module.blocks())
    if isinstance(wanted, int) and wanted > blocks:
        raise InputError(f"backbone.trainable: {name} has {blocks} blocks, got {wanted}; `all` trains everything")
    detector = model_from_config(config, built.width, classes, grid)
    trainable = None if wanted == "all" else 0 if wanted == "none" else wanted
    return VideoDetector(
        built.module, detector, int(grid.window), int(grid.stride), trainable, config.backbone.checkpointing
    )


def distance_scales(config: Config) -> tuple[int, ...]:
    """Strides of the levels that BDR is trained on, the finest included; empty: of no levels but the finest."""
    levels = config.model.levels
    if levels == 1 or not config.bdr.measures or config.bdr.scales == "finest":
        return ()
    return tuple(2**level for level in range(levels))


def oracle_reach(config: Config, stride: float) -> int | None:
    """With `model.paper.protection: oracle`: how many positions around each true boundary pruning may not drop. With
    `model.paper.allocation: oracle`: how far around it the network is told of it.

    None: the truth plays no part, because the network protects the boundaries it predicts, or prunes nothing.
    """
    model = config.model
    if isinstance(model, ZoomSection) and model.paper.allocation == "oracle":
        return ORACLE_REACH
    if not isinstance(model, ZoomSection) or not model.pruning or model.paper.protection != "oracle":
        return None
    return _protect_positions(model, stride)


def training_reach(config: Config, stride: float) -> int | None:
    """The same in training: also with `model.paper.protection: training`, which is told nothing afterwards."""
    model = config.model
    if isinstance(model, ZoomSection) and model.pruning and model.paper.protection == "training":
        return _protect_positions(model, stride)
    return oracle_reach(config, stride)


def _protect_positions(model: ZoomSection, stride: float) -> int | None:
    if model.paper.protection == "none":
        return None
    return math.ceil(model.paper.protect_frames / stride)
