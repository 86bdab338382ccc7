"""The typed configuration tree: every setting, its type, its limits and its default. Defaults are the recipe."""

from __future__ import annotations

import math
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from temporalzoom.config import data as data_sections
from temporalzoom.config import networks
from temporalzoom.config.base import (
    BelowOne,
    Count,
    Device,
    FromZero,
    Length,
    NotNegative,
    Positive,
    Precision,
    Reach,
    Section,
    Share,
    sections_of,
)
from temporalzoom.config.data import DataConfig, FolderData
from temporalzoom.config.networks import ModelConfig, ZoomSection
from temporalzoom.config.per_class import SHOWN, PerClass, ScorePerClass, SecondsPerClass

Tiou = Annotated[float, Field(gt=0, le=1)]


class FrameAugmentConfig(Section):
    """How the frames of a crop are varied, all of them alike; zero switches a variation off. Time is never reversed,
    nor are pictures mirrored: left and right may be what an action is about."""

    crop: BelowOne = 0.0
    """a random square of the picture, smaller by up to this share"""
    colour: BelowOne = 0.0
    """brightness, contrast and saturation up or down by up to this share"""
    jitter: Annotated[int, Field(ge=0, le=2**16)] = 0
    """a frame may be shown up to this many frames early or late; their order stays"""


class BackboneConfig(Section):
    """With `data.videos`: the network that turns frames into features, and how it is trained with the detector."""

    name: str = "swin3d_t"
    """with `data.videos`: `swin3d_t`, `swin3d_s`, `swin3d_b` or `efficientnet_lite0`"""
    weights: str | None = None
    """of `swin3d_*`: `kinetics400`, `random`, or a checkpoint file; null: the backbone's own"""
    size: Annotated[int, Field(ge=1, le=4096)] | None = None
    """side of the frames in pixels; null: the backbone's own"""
    trainable: int | Literal["all", "none"] = "all"
    """`all`, `none`, or a number of blocks, the last ones"""
    checkpointing: bool = False
    """recompute the backbone in the backward pass: less memory, same result"""
    learning_rate_factor: Positive = 0.1
    """learning rate of the backbone, as a factor of `training.learning_rate`"""
    augment: FrameAugmentConfig = FrameAugmentConfig()

    @field_validator("trainable", mode="before")
    @classmethod
    def _blocks(cls, value: Any) -> Any:
        if value in ("all", "none") or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        raise ValueError(f"must be all, none, or a whole number of blocks from 0 on, got {value!r}")


class AugmentConfig(Section):
    """How training crops are varied; zero switches a variation off. Time is never reversed."""

    shift: bool = False
    """crops of raw signals begin at any row, not only at multiples of the stride; default of raw signals: true"""
    warp: BelowOne = 0.0
    """time runs slower or faster by up to this share; default of raw signals: 0.3"""
    rotate: Annotated[float, Field(ge=0, le=180)] = 0.0
    """raw signals of three-axis sensors are rotated by up to this many degrees; default of `sbhar` and `tug`: 15"""
    noise: NotNegative = 0.0
    """standard deviation of added noise, in units of the channel's own"""
    drop: Share = 0.1
    """probability that a channel is constant, at its mean, throughout a crop"""


class BDRConfig(Section):
    """Boundary Distance Regression: the field, its loss."""

    enabled: bool = True
    """predict signed distances to the boundaries, and move segment ends to their zero crossings"""
    loss: Literal["distance", "bce", "focal", "hybrid"] = "distance"
    """distances; or, to compare, the probability of a boundary by cross-entropy or focal loss; `hybrid`: both fields"""
    channels: Literal["start_end", "joint"] = "start_end"
    """a field for starts and one for ends, or one for both"""
    radius: Annotated[float, Field(ge=1)] | None = 8.0
    """distances are clipped here, in positions; null: unclipped, the paper's literal form"""
    smoothing: NotNegative = 0.0
    """standard deviation of the annotated boundaries in positions; smooths the targets"""
    weight: NotNegative = 0.15
    """weight of the distance loss"""
    scales: Literal["finest", "one", "sqrt", "inverse"] = "finest"
    """with several levels: the loss on the finest level alone, or on every level s with weight 1, 1/sqrt(s) or 1/s"""

    @model_validator(mode="after")
    def _smoothing_fits_the_radius(self) -> BDRConfig:
        limit = math.inf if self.radius is None else (self.radius - 1) / 6
        if self.smoothing > limit:
            raise ValueError(
                f"smoothing: at most {limit:.3g} positions fit a radius of {self.radius:g}, got {self.smoothing:g}"
            )
        return self

    @property
    def classifies(self) -> bool:
        """Whether the probability of a boundary is predicted."""
        return self.enabled and self.loss != "distance"

    @property
    def measures(self) -> bool:
        """Whether distances are predicted."""
        return self.enabled and self.loss in ("distance", "hybrid")


