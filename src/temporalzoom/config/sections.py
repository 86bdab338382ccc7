"""The typed configuration tree: every setting, its type, its limits and its default."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Tiou = Annotated[float, Field(gt=0, le=1)]
Precision = Literal["float32", "bfloat16"]


class Section(BaseModel):
    """Base of every part of the tree: unknown keys are errors, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _nothing_below(cls, value: Any, info: ValidationInfo) -> Any:
        """`training:` with nothing below it, as when all its keys are commented out, is a section of defaults."""
        is_section = info.field_name is not None and inner_section(cls.model_fields[info.field_name]) is not None
        return {} if value is None and is_section else value


class ZoomBenchConfig(Section):
    """Knobs of the embedded benchmark. Times in seconds; `noise` is the standard deviation of every channel."""

    seed: Annotated[int, Field(ge=0)] | None = None  # what sequences are drawn from; null: the seed of the training
    sequences: Count = 96
    test_sequences: Count = 48
    length: Count = 512
    dimension: Count = 32
    classes: Annotated[int, Field(ge=2)] = 6
    stride: Positive = 4.0
    window: NotNegative = 8.0
    fps: Positive = 30.0
    noise: NotNegative = 1.0
    signal: Positive = 6.0
    shortest: Positive = 0.5
    longest: Positive = 14.0
    mean_gap: NotNegative = 2.0
    back_to_back: Share = 0.15
    overlap: Share = 0.10
    flashes_per_minute: NotNegative = 6.0
    blurs_per_minute: NotNegative = 3.0

    @field_validator("classes")
    @classmethod
    def _in_pairs(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"must be an even number, because classes come in pairs, got {value}")
        return value

    @model_validator(mode="after")
    def _can_be_drawn(self) -> ZoomBenchConfig:
        if self.shortest > self.longest:
            raise ValueError(f"shortest must be at most longest ({self.longest:g}), got {self.shortest:g}")
        if self.back_to_back + self.overlap > 1:
            raise ValueError(
                f"back_to_back and overlap must be at most 1 together, got {self.back_to_back:g} and {self.overlap:g}"
            )
        return self


class DataConfig(Section):
    """Where samples come from: the embedded benchmark, a known data set, or one annotation file and one folder."""

    source: Literal[
        "zoombench", "folder", "sbhar", "tug", "thumos14", "activitynet", "fineaction", "ego4d_mq", "epic_kitchens"
    ] = "zoombench"
    root: Path | None = None  # of a known data set: the folder as its authors publish it
    annotations: Path | None = None
    features: Path | None = None  # a folder with one file per recording, or an .npz archive with one array each
    videos: Path | None = None  # train the backbone too: a folder with one video per recording, no features needed
    prefix: str = ""  # of the names of feature files, such as v_
    stride: Positive | None = None
    window: NotNegative | None = None
    fps: Positive | None = None  # null: the annotation file says it per recording
    raw: bool = False  # files hold one row per frame; windows are cut from them here
    missing: Literal["error", "interpolate"] = "error"
    keypoints: Annotated[str, Field(pattern="^[a-z]*$")] = ""  # raw poses, such as xyc per keypoint: its geometry
    sensors: Literal["acc", "acc+gyro"] = "acc+gyro"  # sbhar, tug
    background: tuple[str, ...] = ()  # labels that are no actions
    task: Literal["verb", "noun"] | None = None  # of epic_kitchens
    class_agnostic: bool = False  # learn when something happens, not what; see inference.video_scores
    clip: bool = False  # cut instances to their recording, drop those of which nothing is left, and say how many
    resize: Count | None = None  # interpolate the features of every recording to so many positions
    train_subset: str = "train"
    test_subset: str = "test"
    test_recordings: tuple[str, ...] = ()  # patterns such as rat4*; for files that name no subsets
    leave_out: str | None = None  # the recordings of this subject are the test subset, all others train
    validation_fold: Annotated[int, Field(ge=0, lt=4)] | None = None  # tune: test on a quarter of the training subset
    folds: Annotated[int, Field(ge=2)] | None = None  # cross-validate: all subjects are dealt to so many folds
    fold: Annotated[int, Field(ge=0)] = 0  # with folds: the subjects of this one are the test subset, all others train
    zoombench: ZoomBenchConfig = ZoomBenchConfig()

    @model_validator(mode="after")
    def _one_way_to_split(self) -> DataConfig:
        if self.folds is None:
            if self.fold:
                raise ValueError(f"fold: number {self.fold} of how many? give folds too")
            return self
        if self.fold >= self.folds:
            raise ValueError(f"fold: {self.folds} folds are numbered from 0 to {self.folds - 1}, got {self.fold}")
        if self.leave_out is not None:
            raise ValueError("folds: says who is tested, and so does leave_out; give one of them")
        return self

    @model_validator(mode="after")
    def _keypoints_of_raw_poses(self) -> DataConfig:
        if self.keypoints and not (self.raw and self.source == "folder"):
            raise ValueError("keypoints: are those of raw poses; needs data.source=folder and data.raw=true")
        if self.keypoints and not set("xyz") & set(self.keypoints):
            raise ValueError(f"keypoints: {self.keypoints} has no coordinate; a letter per value, such as xy or xyc")
        return self


