"""The typed configuration tree: YAML in, `key=value` overrides, errors that name the key and its nearest valid one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from temporalzoom.errors import InputError

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Tiou = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    """Base of every part of the tree: unknown keys are errors, values never change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _nothing_below(cls, value: Any, info: ValidationInfo) -> Any:
        """`training:` with nothing below it, as when all its keys are commented out, is a section of defaults."""
        is_section = info.field_name is not None and _section(cls.model_fields[info.field_name]) is not None
        return {} if value is None and is_section else value


class ZoomBenchConfig(Section):
    """Knobs of the embedded benchmark. Times in seconds; `noise` is the standard deviation of every channel."""

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
    prefix: str = ""  # of the names of feature files, such as v_
    stride: Positive | None = None
    window: NotNegative | None = None
    fps: Positive | None = None  # null: the annotation file says it per recording
    raw: bool = False  # files hold one row per frame; windows are cut from them here
    missing: Literal["error", "interpolate"] = "error"
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
    zoombench: ZoomBenchConfig = ZoomBenchConfig()


class AugmentConfig(Section):
    """How training crops are varied; zero switches a variation off. Time is never reversed."""

    shift: bool = False  # raw signals: crops begin at any row, not only at multiples of the stride
    warp: Annotated[float, Field(ge=0, lt=1)] = 0.0  # time runs slower or faster by up to this share
    rotate: Annotated[float, Field(ge=0, le=180)] = 0.0  # degrees, of three-axis sensors (raw signals)
    gain: Annotated[float, Field(ge=0, lt=1)] = 0.0  # each channel louder or quieter by up to this share
    noise: NotNegative = 0.0  # standard deviation, in units of the channel's own
    drop: Share = 0.0  # probability that a channel is silent


class ModelConfig(Section):
    name: str = "uniform-6"
    width: Count = 128
    heads: Count = 4
    window: Count | None = 9  # reach of attention in positions; null: global
    dropout: Share = 0.1
    standardize: bool = False  # every input channel to zero mean and unit variance, as measured on the training subset
    stem: tuple[Count, ...] = ()  # strides of convolutions over raw rows; their product is data.stride (and window)


class TZNConfig(Section):
    """Adaptive depth of the model `tzn`; the other models take no notice."""

    shallow_layers: Count = 2
    deep_layers: Count = 7
    deep_window: Count = 32  # with zoom 0: an active token sees other active ones up to so many positions away
    expansion: Count = 2  # of the feed-forward layers
    zoom: Annotated[int, Field(ge=0)] = 24  # an active token sees the shallow tokens so many positions to either side
    combine: Literal["residual", "logits", "features", "layers"] = "residual"
    normalize_logits: bool = False
    depth: bool = True
    uncertainty: bool = True
    pruning: bool = True
    keep: Share = 0.8
    protect_frames: NotNegative = 12.0
    protection: Literal["predicted", "oracle"] = "predicted"  # oracle: around the true boundaries, an ablation
    hysteresis: Literal["none", "hold", "deadzone"] = "hold"
    band: Share = 0.05
    tau_min: Share | None = None  # null: the threshold that lets `share` of the positions pass, learned in training
    share: Share = 0.15
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
    l1_weight: NotNegative = 1.0
    giou_weight: NotNegative = 1.0
    box_variance_weight: NotNegative = 0.1
    precision: Literal["float32", "bfloat16"] = "float32"
    log_every: Count = 10
    checkpoint_every: Count = 500
    keep_checkpoints: Count = 2


class InferenceConfig(Section):
    threshold: Share = 0.2  # segments below are not shown to a user; evaluation uses min_score
    min_score: Share = 0.001
    candidates: Count = 2000  # highest scores that enter suppression
    suppression: Literal["soft", "hard", "none"] = "soft"
    sigma: Positive = 0.5
    tiou_threshold: Share = 0.5
    voting: Annotated[float, Field(gt=0, le=1)] | None = None  # candidates with this tIoU have a say in the ends
    max_segments: Count = 200
    refine: Literal["none", "snap", "newton", "fuse"] = "fuse"
    max_move: Share = 0.3
    max_length: Count = 2304  # longer sequences are cut into overlapping windows
    video_scores: Path | None = None  # a classifier's scores per recording, for a class-agnostic model


class EvaluationConfig(Section):
    thresholds: Annotated[tuple[Tiou, ...], Field(min_length=1)] = (0.3, 0.4, 0.5, 0.6, 0.7)


class Config(Section):
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    tzn: TZNConfig = TZNConfig()
    bdr: BDRConfig = BDRConfig()
    training: TrainingConfig = TrainingConfig()
    augment: AugmentConfig = AugmentConfig()
    inference: InferenceConfig = InferenceConfig()
    evaluation: EvaluationConfig = EvaluationConfig()