class TrainingConfig(Section):
    steps: Count = 1200
    """optimizer steps"""
    batch_size: Reach = 8
    """crops per batch"""
    length: Length = 192
    """positions per crop"""
    accumulate: Count = 1
    """batches per optimizer step"""
    learning_rate: Positive = 1e-3
    """of AdamW, after warm-up; then cosine to zero"""
    weight_decay: NotNegative = 0.05
    """on the matrices of linear layers and convolutions"""
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.95)
    """of AdamW"""
    warmup_steps: FromZero = 50
    """steps of linear warm-up"""
    ema_decay: Share = 0.99
    """of the moving average of the weights, which is what is evaluated"""
    assignment: Literal["center", "hungarian", "both"] = "center"
    """single level only: positions near an instance's centre answer for it, one position does (as in DETR), or both"""
    focal_alpha: Share = 0.25
    """weight of positives in the focal loss"""
    positives: Positive | None = 100.0
    """losses are divided by a running mean of the positives per batch that starts here; null: by those of the batch"""
    box_loss: Literal["l1+giou", "diou"] = "diou"
    """loss of segment boundaries"""
    quality_power: NotNegative = 0.0
    """class losses of positives weigh by their box's overlap to this power; default of `tridet`: 0.2"""
    precision: Precision = "float32"
    """of the products in the network; float16 on cuda only"""
    log_every: Count = 10
    """steps between two lines of metrics.jsonl"""
    checkpoint_every: Count = 500
    """steps between two checkpoints"""
    keep_checkpoints: Count = 2
    """older ones are deleted"""


class InferenceConfig(Section):
    # The first four choose what a user sees. Evaluation ranks everything down to `min_score`.
    threshold: ScorePerClass = SHOWN
    """lowest score that a user sees: a number, or `{default: 0.2, CLASS: 0.5}`; evaluation goes down to `min_score`"""
    merge_gap: SecondsPerClass = 0.0
    """segments of one class with a gap of at most this many seconds are shown as one; a number or per class; 0: none"""
    min_length: SecondsPerClass = 0.0
    """shorter segments are not shown; seconds, a number or per class"""
    no_overlap: bool = False
    """of segments that overlap only the best are shown; slight overlaps are cut in the middle"""
    min_score: Share = 0.001
    """candidates with a lower score are dropped; default of `bmn`: 1e-5"""
    candidates: Count = 2000
    """highest scores that enter suppression, within `inference.limit_span`"""
    suppression: Literal["soft", "hard", "none", "bmn"] = "soft"
    """of duplicates; `bmn`: as that model was published, and its default"""
    sigma: Positive = 0.5
    """of soft suppression; default of `bmn`: 0.4"""
    tiou_threshold: Share = 0.5
    """of hard suppression"""
    voting: Annotated[float, Field(gt=0, le=1)] | None = None
    """candidates with this tIoU to a selected segment vote on its ends; null: none do"""
    max_segments: Count = 200
    """most that are kept, within `inference.limit_span`"""
    limit_span: Annotated[int, Field(ge=1, le=10**9)] | None = 512
    """positions to either side within which the two limits hold; null, default of the video data sets: everywhere"""
    refine: Literal["none", "snap", "newton", "fuse"] = "fuse"
    """how zero crossings move segment ends: not, to the nearest, by Newton steps, fused by predicted variances"""
    max_move: Share = 0.3
    """farthest move of an end, as a share of the segment's length"""
    min_slope: NotNegative = 0.5
    """with `snap`: least slope of a zero crossing that counts as a boundary (the paper's theta_grad)"""
    boundary_window: Positive = 5.0
    """with `snap`: of crossings closer than half of this, in positions, the steepest stays"""
    certainty: NotNegative = 4.0
    """scores are multiplied by the expected tIoU, from predicted variances, to this power"""
    max_length: Length = 2304
    """longer sequences are cut into overlapping windows"""
    precision: Precision = "float32"
    """of the products in the network"""
    video_scores: Path | None = None
    """a classifier's scores per recording, which label the segments of a class-agnostic model"""

    @property
    def per_class(self) -> dict[str, PerClass]:
        """The settings that may name classes, by their keys."""
        keys = ("threshold", "merge_gap", "min_length")
        return {f"inference.{key}": getattr(self, key) for key in keys}