class FrameAugmentConfig(Section):
    """How the frames of a crop are varied, all of them alike; zero switches a variation off. Time is never reversed,
    nor are pictures mirrored: left and right may be what an action is about."""

    crop: Annotated[float, Field(ge=0, lt=1)] = 0.0  # up to this share of the picture's side is left out
    colour: Annotated[float, Field(ge=0, lt=1)] = 0.0  # brightness, contrast, saturation by up to this share
    jitter: Annotated[int, Field(ge=0)] = 0  # a frame may be shown up to so many frames early or late, in order


class BackboneConfig(Section):
    """With `data.videos`: the network that turns frames into features, and how it is trained with the detector."""

    name: str = "swin3d_t"
    weights: str | None = None  # swin3d: kinetics400, random, or a file; null: the backbone's own
    size: Count | None = None  # side of the frames; null: the backbone's own
    trainable: int | Literal["all", "none"] = "all"  # a number: so many blocks, the last ones
    checkpointing: bool = False  # recompute in the backward pass: memory of a few windows, not of all; same result
    learning_rate_factor: Positive = 0.1  # of training.learning_rate
    augment: FrameAugmentConfig = FrameAugmentConfig()

    @field_validator("trainable", mode="before")
    @classmethod
    def _blocks(cls, value: Any) -> Any:
        if value in ("all", "none") or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        raise ValueError(f"must be all, none, or a whole number of blocks from 0 on, got {value!r}")


class AugmentConfig(Section):
    """How training crops are varied; zero switches a variation off. Time is never reversed."""

    shift: bool = False  # raw signals: crops begin at any row, not only at multiples of the stride
    warp: Annotated[float, Field(ge=0, lt=1)] = 0.0  # time runs slower or faster by up to this share
    rotate: Annotated[float, Field(ge=0, le=180)] = 0.0  # degrees, of three-axis sensors (raw signals)
    gain: Annotated[float, Field(ge=0, lt=1)] = 0.0  # each channel louder or quieter by up to this share
    noise: NotNegative = 0.0  # standard deviation, in units of the channel's own
    drop: Share = 0.0  # probability that a channel is silent
    splice: Share = 0.0  # probability that a crop goes on as a piece of another recording


class ModelConfig(Section):
    name: str = "uniform-6"
    width: Count = 128
    heads: Count = 4
    window: Count | None = 9  # reach of attention in positions; null: global
    dropout: Share = 0.1
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0  # whole residual branches, for a sequence at a time
    layer_scale: Positive | None = None  # a factor per channel on residual branches, from here on; null: none
    standardize: bool = False  # every input channel to zero mean and unit variance, as measured on the training subset
    stem: tuple[Count, ...] = ()  # strides of convolutions over raw rows; their product is data.stride
    head: Literal["mlp", "convolution"] = "mlp"  # uniform, tzn: reads a position on its own, or with its neighbours
    levels: Annotated[int, Field(ge=1, le=12)] = 1  # uniform, tzn: above the first, coarser ones for longer instances
    finest: Positive = 4.0  # longest offset of the first level, in positions, if there are several


