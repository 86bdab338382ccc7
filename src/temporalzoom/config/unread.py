"""A setting that is given is used, or refused: which settings the chosen model, data and losses do not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from temporalzoom.config.networks import (
    EXITS,
    ROUTED,
    ActionFormerSection,
    BMNSection,
    EncoderSection,
    PyramidSection,
    ZoomSection,
)
from temporalzoom.config.sections import Config, config_fields


@dataclass(frozen=True)
class Rule:
    """keys: settings, or whole sections ending in a dot, that are not read where `applies`."""

    keys: tuple[str, ...]
    applies: Callable[[Config], bool]
    reason: str


def _zoom(config: Config) -> ZoomSection | None:
    return config.model if isinstance(config.model, ZoomSection) else None


def _is(config: Config, **wanted: Any) -> bool:
    """Whether the model is `tzn` with these settings, of its own or of the paper's variants."""
    zoom = _zoom(config)
    if zoom is None:
        return False
    return all(
        (getattr(zoom, k) if k in type(zoom).model_fields else getattr(zoom.paper, k)) == v for k, v in wanted.items()
    )


def _allocation(config: Config) -> str | None:
    zoom = _zoom(config)
    return None if zoom is None else zoom.paper.allocation


def _attends_on_levels(config: Config) -> bool:
    return isinstance(config.model, EncoderSection) and config.model.attends_on_levels


def _as_published(config: Config) -> bool:
    """Whether the model is a pyramid detector without adaptive depth."""
    return isinstance(config.model, PyramidSection) and not config.model.deep_layers


def _takes_videos(config: Config) -> bool:
    return config.data.videos is not None and config.data.features is None


def _is_raw(config: Config) -> bool:
    return config.data.raw


def _has_variances(config: Config) -> bool:
    """Whether segment ends come with variances: from the boxes of our encoders, or from distances."""
    return isinstance(config.model, EncoderSection) or config.bdr.enabled


