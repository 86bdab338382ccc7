"""The section `model`: a choice by `name`, each architecture with its own settings and defaults.

Defaults of `uniform-N` and `tzn` are what the recipes, found on validation data, share; those of the field's detectors
are the published ones.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from temporalzoom.config.base import BelowOne, Layers, NotNegative, Positive, Reach, Section, Share, Width

Tree = dict[str, dict[str, Any]]
Allocation = Literal[
    "tau", "random", "regular", "oracle", "none", "discrete", "gumbel", "reinforce",
    "exit", "calibrated-exit", "taught-exit", "mixture",
]  # fmt: skip
EXITS = ("exit", "calibrated-exit")
TAUGHT = "taught-exit"  # of a student, see `tzoom distill`
ROUTED = ("discrete", "gumbel", "reinforce", *EXITS, TAUGHT)  # to one of `depths`
# What a network needs to know about its input: kept where another architecture takes the place of a recipe's.
INPUT_KEYS = ("width", "standardize", "stem")
# What adaptive depth has on any trunk.
ADAPTIVE_KEYS = ("deep_layers", "zoom", "share", "budget")


class NetworkSection(Section):
    """What all architectures share.

    companions: settings of other sections that belong to the published design; defaults, which a user may change.
    """

    companions: ClassVar[Tree] = {}

    name: str
    width: Width = 128
    """channels of the network"""
    standardize: bool = True
    """every input channel to zero mean and unit variance, as measured on the training subset"""
    stem: tuple[Reach, ...] = ()
    """strides of convolutions over raw rows, in the place of windows; their product is `data.stride`"""


class EncoderSection(NetworkSection):
    """What `uniform-N` and `tzn` share."""

    heads: Width = 4
    """heads of attention"""
    window: Reach | None = 16
    """reach of attention in positions; null: global"""
    dropout: Share = 0.0
    """of single values of a residual branch"""
    drop_path: BelowOne = 0.1
    """stochastic depth: whole residual branches are dropped with this probability in training"""
    layer_scale: Positive | None = 0.1
    """initial value of a learned factor per channel on residual branches; null: no factor"""
    head: Literal["mlp", "convolution"] = "convolution"
    """classes and boxes are read from a position on its own, or from a position and its neighbours"""
    levels: Annotated[int, Field(ge=1, le=12)] = 6
    """each level has half the positions of the one before; coarse ones find long instances"""
    coarse_layers: Annotated[int, Field(ge=0, le=64)] = 0
    """transformer layers on every coarser level, from where their results go down to the finer ones; 0: max pooling"""

    @property
    def attends_on_levels(self) -> bool:
        return self.coarse_layers > 0 and self.levels > 1


class UniformSection(EncoderSection):
    """`uniform-N`: the same N transformer layers at every position."""

    name: Annotated[str, Field(pattern=r"^uniform-([0-9]|[1-5][0-9]|6[0-4])$")] = "uniform-6"
    """`uniform-N`: N transformer layers at every position"""

    @property
    def depth(self) -> int:
        return int(self.name.removeprefix("uniform-"))


class PaperVariants(Section):
    """What the paper does otherwise, for its tables. None of it measured better than the default."""

    allocation: Allocation = "tau"
    """where depth goes: `tau`, where it is predicted to pay; the others are controls and competitors"""
    depths: Annotated[tuple[Annotated[int, Field(ge=0, le=64)], ...], Field(min_length=1, max_length=16)] = (0, 6, 9)
    """with `allocation` discrete, gumbel or reinforce: numbers of deep layers to choose from; of exits: after which"""
    confidence: Share = 0.9
    """with `allocation` exit or calibrated-exit: how sure an exit must be of every class for a position to leave"""
    combine: Literal["residual", "logits", "features", "layers"] = "residual"
    """how the deep path's result is combined with the shallow one"""
    head_width: Width | None = None
    """hidden width of the mlp heads; null: half of `model.width`"""
    context: Literal["convolution", "attention"] = "convolution"
    """how the surroundings of a position are read for its uncertainty: by a convolution, or by three local layers"""
    deep_window: Reach = 32
    """with `zoom` 0: how far apart two active positions may be to attend to each other"""
    supervision: Literal["value", "penalty", "stopped"] = "value"
    """how tau is learned: from the measured value of depth, or by a linear penalty; `stopped`: not where tau < 0.3"""
    tau_min: Share | None = None
    """fixed threshold of tau for going deep; null: the threshold that lets `share` of the positions pass"""
    hysteresis: Literal["none", "hold", "deadzone"] = "none"
    """`hold`: tau keeps its value within the band (main text); `deadzone`: one half within the band (appendix)"""
    band: Share = 0.05
    """width of the hysteresis band"""
    keep: Share = 0.8
    """with `pruning`: share of the positions that are kept"""
    protect_frames: NotNegative = 12.0
    """with `pruning`: frames around predicted boundaries that are never pruned"""
    protection: Literal["predicted", "oracle", "training", "none"] = "predicted"
    """with `pruning`: around which boundaries; `oracle`: the true ones, no result; `training`: in training only"""
    compute_weight: NotNegative = 0.05
    """lambda_c, with supervision `penalty` or `stopped`"""
    prune_weight: NotNegative = 0.01
    """lambda_p, with `pruning`"""
    uncertainty_weight: NotNegative = 0.1
    """lambda_2, of the uncertainty loss"""

    @model_validator(mode="after")
    def _depths_rise(self) -> PaperVariants:
        depths = self.depths
        if any(after <= before for before, after in pairwise(depths)) or depths[-1] == 0:
            raise ValueError(f"depths: must rise, and end above 0, got {list(depths)}")
        if self.allocation in (*EXITS, TAUGHT) and depths[0] == 0:
            raise ValueError("depths: an exit comes after at least one layer, got 0")
        return self

    @model_validator(mode="after")
    def _penalty_needs_a_threshold(self) -> PaperVariants:
        if self.supervision != "value" and self.tau_min is None:
            raise ValueError(
                f"supervision: {self.supervision} needs tau_min, the fixed threshold that the penalty works against"
            )
        return self


