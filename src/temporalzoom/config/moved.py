"""Where the settings of earlier versions went: an old key is an error that names the new one."""

from __future__ import annotations

_PAPER = (
    "combine", "context", "deep_window", "supervision", "tau_min", "hysteresis", "band", "keep", "protect_frames",
    "protection", "compute_weight", "prune_weight", "uncertainty_weight",
)  # fmt: skip
_ZOOM = (
    "shallow_layers", "deep_layers", "expansion", "zoom", "share", "budget", "depth", "uncertainty", "pruning",
    "checkpoint_deep",
)  # fmt: skip
_GENERATOR = (
    "dimension", "classes", "stride", "window", "fps", "noise", "signal", "shortest", "longest", "mean_gap",
    "back_to_back", "overlap", "flashes_per_minute", "blurs_per_minute",
)  # fmt: skip

MOVED: dict[str, str] = {
    **{f"tzn.{key}": f"is model.{key} now" for key in _ZOOM},
    **{f"tzn.{key}": f"is model.paper.{key} now" for key in _PAPER},
    "tzn.normalize_logits": "is gone; model.paper.combine=logits normalizes them",
    "tzn.execution": "is gone; what is skipped is never executed",
    "tzn.warmup": "is gone; the threshold rises over 100 batches",
    "tzn.explore": "is gone; depth is tried at every position in training",
    "tzn.shallow_weight": "is gone; the shallow path's own loss has weight 0.5",
    "tzn.deep_weight": "is gone; the deep path's own loss has weight 1",
    "tzn.depth_weight": "is gone; the loss of the depth predictor has weight 0.5",
    "tzn.boundary_value": "is gone; one position of error at a boundary counts 0.5",
    "pyramid.levels": "is model.levels now",
    "pyramid.bins": "is model.bins now",
    "pyramid.granularity": "is model.granularity now",
    **{
        f"pyramid.{key}": "is gone; it is as published" for key in ("finest", "stem_layers", "head_layers", "expansion")
    },
    "model.finest": "is gone; the first level answers for offsets of up to 4 positions",
    "bmn.durations": "is model.durations now",
    "bmn.samples": "is model.samples now",
    "bmn.widened": "is gone; half of a segment's length is read before and after it, as published",
    **{f"data.zoombench.{key}": f"is data.{key} now" for key in ("seed", "sequences", "test_sequences", "length")},
    **{f"data.zoombench.{key}": f"is an option of tzoom data make-zoombench now: {key}=..." for key in _GENERATOR},
    "bdr.far_weight": "is gone; far positions weigh 0.05",
    "bdr.alpha": "is gone; the slope term has weight 0.1",
    "bdr.variance_weight": "is gone; the variance of distances is learned with weight 0.1",
    "bdr.scale_weight": "is bdr.scales now, with the values one, sqrt and inverse",
    "augment.gain": "is gone",
    "augment.splice": "is gone; it changed nothing that shows",
    "training.center_radius": "is gone; it is 1.5 strides",
    "training.clip_norm": "is gone; gradients are clipped at norm 1",
    "training.center_fraction": "is gone; levels find long instances",
    "training.focal_gamma": "is gone; it is 2",
    "training.l1_weight": "is gone; it is 1",
    "training.giou_weight": "is gone; it is 1",
    "training.box_variance_weight": "is gone; the variance of boxes is learned with weight 0.1",
}
SECTIONS = {"tzn": "model", "pyramid": "model", "bmn": "model", "data.zoombench": "data"}


def moved(key: str) -> str | None:
    """What became of a key, or of a whole section, of an earlier version; None: it never was one."""
    if key in MOVED:
        return f"{key}: {MOVED[key]}"
    return f"{key}: its settings are in the section '{SECTIONS[key]}' now" if key in SECTIONS else None