_BDR = ("bdr.loss", "bdr.channels", "bdr.radius", "bdr.smoothing", "bdr.weight", "bdr.scales")
# What only a predicted depth reads.
_DECIDED_BY_TAU = tuple(
    f"model.paper.{key}"
    for key in (
        "context", "supervision", "tau_min", "hysteresis", "band", "keep", "protect_frames", "protection",
        "compute_weight", "prune_weight", "uncertainty_weight",
    )
)  # fmt: skip
RULES: tuple[Rule, ...] = (
    Rule(_BDR, lambda c: not c.bdr.enabled, "bdr.enabled is false"),
    Rule(
        ("inference.refine", "inference.max_move", "inference.min_slope", "inference.boundary_window"),
        lambda c: not c.bdr.enabled,
        "without bdr.enabled there are no zero crossings",
    ),
    Rule(
        ("inference.min_slope", "inference.boundary_window"),
        lambda c: c.inference.refine != "snap",
        "only inference.refine=snap extracts boundaries",
    ),
    Rule(("inference.max_move",), lambda c: c.inference.refine == "none", "inference.refine is none"),
    Rule(("bdr.scales",), lambda c: c.model.levels == 1, "the model has a single level"),
    Rule(("bdr.scales",), lambda c: c.bdr.enabled and not c.bdr.measures, "bdr.loss predicts no distances"),
    Rule(
        ("bdr.loss",),
        lambda c: not isinstance(c.model, EncoderSection),
        "only uniform-N and tzn can classify boundaries",
    ),
    Rule(
        ("inference.min_slope", "inference.boundary_window"),
        lambda c: c.bdr.classifies,
        "bdr.loss finds boundaries by their probability",
    ),
    Rule(
        ("training.assignment",),
        lambda c: c.model.levels > 1,
        "of several levels, the one that an instance's length belongs to answers for it",
    ),
    Rule(
        (
            "training.assignment",
            "training.focal_alpha",
            "training.positives",
            "training.box_loss",
            "training.quality_power",
        ),
        lambda c: isinstance(c.model, BMNSection),
        "bmn has losses of its own",
    ),
    Rule(("data.soft_labels",), lambda c: isinstance(c.model, BMNSection), "bmn learns instances without scores"),
    Rule(
        ("model.window",),
        lambda c: (z := _zoom(c)) is not None and z.shallow_layers == 0 and z.zoom > 0,
        "without shallow layers positions attend by model.zoom alone",
    ),
    Rule(("model.window",), lambda c: c.model.name == "uniform-0", "uniform-0 has no layers"),
    Rule(
        ("model.heads",),
        lambda c: c.model.name == "uniform-0" and not _attends_on_levels(c),
        "uniform-0 has no attention",
    ),
    Rule(("model.coarse_layers",), lambda c: c.model.levels == 1, "the model has a single level"),
    Rule(("model.zoom", "model.share", "model.budget"), _as_published, "model.deep_layers is 0"),
    Rule(
        ("model.heads",),
        lambda c: _as_published(c) and not isinstance(c.model, ActionFormerSection),
        "without model.deep_layers the model has no attention",
    ),
    Rule(
        (
            "model.share",
            "model.budget",
            "model.paper.supervision",
            "model.paper.tau_min",
            "model.paper.hysteresis",
            "model.paper.band",
            "model.paper.compute_weight",
        ),
        lambda c: _is(c, depth=False),
        "model.depth is false",
    ),
    Rule(
        ("model.depth", "model.uncertainty", "model.pruning", *_DECIDED_BY_TAU),
        lambda c: _allocation(c) not in (None, "tau"),
        "model.paper.allocation says where depth goes",
    ),
    Rule(
        (
            "model.share",
            "model.budget",
            "model.deep_layers",
            "model.zoom",
            "model.checkpoint_deep",
            "model.paper.combine",
            "model.paper.deep_window",
        ),
        lambda c: _is(c, allocation="none"),
        "model.paper.allocation is none",
    ),
    Rule(
        ("model.paper.combine", "model.paper.deep_window"),
        lambda c: _allocation(c) in (*ROUTED, "mixture"),
        "model.paper.allocation is none of tzn's own",
    ),
    Rule(
        ("model.deep_layers",),
        lambda c: _allocation(c) in ROUTED,
        "model.paper.depths says how many there are",
    ),
    Rule(("model.budget",), lambda c: _allocation(c) in ROUTED, "model.paper.allocation has no budget"),
    Rule(("model.share",), lambda c: _allocation(c) in EXITS, "exits have model.paper.confidence"),
    Rule(("model.paper.depths",), lambda c: _allocation(c) not in ROUTED, "model.paper.allocation does not choose one"),
    Rule(("model.paper.confidence",), lambda c: _allocation(c) not in EXITS, "model.paper.allocation has no exits"),
    Rule(("model.window",), lambda c: _is(c, allocation="none", shallow_layers=0), "there are no shallow layers"),
    Rule(
        ("model.heads", "model.expansion"),
        lambda c: _is(c, allocation="none", shallow_layers=0) and not _attends_on_levels(c),
        "without layers there is no attention",
    ),
    Rule(
        ("model.paper.context", "model.paper.uncertainty_weight"),
        lambda c: _is(c, uncertainty=False),
        "model.uncertainty is false",
    ),
    Rule(
        ("model.paper.keep", "model.paper.protect_frames", "model.paper.protection", "model.paper.prune_weight"),
        lambda c: _is(c, pruning=False),
        "model.pruning is false",
    ),
    Rule(("model.paper.band",), lambda c: _is(c, hysteresis="none"), "model.paper.hysteresis is none"),
    Rule(
        ("model.paper.deep_window",),
        lambda c: (z := _zoom(c)) is not None and (z.zoom > 0 or z.window is None),
        "an active position attends to the shallow tokens around it (model.zoom), or to all (model.window null)",
    ),
    Rule(
        ("model.paper.compute_weight",),
        lambda c: _is(c, supervision="value"),
        "model.paper.supervision is value",
    ),
    Rule(
        ("model.share",),
        lambda c: _is(c, supervision="penalty") or _is(c, supervision="stopped"),
        "with a penalty (model.paper.supervision) the threshold is model.paper.tau_min",
    ),
    Rule(
        ("model.paper.head_width",),
        lambda c: _is(c, head="convolution"),
        "model.head is convolution",
    ),
    Rule(("model.paper.protect_frames",), lambda c: _is(c, protection="none"), "model.paper.protection is none"),
    Rule(
        ("backbone.",), lambda c: not _takes_videos(c), "it is trained with data.videos in the place of data.features"
    ),
    Rule(("augment.",), _takes_videos, "it is for features and signals; with data.videos there is backbone.augment"),
    Rule(("model.stem",), lambda c: not _is_raw(c), "it reads raw signals (data.raw)"),
    Rule(("augment.shift", "augment.rotate"), lambda c: not _is_raw(c), "it is for raw signals (data.raw)"),
    Rule(("data.resize",), _is_raw, "windows are cut from raw signals"),
    Rule(("inference.sigma",), lambda c: c.inference.suppression in ("hard", "none"), "only soft suppression has it"),
    Rule(("inference.tiou_threshold",), lambda c: c.inference.suppression != "hard", "only hard suppression has it"),
    Rule(("inference.certainty",), lambda c: not _has_variances(c), "the model predicts no variances"),
    Rule(
        ("inference.video_scores",),
        lambda c: not c.data.class_agnostic,
        "it labels the segments of a class-agnostic model (data.class_agnostic)",
    ),
)


def unread_keys(config: Config) -> dict[str, str]:
    """Settings that have no effect in this configuration, and why."""
    found: dict[str, str] = {}
    names = [key for key in config_fields() if "." in key]
    for rule in RULES:
        if not rule.applies(config):
            continue
        for key in rule.keys:
            matching = [name for name in names if name.startswith(key)] if key.endswith(".") else [key]
            for name in matching:
                found.setdefault(name, rule.reason)
    return found


def given_keys(tree: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys of the settings that a tree of mappings holds."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from given_keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