def load_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> Config:
    """A YAML file (None: all defaults), then `section.key=value` overrides in order.

    Relative data paths start at the file's folder, those of overrides at the working folder; both become absolute, so
    that the configuration stored with a run means the same files wherever it is read.
    """
    tree: dict[str, Any] = {}
    if path is not None:
        tree = _read_yaml(Path(path))
        _anchor_paths(tree, Path(path).parent)
    config = parse_config(tree, source=str(path))  # on its own first: an error says whether file or override is wrong
    overrides = list(overrides)
    for override in overrides:
        _apply_override(tree, override)
    _anchor_paths(tree, Path())
    return parse_config(tree, source="override") if overrides else config


def parse_config(tree: Mapping[str, Any], source: str = "configuration") -> Config:
    """A nested mapping -> Config, with one readable line for the first thing that is wrong."""
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{source}: {_explain(error.errors(include_url=False)[0])}") from None


def dump_config(config: Config) -> str:
    """The whole tree as YAML; `load_config` reads it back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def config_fields(section: type[BaseModel] = Config, prefix: str = "") -> dict[str, FieldInfo]:
    """Every dotted key of the tree and its field, sections before the keys below them."""
    fields: dict[str, FieldInfo] = {}
    for name, field in section.model_fields.items():
        fields[prefix + name] = field
        inner = _section(field)
        if inner is not None:
            fields |= config_fields(inner, f"{prefix}{name}.")
    return fields


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The class of a field that is a section, None for a single setting."""
    inner = field.annotation
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except yaml.MarkedYAMLError as error:
        where = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{path}{where}: not valid YAML ({error.problem or error.context})") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: bytes that are no UTF-8, dates that do not exist
        raise InputError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError(f"{path}: must hold sections such as 'training:', got {_shown(tree)}")
    return tree


def _anchor_paths(tree: dict[str, Any], folder: Path) -> None:
    paths = (("data", "root"), ("data", "annotations"), ("data", "features"), ("inference", "video_scores"))
    for name, key in paths:
        section = tree.get(name)
        if isinstance(section, dict) and isinstance(section.get(key), str):
            section[key] = os.path.abspath(folder / section[key])


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise InputError(f"override {override!r}: must have the form key=value, such as training.steps=500")
    field = config_fields().get(key)
    if field is None:
        raise InputError(f"override {override!r}: unknown key {key!r}{_nearest(key)}")
    if _section(field) is not None:
        raise InputError(f"override {override!r}: {key!r} is a section; set one of its keys: {_keys_below(key)}")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        value = text
    *sections, last = key.split(".")
    node = tree
    for section in sections:
        if node.get(section) is None:
            node[section] = {}
        node = node[section]
    node[last] = value


# How pydantic's errors are said to a user, by the first word of their type, or by the whole type for limits.
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "path": "a path",
    "tuple": "a list",
    "model": "a section with keys",
}
_LIMITS = {
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "below {lt:g}",
    "less_than_equal": "at most {le:g}",
}


def _explain(error: ErrorDetails) -> str:
    """One line: the key, what its value must be, and the value."""
    key, kind, value, context = ".".join(map(str, error["loc"])), error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key {key!r} (value {_shown(value)}){_nearest(key)}"
    if kind == "invalid_key":  # YAML takes `1:`, `on:`, `no:` for a number and truth values
        where = f" in {key.rpartition('.')[0]!r}" if "." in key else ""
        return f"unknown key {_shown(value)}{where}: keys must be text"
    if kind == "value_error":  # our own validators, whose messages name the value
        return f"{key}: {context['error']}"
    field = config_fields().get(key)
    hint = ""
    if kind == "literal_error" and field is not None:
        choices = [str(choice) for choice in get_args(field.annotation)]
        close = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.5)
        expected, hint = f"one of {', '.join(choices)}", f"; did you mean {close[0]!r}?" if close else ""
    elif kind in _LIMITS:
        expected = _LIMITS[kind].format(**context)
    else:
        expected = _KINDS.get(kind.split("_")[0]) or error["msg"].removeprefix("Input should be ")
    if field is not None and type(None) in get_args(field.annotation):
        expected += " or null"
    return f"{key or 'the whole'}: must be {expected}, got {_shown(value)}{hint}"


def _nearest(key: str) -> str:
    """`; did you mean ...?` if a valid key is near, else the valid keys of the section."""
    known = sorted(config_fields(), key=lambda k: k.count("."))
    parent, _, last = key.rpartition(".")
    siblings = {_word(k): k for k in known if k.rpartition(".")[0] == parent}
    anywhere = {k: k for k in known} if not siblings else {}  # in a known section only the last word is wrong
    words = {_word(k): k for k in reversed(known)}  # of equal words the one nearest to the root
    for wanted, candidates in ((last, siblings), (key, anywhere), (last, words)):
        close = difflib.get_close_matches(wanted, candidates, n=1, cutoff=0.7)
        if close:
            return f"; did you mean {candidates[close[0]]!r}?"
    section = parent if siblings else ""
    return f"; valid {f'in {section!r}' if section else 'at the top'} are: {_keys_below(section)}"


def _keys_below(section: str) -> str:
    return ", ".join(_word(key) for key in config_fields() if key.rpartition(".")[0] == section)


def _word(key: str) -> str:
    return key.rpartition(".")[2]


def _shown(value: Any) -> str:
    """A value as its user wrote it, shortened."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
