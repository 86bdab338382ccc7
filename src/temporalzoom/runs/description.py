"""What a trained model needs besides its weights: one description, of a checkpoint and of an exported file alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass
from importlib import metadata
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from temporalzoom.config import Config, InferenceConfig, ZoomBenchData, dump_tree, parse_config
from temporalzoom.errors import InputError
from temporalzoom.runs.network import oracle_reach
from temporalzoom.signals.backbones import Backbone
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.signals.preparation import Framing, Preparation
from temporalzoom.timegrid import TimeGrid

FORMAT = 2


@dataclass(frozen=True)
class ExportedGraph:
    """What an ONNX graph cannot be asked.

    levels: how many its outputs are of; receptive_field: see the models; longest: the most positions that it is right
    for, None: any; gating: which positions its deep layers run at.
    """

    levels: int = 1
    receptive_field: int | None = None
    longest: int | None = None
    gating: str = "none"

    def __post_init__(self) -> None:
        for name, value in (("levels", self.levels), ("longest", self.longest)):
            if value is not None and not 1 <= value < 2**31:
                raise ValueError(f"{name} must be at least 1, got {value}")


@dataclass(frozen=True)
class ModelDescription:
    """What a Localizer needs besides the network.

    model: its name; grid: of the training data; inference: options that are used where the user gives no others;
    input_width: channels that the network takes; preparation: how recordings become such channels; origin: how the
    features of training were made from videos, None where unknown; video: how a model that was trained together with
    its backbone makes them, None for all others; oracle_reach: of an ablation that protects true boundaries from
    pruning, how many positions around each; prefix: of the names of feature files, before that of the recording; step:
    of the training; training: its whole configuration, from which the network is built again, None in an exported file;
    graph: of an exported file; version: of the program that wrote it.
    """

    model: str
    classes: tuple[str, ...]
    grid: TimeGrid
    inference: InferenceConfig
    input_width: int
    preparation: Preparation = field(default_factory=Preparation)
    origin: ExtractionSettings | None = None
    video: ExtractionSettings | None = None
    oracle_reach: int | None = None
    prefix: str = ""
    step: int = 0
    training: Config | None = None
    graph: ExportedGraph | None = None
    version: str = ""

    @property
    def channels(self) -> int:
        """Of what a file of the training data holds."""
        return self.preparation.channels(self.input_width)

    @property
    def config(self) -> Config:
        """The configuration of the training; an exported file, which has none, raises InputError."""
        if self.training is None:
            raise InputError(f"{self.model}: an exported file does not hold the configuration of its training")
        return self.training

    def to_json(self) -> dict[str, Any]:
        """Ready for `json.dumps`; `from_json` is the inverse."""
        values: dict[str, Any] = {"format": FORMAT}
        for name, value in vars(self).items():
            if is_dataclass(value) and not isinstance(value, type):
                values[name] = asdict(value)
            else:
                if isinstance(value, Config):
                    value = dump_tree(value)
                values[name] = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        return values | {"classes": list(self.classes)}

    @classmethod
    def from_json(cls, document: Any, source: str, again: str = "train") -> ModelDescription:
        """The inverse of `to_json`.

        Args:
            document: what `json.loads` returns.
            source: the file's name, for errors.
            again: what makes a new one, if this one is of an earlier version.
        """
        try:
            values = dict(document)
            stored = values.pop("format")
            if stored != FORMAT:
                if stored == 1:
                    raise InputError(f"{source}: was written by an earlier version of temporalzoom; {again} again")
                raise InputError(f"{source}: format {stored} is not supported (this version reads {FORMAT})")
            training = values.pop("training", None)
            if training is not None and not isinstance(training, dict):
                raise ValueError(f"training: a configuration is expected, got {training!r:.80}")
            for key, kind in _KINDS.items():
                if key in values:
                    values[key] = _checked(key, kind, values[key])
            if training is not None:
                values["training"] = parse_config(training, source=source)
            return cls(**values)
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            if isinstance(error, InputError):
                raise
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"{source}: not a description of a model ({type(error).__name__}: {reason})") from None


# What the entries of a description are. Numbers are bounded by what a network can be built of.
_KINDS: dict[str, Any] = {
    "model": str,
    "classes": Annotated[tuple[Annotated[str, Field(pattern=r"^[^\x00]+$")], ...], Field(min_length=1)],
    "grid": TimeGrid,
    "inference": InferenceConfig,
    "input_width": Annotated[int, Field(ge=1, le=10**6)],
    "preparation": Preparation,
    "origin": ExtractionSettings | None,
    "video": ExtractionSettings | None,
    "oracle_reach": int | None,
    "prefix": str,
    "step": Annotated[int, Field(ge=0, le=10**12)],
    "graph": ExportedGraph | None,
    "version": str,
}


def _checked(key: str, kind: Any, value: Any) -> Any:
    """The value as this kind, with all its parts; ValueError says which part is not what it should be."""
    for part in get_args(kind) or (kind,):
        if (
            is_dataclass(part)
            and isinstance(value, dict)
            and (unknown := value.keys() - {f.name for f in fields(part)})
        ):
            raise ValueError(f"{key}: unknown {min(map(str, unknown))!r}")
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join([key, *map(str, first["loc"])])
        raise ValueError(f"{place}: {first['msg']}, got {first['input']!r:.80}") from None


def describe(
    config: Config,
    classes: tuple[str, ...],
    input_width: int,
    grid: TimeGrid,
    origin: ExtractionSettings | None = None,
    step: int = 0,
    *,
    framing: Framing | None = None,
    backbone: Backbone | None = None,
    channel_names: tuple[str, ...] = (),
) -> ModelDescription:
    """The description of a model that is trained with `config`.

    Args:
        classes: in the order of the network's outputs.
        input_width: channels that the network takes.
        grid: of the training data, after it was resized.
        origin: how its features were made from videos, None where unknown.
        step: of the training.
        framing: how windows are cut from its raw signals, None where there are features.
        backbone: the one that is trained with the model; it makes the features of `input_width` channels from videos.
        channel_names: of its recordings, where all files had the same names.
    """
    data, video = config.data, None
    preparation = Preparation()
    if backbone is not None:
        video = ExtractionSettings(backbone.name, int(grid.stride), int(grid.window), data.fps, backbone.options)
    elif not isinstance(data, ZoomBenchData):
        preparation = Preparation(
            framing, data.missing == "interpolate", data.keypoints, data.resize, channel_names, data.derivatives
        )
    return ModelDescription(
        config.model.name,
        classes,
        grid,
        config.inference,
        input_width,
        preparation,
        origin if video is None else None,  # what the backbone of that name makes untrained is of no use to this model
        video,
        oracle_reach(config, grid.stride),
        getattr(data, "prefix", ""),  # not every source has one
        step,
        training=config,
        version=metadata.version("temporalzoom"),
    )