class ZoomSection(EncoderSection):
    """`tzn`: shallow everywhere, deep where it pays."""

    name: Literal["tzn"] = "tzn"
    """Temporal Zoom Network: a shallow network everywhere, a deep one where it is expected to pay"""
    shallow_layers: Annotated[int, Field(ge=0, le=64)] = 0
    """transformer layers at every position; 0: convolutions alone"""
    coarse_layers: Annotated[int, Field(ge=0, le=64)] = 1
    """transformer layers on every coarser level, from where their results go down to the finer ones; 0: max pooling"""
    deep_layers: Layers = 4
    """transformer layers at active positions"""
    expansion: Layers = 2
    """width of the feed-forward layers, in units of `width`"""
    zoom: Annotated[int, Field(ge=0, le=2**16)] = 24
    """an active position attends to the shallow tokens this many positions to either side; 0: to active ones only"""
    share: Share = 0.1
    """share of the positions that go deep, learned in training"""
    budget: Share | None = None
    """share of the positions of every recording that go deep at inference; null: as learned (`share`)"""
    depth: bool = True
    """predict where depth pays; false: every position goes deep"""
    uncertainty: bool = True
    """predict the uncertainty of each position, an input of the depth predictor"""
    pruning: bool = False
    """drop unimportant positions before the depth decision; saves nothing at a `share` below `keep`"""
    checkpoint_deep: bool = False
    """recompute the deep path in the backward pass: less memory, same result"""
    paper: PaperVariants = PaperVariants()


class PyramidSection(NetworkSection):
    """What the field's pyramid detectors share; adaptive depth, which none was published with, is off."""

    width: Width = 512
    standardize: bool = False
    levels: Annotated[int, Field(ge=1, le=12)] = 6
    heads: Width = 4
    deep_layers: Annotated[int, Field(ge=0, le=64)] = 0
    """transformer layers at active positions; 0, as published: no position goes deeper than the others"""
    zoom: Reach = 24
    """an active position attends to the detector's finest tokens this many positions to either side"""
    share: Share = 0.1
    budget: Share | None = None


