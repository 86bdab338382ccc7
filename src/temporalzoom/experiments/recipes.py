"""The recipes of the benchmarks on real recordings. The files configs/{sbhar,tug,rats}*.yaml hold the same.

How they were found is in docs/real-data.md: on a validation split of the training subjects.
"""

from __future__ import annotations

_SHARED = (
    "model.width=128",
    "model.window=16",
    "model.dropout=0",
    "model.standardize=true",
    "bdr.radius=8",
    "bdr.weight=0.15",
    "training.learning_rate=1e-3",
    "training.warmup_steps=50",
    "training.ema_decay=0.99",
    "training.focal_alpha=0.5",
    "augment.shift=true",
    "augment.warp=0.3",
    "inference.voting=0.6",
)
RECIPES: dict[str, tuple[str, ...]] = {
    "sbhar": (
        "data.source=sbhar",
        "data.root={root}",
        "data.stride=25",
        "data.window=50",
        *_SHARED,
        "augment.rotate=15",
        "augment.drop=0.1",
        "training.steps=1200",
        "training.batch_size=8",
        "training.length=192",
    ),
    "tug": (
        "data.source=tug",
        "data.root={root}",
        "data.stride=10",
        "data.window=40",
        *_SHARED,
        "augment.rotate=15",
        "augment.drop=0.1",
        "training.steps=600",
        "training.batch_size=12",
        "training.length=96",
    ),
    "rats": (
        "data.source=folder",
        "data.annotations={root}/coarse.json",
        "data.features={root}/pose.npz",
        "data.raw=true",
        "data.missing=interpolate",
        "data.stride=16",
        "data.window=32",
        "data.test_recordings=['rat4[5-9]', 'rat5*']",
        *_SHARED,
        "training.steps=700",
        "training.batch_size=8",
        "training.length=192",
    ),
}
SYSTEMS = {
    "uniform-6": ("model.name=uniform-6", "bdr.enabled=false"),
    "uniform-6+bdr": ("model.name=uniform-6",),
    "tzn": ("model.name=tzn", "tzn.warmup=100", "tzn.deep_weight=1"),
}
