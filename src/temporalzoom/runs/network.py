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
from temporalzoom.models.video import VideoDetector
from temporalzoom.signals.backbones import Backbone, backbone
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.timegrid import TimeGrid

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


PYRAMIDS = ("actionformer", "tridet", "temporalmaxer")


def model_from_config(config: Config, input_width: int, classes: int, grid: TimeGrid) -> nn.Module:
    """The network that `config` describes, for features of `input_width` channels on `grid`."""
    _check_assignment(config)
    channels = {"start_end": 2, "joint": 1}[config.bdr.channels] if config.bdr.enabled else None
    options: dict[str, Any] = config.model.model_dump(exclude={"name"}) | {"distance_channels": channels}
    if config.model.name in PYRAMIDS:
        options |= config.pyramid.model_dump()
    options["distances_on_all_levels"] = config.bdr.scales == "all"
    if config.model.name == "bmn":
        options |= config.bmn.model_dump()
    if _is_tzn(config):
        options |= config.tzn.model_dump(exclude=_OBJECTIVE | {"protect_frames", "protection"})
        options["protect"] = _protect_positions(config, grid.stride)
    if config.model.stem:
        options["stem_window"] = int(grid.window)
    try:
        model = build_model(config.model.name, input_width, classes, **options)
    except ValueError as error:
        raise InputError(str(error)) from None
    if config.training.positives is not None:
        model.positives = RunningPositives(config.training.positives)
    return model


def _check_assignment(config: Config) -> None:
    """Of several levels, the length of an instance chooses one: there is nothing else to choose."""
    if config.model.name not in PYRAMIDS and config.model.levels == 1:
        return
    for key, usual in (("assignment", "center"), ("center_fraction", 0.0)):
        value = getattr(config.training, key)
        if value != usual:
            raise InputError(
                f"training.{key}: {value} is for a single level; {config.model.name} has several here, and the one "
                "that an instance's length belongs to answers for it"
            )


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
        built = backbone(config.backbone.name, **options)
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


def video_settings(config: Config, built: Backbone, grid: TimeGrid) -> ExtractionSettings:
    """How a model that was trained with its backbone makes features of a video."""
    return ExtractionSettings(built.name, int(grid.stride), int(grid.window), config.data.fps, built.options)


class RunningPositives(nn.Module):
    """How many positives a batch usually has: losses per that number do not jump with the batch.

    Stored with the weights, so that a resumed training goes on with it.
    """

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(float(initial)))

    def forward(self, count: int) -> float:
        """Takes the count of one more batch into account -> the running mean."""
        self.mean.mul_(0.9).add_(0.1 * max(count, 1))
        return float(self.mean)

    mean: Tensor


def distance_scales(config: Config) -> tuple[int, ...]:
    """Strides of the levels that BDR is trained on, the finest included; empty: of no levels but the finest."""
    levels = config.pyramid.levels if config.model.name in PYRAMIDS else config.model.levels
    if levels == 1 or not config.bdr.enabled or config.bdr.scales == "finest":
        return ()
    return tuple(2**level for level in range(levels))


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