class ActionFormerSection(PyramidSection):
    """`actionformer`, as published."""

    name: Literal["actionformer"] = "actionformer"
    window: Reach | None = 9
    drop_path: BelowOne = 0.1
    layer_scale: Positive | None = 1e-4


class TriDetSection(PyramidSection):
    """`tridet`, as published."""

    companions: ClassVar[Tree] = {"training": {"quality_power": 0.2}}

    name: Literal["tridet"] = "tridet"
    drop_path: BelowOne = 0.1
    layer_scale: Positive | None = 1e-4
    bins: Annotated[int, Field(ge=1, le=1024)] = 16
    """tridet: neighbours to either side that may hold the boundary"""
    granularity: Positive = 5.0
    """tridet: the wide kernel against the narrow one, k"""


class TemporalMaxerSection(PyramidSection):
    """`temporalmaxer`, as published."""

    name: Literal["temporalmaxer"] = "temporalmaxer"


class BMNSection(NetworkSection):
    """`bmn`, as published. Its scores are products of four, hence the lower `min_score`."""

    companions: ClassVar[Tree] = {
        "training": {"weight_decay": 1e-4},
        "inference": {"suppression": "bmn", "sigma": 0.4, "min_score": 1e-5},
    }
    levels: ClassVar[int] = 1

    name: Literal["bmn"] = "bmn"
    width: Width = 256
    standardize: bool = False
    durations: Annotated[int, Field(ge=1, le=4096)] = 64
    """bmn: longest segment of the map, in positions"""
    samples: Annotated[int, Field(ge=1, le=1024)] = 32
    """bmn: points at which a candidate segment is read"""


DEFAULT = "tzn"
SECTIONS: dict[str, type[NetworkSection]] = {
    "tzn": ZoomSection,
    "uniform": UniformSection,
    "actionformer": ActionFormerSection,
    "tridet": TriDetSection,
    "temporalmaxer": TemporalMaxerSection,
    "bmn": BMNSection,
}


def family_of(value: Any) -> str | None:
    """`uniform-6` -> `uniform`: which section the settings (or the loaded section) belong to."""
    name = value.get("name", DEFAULT) if isinstance(value, dict) else getattr(value, "name", None)
    if not isinstance(name, str):
        return None
    return "uniform" if name.startswith("uniform-") else name


ModelConfig = Annotated[
    Annotated[ZoomSection, Tag("tzn")]
    | Annotated[UniformSection, Tag("uniform")]
    | Annotated[ActionFormerSection, Tag("actionformer")]
    | Annotated[TriDetSection, Tag("tridet")]
    | Annotated[TemporalMaxerSection, Tag("temporalmaxer")]
    | Annotated[BMNSection, Tag("bmn")],
    Discriminator(family_of),
]


def adaptive_depth(model: NetworkSection) -> ZoomSection | None:
    """The settings of adaptive depth: `tzn`'s own; of a pyramid detector with `deep_layers` those that it has, the
    others as `tzn` has them by default; None where every position gets the same."""
    if isinstance(model, ZoomSection):
        return model
    if not isinstance(model, PyramidSection) or not model.deep_layers:
        return None
    return ZoomSection(**{key: getattr(model, key) for key in ("width", "heads", *ADAPTIVE_KEYS)})


def carried_over(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """Which settings of a recipe's `model` section hold for another architecture that takes its place.

    `uniform-N` and `tzn` are built alike and share what both have; of the field's detectors only the input is kept,
    the rest is as published.
    """
    before, after = (SECTIONS.get(family or "") for family in (family_of(settings), family_of({"name": name})))
    if before is None or after is None or before is after:
        return dict(settings)
    alike = issubclass(before, EncoderSection) and issubclass(after, EncoderSection)
    kept = EncoderSection.model_fields if alike else INPUT_KEYS
    return {key: value for key, value in settings.items() if key in kept and key != "name"}