class EvaluationConfig(Section):
    thresholds: Annotated[tuple[Tiou, ...], Field(min_length=1)] = (0.3, 0.4, 0.5, 0.6, 0.7)
    """tIoU thresholds of `tzoom eval`"""


class Config(Section):
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """seed of data, initial weights, batches and dropout"""
    device: Device = "auto"
    """`auto`: a GPU (cuda, mps) if there is one, else the processor"""
    data: DataConfig = FolderData()
    model: ModelConfig = ZoomSection()
    bdr: BDRConfig = BDRConfig()
    training: TrainingConfig = TrainingConfig()
    augment: AugmentConfig = AugmentConfig()
    backbone: BackboneConfig = BackboneConfig()
    inference: InferenceConfig = InferenceConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="before")
    @classmethod
    def _with_companions(cls, tree: Any) -> Any:
        """Defaults that the chosen architecture and the kind of data bring along."""
        return with_companions(tree) if isinstance(tree, dict) else tree


def with_companions(tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with the defaults that its model and data choose; what the tree itself says comes first."""
    model, chosen = tree.get("model"), tree.get("data")
    section = networks.SECTIONS.get(networks.family_of(model if isinstance(model, dict) else {}) or "")
    result = dict(tree)
    for defaults in (data_sections.companions(chosen), {} if section is None else section.companions):
        for name, values in defaults.items():
            given = result.get(name)
            if given is None or isinstance(given, dict):
                result[name] = {**values, **(given or {})}
    return result


def config_fields(tree: dict[str, Any] | None = None) -> dict[str, FieldInfo]:
    """Every dotted key and its field, sections before the keys below them.

    tree: settings whose `model.name` and `data.source` choose the sections; None: the keys of all choices.
    """
    fields: dict[str, FieldInfo] = {}

    def visit(section: type[Section], prefix: str) -> None:
        for name, field in section.model_fields.items():
            fields.setdefault(prefix + name, field)
            for inner in sections_of(field):
                if tree is None or prefix or name not in ("model", "data") or inner in chosen:
                    visit(inner, f"{prefix}{name}.")

    chosen = _chosen_sections(tree or {})
    visit(Config, "")
    return fields


def _chosen_sections(tree: dict[str, Any]) -> tuple[type[Section] | None, ...]:
    model, data = tree.get("model"), tree.get("data")
    source = data.get("source", data_sections.DEFAULT) if isinstance(data, dict) else data_sections.DEFAULT
    model = model if isinstance(model, dict) else {}
    return (
        networks.SECTIONS.get(networks.family_of(model) or "") or networks.SECTIONS[networks.DEFAULT],
        data_sections.SECTIONS.get(source if isinstance(source, str) else "") or data_sections.SECTIONS["folder"],
    )


def first_difference(before: Config, now: Config, ignore: tuple[str, ...] = ("device",)) -> tuple[str, Any, Any] | None:
    """The first key, in the order of the tree, whose values differ, and both values; a missing one counts as None."""
    for key in config_fields():
        old, new = (_value(config, key) for config in (before, now))
        if old != new and not isinstance(new, Section) and not isinstance(old, Section) and key not in ignore:
            return key, old, new
    return None


def _value(config: Config, key: str) -> Any:
    try:
        return attrgetter(key)(config)
    except AttributeError:
        return None
