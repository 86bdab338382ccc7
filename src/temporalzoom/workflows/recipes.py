"""The recipes of the benchmarks. The files configs/{zoombench,sbhar,sbhar_stem,tug,rats}*.yaml hold the same.

How they were found is in docs/real-data.md: on a validation split of the training subjects.
"""

from __future__ import annotations

from dataclasses import dataclass

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
# Levels, with the losses that the field's pyramids are trained with; branches that start quiet and are dropped at times
# learn less by heart.
_LEVELS = (
    "model.levels=6",
    "model.drop_path=0.1",
    "model.layer_scale=0.1",
    "training.weight_decay=0.05",
    "training.box_loss=diou",
    "training.positives=100",
    "training.focal_alpha=0.25",
)
_SBHAR = (
    "data.source=sbhar",
    "data.root={root}",
    "data.stride=25",
    *_SHARED,
    "augment.rotate=15",
    "augment.drop=0.1",
    "training.steps=1200",
    "training.batch_size=8",
    "training.length=192",
)
# Small enough for a laptop: what the demo trains. Its instances last from half a second to fourteen: hence the levels.
# Attention at every position learns the sequences by heart: `tzn` has it where it zooms, convolutions do elsewhere.
ZOOMBENCH = (
    "data.source=zoombench",
    "model.width=64",
    "model.window=16",
    "model.head=convolution",
    "model.levels=6",
    "model.dropout=0",
    "tzn.shallow_layers=0",
    "bdr.radius=8",
    "bdr.weight=0.15",
    "training.learning_rate=3e-3",
    "training.weight_decay=0.05",
    "training.warmup_steps=50",
    "training.ema_decay=0.99",
    "training.focal_alpha=0.25",
    "training.positives=100",
    "training.box_loss=diou",
    "training.steps=600",
    "augment.drop=0.15",
)
RECIPES: dict[str, tuple[str, ...]] = {
    # All systems and seeds on the same sequences, and on some that no setting was chosen on.
    "zoombench": (*ZOOMBENCH, "data.zoombench.seed=1"),
    "sbhar": (*_SBHAR, "data.window=50", "tzn.share=0.15"),
    # The same windows, read as samples by convolutions; levels for transitions of 3 s beside activities of 20.
    "sbhar-stem": (
        *_SBHAR,
        "data.window=50",
        "model.stem=[5,5]",
        *_LEVELS,
        "inference.voting=null",
        "inference.certainty=4",
    ),
    "tug": (
        "data.source=tug",
        "data.root={root}",
        "data.stride=10",
        "data.window=40",
        *_SHARED,
        "augment.rotate=15",
        "augment.drop=0.1",
        "tzn.share=0.15",
        "inference.certainty=4",
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
        "data.keypoints=xyc",
        "data.stride=16",
        "data.window=16",
        "data.test_recordings=['rat4[5-9]', 'rat5*']",
        *_SHARED,
        "model.stem=[4,4]",
        *_LEVELS,
        "model.head=convolution",
        "augment.noise=0.3",
        "inference.voting=null",
        "inference.certainty=2",
        "training.steps=400",
        "training.batch_size=8",
        "training.length=192",
    ),
}
# What `tzn` has of its own on a data set. `attention` is the context that its table was measured with.
ZOOMS: dict[str, tuple[str, ...]] = {
    "sbhar": ("tzn.context=attention",),
    "sbhar-stem": ("tzn.shallow_layers=0", "tzn.deep_layers=4"),
    "rats": ("tzn.shallow_layers=0", "tzn.deep_layers=4"),
}
# What the pyramid detectors of the field were published with, beside the data set's own recipe.
_PUBLISHED = (
    "model.window=9",
    "model.drop_path=0.1",
    "model.layer_scale=1e-4",
    "training.box_loss=diou",
    "training.positives=100",
    "training.focal_alpha=0.25",
    "training.weight_decay=0.05",
)
DETECTORS: dict[str, tuple[str, ...]] = {
    "uniform-6": ("model.name=uniform-6",),
    "actionformer": ("model.name=actionformer", *_PUBLISHED),
    "tridet": ("model.name=tridet", *_PUBLISHED, "training.quality_power=0.2"),
    "temporalmaxer": ("model.name=temporalmaxer", *_PUBLISHED),
    # Its map is as large as length x durations: smaller crops, half the width. Its scores are products of four.
    "bmn": (
        "model.name=bmn",
        "model.width=64",
        "bmn.samples=16",
        "training.batch_size=4",
        "training.length=128",
        "training.weight_decay=1e-4",
        "inference.suppression=bmn",
        "inference.sigma=0.4",
        "inference.min_score=1e-5",
    ),
}
_TZN = ("model.name=tzn", "tzn.warmup=100", "tzn.deep_weight=1")
# SBHAR at finer strides than its recipe's 25 samples: what is told in positions reaches as far in seconds. At a quarter
# of the stride, half as many crops: a step costs what it costs at half of it.
STRIDES: dict[str, tuple[str, ...]] = {
    "tzn-stride-12": (
        *_TZN,
        "data.stride=12",
        "data.window=12",
        "model.stem=[4,3]",
        "model.window=32",
        "model.levels=7",
        "tzn.zoom=48",
        "bdr.radius=16",
        "training.length=384",
    ),
    "tzn-stride-6": (
        *_TZN,
        "data.stride=6",
        "data.window=6",
        "model.stem=[3,2]",
        "model.window=64",
        "model.levels=8",
        "tzn.zoom=96",
        "bdr.radius=32",
        "training.length=768",
        "training.batch_size=4",
    ),
}
SYSTEMS: dict[str, tuple[str, ...]] = {
    **{name: (*settings, "bdr.enabled=false") for name, settings in DETECTORS.items()},
    **{f"{name}+bdr": settings for name, settings in DETECTORS.items()},
    "tzn": _TZN,
    **STRIDES,
}


@dataclass(frozen=True)
class Benchmark:
    """Which systems are trained, and which are compared: the first against the second. baseline: whose costs are 1.

    data_set: the only one that it is about, None: any.
    """

    name: str
    systems: tuple[str, ...]
    comparisons: tuple[tuple[str, str], ...]
    baseline: str = "uniform-6"
    data_set: str | None = None

    @property
    def results_file(self) -> str:
        """Benchmarks of one data set share a folder, and the runs in it."""
        return "results.json" if self.name == "ours" else f"results-{self.name}.json"


OURS = Benchmark(
    "ours",
    ("uniform-6", "uniform-6+bdr", "tzn"),
    (("uniform-6+bdr", "uniform-6"), ("tzn", "uniform-6"), ("tzn", "uniform-6+bdr")),
)
RETROFIT = Benchmark(
    "retrofit",
    tuple(system for name in DETECTORS for system in (name, f"{name}+bdr")),
    tuple((f"{name}+bdr", name) for name in DETECTORS),
)
FIELD = Benchmark(
    "systems",
    (*DETECTORS, "uniform-6+bdr", "tzn"),
    tuple(("tzn", name) for name in (*DETECTORS, "uniform-6+bdr")),
)
BY_STRIDE = Benchmark("strides", ("tzn", *STRIDES), tuple((name, "tzn") for name in STRIDES), "tzn", "sbhar-stem")
BENCHMARKS = {benchmark.name: benchmark for benchmark in (OURS, RETROFIT, FIELD, BY_STRIDE)}
