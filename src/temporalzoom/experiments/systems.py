"""The systems that several tables compare, as settings over a data set's recipe."""

from __future__ import annotations

# What a recipe of a single level lacks of the losses that the field's pyramids were published with.
_PUBLISHED = (
    "training.box_loss=diou",
    "training.positives=100",
    "training.focal_alpha=0.25",
    "training.weight_decay=0.05",
)
BASELINE = "uniform-6"
DETECTORS: dict[str, tuple[str, ...]] = {
    BASELINE: ("model.name=uniform-6",),
    "actionformer": ("model.name=actionformer", *_PUBLISHED),
    "tridet": ("model.name=tridet", *_PUBLISHED),
    "temporalmaxer": ("model.name=temporalmaxer", *_PUBLISHED),
    # Its map is as large as length x durations: smaller crops, half the width.
    "bmn": (
        "model.name=bmn",
        "model.width=64",
        "model.samples=16",
        "training.batch_size=4",
        "training.length=128",
    ),
}
TZN: tuple[str, ...] = ("model.name=tzn",)
NO_BDR = ("bdr.enabled=false",)
# The field's pyramids, beside BDR with adaptive depth: the deep path of tzn.
PYRAMIDS = ("actionformer", "tridet", "temporalmaxer")
ZOOM = ("model.deep_layers=4",)
# The network of tzn with depth elsewhere, at the same share; nowhere; everywhere.
CONTROLS: dict[str, tuple[str, ...]] = {
    "tzn-none": (*TZN, "model.paper.allocation=none"),
    "tzn-random": (*TZN, "model.paper.allocation=random"),
    "tzn-regular": (*TZN, "model.paper.allocation=regular"),
    "tzn-oracle": (*TZN, "model.paper.allocation=oracle"),
    "tzn-all": (*TZN, "model.depth=false"),
}
# Other ways to allocate depth on the network of tzn.
COMPETITORS: dict[str, tuple[str, ...]] = {
    "discrete-3": (*TZN, "model.paper.allocation=discrete", "model.paper.depths=[0,6,9]"),
    "discrete-4": (*TZN, "model.paper.allocation=discrete", "model.paper.depths=[0,3,6,9]"),
    "gumbel": (*TZN, "model.paper.allocation=gumbel", "model.paper.depths=[0,6,9]"),
    "reinforce": (*TZN, "model.paper.allocation=reinforce", "model.paper.depths=[0,6,9]"),
    "early-exit": (*TZN, "model.paper.allocation=exit", "model.paper.depths=[2,4,6]"),
    "early-exit+temp": (*TZN, "model.paper.allocation=calibrated-exit", "model.paper.depths=[2,4,6]"),
    "mixture": (*TZN, "model.paper.allocation=mixture"),
    "pruning": (
        *TZN,
        "model.depth=false",
        "model.pruning=true",
        "model.paper.keep=0.4",
        "model.paper.protection=none",
    ),
}
# tau as the paper learns it: from the detection loss, against a linear penalty and a fixed threshold.
PENALTY: tuple[str, ...] = (*TZN, "model.paper.supervision=penalty", "model.paper.tau_min=0.5")
# Boundaries that are classified, in the place of distances; and both.
CLASSIFIERS: dict[str, tuple[str, ...]] = {
    "uniform-6+bce": ("model.name=uniform-6", "bdr.loss=bce"),
    "uniform-6+focal": ("model.name=uniform-6", "bdr.loss=focal"),
    "uniform-6+hybrid": ("model.name=uniform-6", "bdr.loss=hybrid"),
}
# A network without adaptive depth: how many layers and how wide, so that it costs what tzn does, `sizing` finds.
DENSE = "dense"
REFERENCES: dict[str, tuple[str, ...]] = {
    **{f"uniform-{n}+bdr": (f"model.name=uniform-{n}",) for n in (0, 1, 2)},
    DENSE: ("model.name=uniform-1",),
}
SYSTEMS: dict[str, tuple[str, ...]] = {
    **{name: (*settings, *NO_BDR) for name, settings in DETECTORS.items()},
    **{f"{name}+bdr": settings for name, settings in DETECTORS.items()},
    **{f"{name}+bdr+zoom": (*DETECTORS[name], *ZOOM) for name in PYRAMIDS},
    "tzn": TZN,
    **CONTROLS,
    **CLASSIFIERS,
    **REFERENCES,
}


def chosen(*names: str) -> dict[str, tuple[str, ...]]:
    """Systems by their names, in this order."""
    return {name: SYSTEMS[name] for name in names}