class TZNConfig(Section):
    """Adaptive depth of the model `tzn`; the other models take no notice."""

    shallow_layers: Annotated[int, Field(ge=0)] = 2  # 0: the convolutions before them alone
    deep_layers: Count = 7
    deep_window: Count = 32  # with zoom 0: an active token sees other active ones up to so many positions away
    expansion: Count = 2  # of the feed-forward layers
    zoom: Annotated[int, Field(ge=0)] = 24  # an active token sees the shallow tokens so many positions to either side
    combine: Literal["residual", "logits", "features", "layers"] = "residual"
    normalize_logits: bool = False
    depth: bool = True
    uncertainty: bool = True
    context: Literal["convolution", "attention"] = "convolution"  # around a position, to tell how uncertain it is
    pruning: bool = True
    keep: Share = 0.8
    protect_frames: NotNegative = 12.0
    protection: Literal["predicted", "oracle"] = "predicted"  # oracle: around the true boundaries, an ablation
    hysteresis: Literal["none", "hold", "deadzone"] = "hold"
    band: Share = 0.05
    tau_min: Share | None = None  # null: the threshold that lets `share` of the positions pass, learned in training
    share: Share = 0.1
    warmup: Annotated[int, Field(ge=0)] = 200
    explore: Share = 1.0
    budget: Share | None = None
    execution: Literal["sparse", "dense"] = "sparse"
    checkpoint_deep: bool = False
    supervision: Literal["value", "penalty"] = "value"
    shallow_weight: NotNegative = 0.5
    deep_weight: NotNegative = 0.5
    depth_weight: NotNegative = 0.5  # supervision: value
    boundary_value: NotNegative = 0.5  # supervision: value; of one position's error in distance beside a boundary
    compute_weight: NotNegative = 0.05  # supervision: penalty, the paper's lambda_c
    prune_weight: NotNegative = 0.01
    uncertainty_weight: NotNegative = 0.1


class PyramidConfig(Section):
    """Levels of `actionformer`, `tridet` and `temporalmaxer`: each has half the positions of the one before."""

    levels: Annotated[int, Field(ge=1, le=12)] = 6
    finest: Positive = 4.0  # longest offset of the first level, in positions; each level after it reaches twice as far
    stem_layers: Annotated[int, Field(ge=0)] = 2  # at full resolution; temporalmaxer has none
    head_layers: Annotated[int, Field(ge=2)] = 3  # the last one included
    expansion: Positive | None = None  # of the feed-forward layers; null: 4 (actionformer), 1.5 (tridet)
    bins: Count = 16  # tridet: neighbours to either side that may hold the boundary
    granularity: Positive = 5.0  # tridet: the wide kernel against the narrow one, k


class BMNConfig(Section):
    """The boundary-matching map of `bmn`."""

    durations: Count = 64  # longest segment, in positions
    samples: Count = 32  # points at which a candidate segment is read
    widened: NotNegative = 0.5  # share of its length that is read before and after it


class BDRConfig(Section):
    """Boundary Distance Regression: the field, its loss."""

    enabled: bool = True
    channels: Literal["start_end", "joint"] = "start_end"
    radius: Annotated[float, Field(ge=1)] | None = 16.0  # grid units; null: the paper's literal, unclipped form
    smoothing: NotNegative = 0.0  # grid units
    far_weight: Share = 0.05
    alpha: NotNegative = 0.1
    weight: NotNegative = 1.0
    variance_weight: NotNegative = 0.1
    scales: Literal["finest", "all"] = "finest"  # of a pyramid: the loss on its finest level, or on every level s ...
    scale_weight: Literal["one", "sqrt", "inverse"] = "sqrt"  # ... with weight 1, 1/sqrt(s) or 1/s


class TrainingConfig(Section):
    steps: Count = 2000
    batch_size: Count = 8
    length: Count = 256  # positions per crop
    accumulate: Count = 1
    learning_rate: Positive = 1e-4
    weight_decay: NotNegative = 1e-4
    warmup_steps: Annotated[int, Field(ge=0)] = 100
    clip_norm: Positive = 1.0
    ema_decay: Share = 0.999
    assignment: Literal["center", "hungarian", "both"] = "center"
    center_radius: Positive = 1.5  # positions
    center_fraction: Share = 0.0  # of an instance's length
    focal_alpha: Share = 0.25
    focal_gamma: NotNegative = 2.0
    positives: Positive | None = None  # losses are per positive of a running mean that starts here; null: of the batch
    box_loss: Literal["l1+giou", "diou"] = "l1+giou"
    quality_power: NotNegative = 0.0  # class losses of positives weigh by their box's overlap to this power (tridet)
    l1_weight: NotNegative = 1.0
    giou_weight: NotNegative = 1.0
    box_variance_weight: NotNegative = 0.1
    precision: Precision = "float32"
    log_every: Count = 10
    checkpoint_every: Count = 500
    keep_checkpoints: Count = 2


class InferenceConfig(Section):
    threshold: Share = 0.2  # segments below are not shown to a user; evaluation uses min_score
    min_score: Share = 0.001
    candidates: Count = 2000  # highest scores that enter suppression
    suppression: Literal["soft", "hard", "none", "bmn"] = "soft"
    sigma: Positive = 0.5
    tiou_threshold: Share = 0.5
    voting: Annotated[float, Field(gt=0, le=1)] | None = None  # candidates with this tIoU have a say in the ends
    max_segments: Count = 200
    refine: Literal["none", "snap", "newton", "fuse"] = "fuse"
    max_move: Share = 0.3
    certainty: NotNegative = 0.0  # scores count by the overlap that predicted variances let expect, to this power
    max_length: Count = 2304  # longer sequences are cut into overlapping windows
    precision: Precision = "float32"  # of the products in the network
    video_scores: Path | None = None  # a classifier's scores per recording, for a class-agnostic model


class EvaluationConfig(Section):
    thresholds: Annotated[tuple[Tiou, ...], Field(min_length=1)] = (0.3, 0.4, 0.5, 0.6, 0.7)


class Config(Section):
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    data: DataConfig = DataConfig()
    backbone: BackboneConfig = BackboneConfig()
    model: ModelConfig = ModelConfig()
    tzn: TZNConfig = TZNConfig()
    pyramid: PyramidConfig = PyramidConfig()
    bmn: BMNConfig = BMNConfig()
    bdr: BDRConfig = BDRConfig()
    training: TrainingConfig = TrainingConfig()
    augment: AugmentConfig = AugmentConfig()
    inference: InferenceConfig = InferenceConfig()
    evaluation: EvaluationConfig = EvaluationConfig()


def config_fields(section: type[BaseModel] = Config, prefix: str = "") -> dict[str, FieldInfo]:
    """Every dotted key of the tree and its field, sections before the keys below them."""
    fields: dict[str, FieldInfo] = {}
    for name, field in section.model_fields.items():
        fields[prefix + name] = field
        inner = inner_section(field)
        if inner is not None:
            fields |= config_fields(inner, f"{prefix}{name}.")
    return fields


def inner_section(field: FieldInfo) -> type[BaseModel] | None:
    """The class of a field that is a section, None for a single setting."""
    inner = field.annotation
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


def first_difference(before: Config, now: Config) -> tuple[str, Any, Any] | None:
    """The first key, in the order of the tree, whose values differ, and both values."""
    for key in config_fields():
        old, new = attrgetter(key)(before), attrgetter(key)(now)
        if old != new and not isinstance(new, BaseModel):
            return key, old, new
    return None
