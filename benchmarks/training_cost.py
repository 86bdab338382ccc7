"""What one training step costs: `uniform-6` with BDR, the demo's `tzn`, and `tzn` with less memory.

    python benchmarks/training_cost.py                 # some minutes
    python benchmarks/training_cost.py --steps 2 --repeats 2 model.width=16 training.length=64

Settings `key=value` hold for all systems. Counted and timed is a step after `--steps` steps of training, because the
threshold of `tzn` first has to rise: while it warms up, every position enters the deep path. The step is what training
does: batch, forward, objective, backward, clipping, update of the weights. FLOPs are those of forward and backward, and
of what checkpointing computes again. Peak memory is that of tensors. Times are taken in turn in this process.
Writes runs/benchmarks/training_cost.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, load_config
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.metrics.cost import peak_memory
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.models.runtime import denormals_as_zero
from temporalzoom.runs.network import model_from_config
from temporalzoom.training.batches import training_batch
from temporalzoom.training.loop import CLIP_NORM
from temporalzoom.training.objective import objective
from temporalzoom.training.optimizer import build_optimizer, learning_rate
from temporalzoom.workflows.demo import ADAPTIVE, REFINED, STEPS, SYSTEMS

# Name -> system of the demo, and what is changed about it.
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    REFINED: (REFINED, ()),
    ADAPTIVE: (ADAPTIVE, ()),
    f"{ADAPTIVE}, checkpoint_deep": (ADAPTIVE, ("model.checkpoint_deep=true",)),
}


class Trainer:
    """One system in training; every call is the next step."""

    def __init__(self, config: Config, split: Split) -> None:
        torch.manual_seed(config.seed)
        self.config, self.split, self.taken = config, split, 0
        grid = split.samples[0].grid
        self.model = model_from_config(config, split.input_width, len(split.classes), grid).train()
        self.optimizer = build_optimizer(self.model, config.training)

    @torch.inference_mode(False)  # `peak_memory` looks at inference, where there would be no gradients
    def __call__(self) -> None:
        options = self.config.training
        torch.manual_seed(self.taken)  # the same lots for every system, as the same batches
        batch = training_batch(
            self.split, self.config.seed, self.taken, options.batch_size, options.length, self.config.bdr
        )
        terms = objective(self.model(batch.features, batch.mask), batch, self.config, self.taken / options.steps)
        torch.stack(list(terms.values())).sum().backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.taken, options)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)  # last: the memory of gradients is counted where it is taken
        self.taken += 1


def count_step(step: Callable[[], object]) -> int:
    """FLOPs of one step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        step()
    return int(counter.get_total_flops())


def measure(trainers: dict[str, Trainer], repeats: int) -> dict[str, dict[str, Any]]:
    """Cost of the next steps of every system, all of them on the same batches."""
    flops = {name: count_step(trainer) for name, trainer in trainers.items()}
    memory = {name: peak_memory(trainer) for name, trainer in trainers.items()}
    latency = measure_latency(trainers, repeats, warmup=1)
    rows: dict[str, dict[str, Any]] = {}
    for name in trainers:
        ratio = latency_ratio(latency[name], latency[REFINED])
        rows[name] = {
            "flops": flops[name],
            "flops_ratio": flops[name] / flops[REFINED],
            "seconds": latency[name].median,
            "time_ratio": [ratio.median, ratio.low, ratio.high],
            "peak_bytes": memory[name],
            "peak_ratio": memory[name] / memory[REFINED],
        }
    return rows


def table(rows: dict[str, dict[str, Any]]) -> Table:
    result = Table(
        title=f"One training step; ratios to {REFINED}, that of time with its 95 % interval",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    result.add_column("system", no_wrap=True)
    for title in ("GFLOPs", "ratio", "ms", "ratio", "MB", "ratio"):
        result.add_column(title, justify="right", no_wrap=True)
    for name, row in rows.items():
        middle, low, high = row["time_ratio"]
        result.add_row(
            name,
            f"{row['flops'] / 1e9:.2f}",
            f"{row['flops_ratio']:.2f}",
            f"{1e3 * row['seconds']:.0f}",
            escape(f"{middle:.2f} [{low:.2f}, {high:.2f}]"),
            f"{row['peak_bytes'] / 1e6:.1f}",
            f"{row['peak_ratio']:.2f}",
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings for all systems")
    parser.add_argument("--steps", type=int, default=150, help="steps of training before what is measured")
    parser.add_argument("--repeats", type=int, default=20, help="timed steps of every system")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/training_cost.json"))
    options = parser.parse_args()
    if options.steps < 0 or options.repeats < 1 or options.threads < 1:
        parser.error("--steps must be at least 0, --repeats and --threads at least 1")

    try:
        configs = {
            name: load_config(
                "zoombench", (STEPS, *SYSTEMS[system], *changes, *options.overrides, f"seed={options.seed}")
            )
            for name, (system, changes) in VARIANTS.items()
        }
        if any((c.training.precision, c.training.accumulate) != ("float32", 1) for c in configs.values()):
            raise InputError("training.precision and training.accumulate cannot be changed here")
        split = load_data(configs[REFINED].data, options.seed, test=False).train
    except InputError as error:
        parser.error(str(error))
    assert split is not None
    with threads(options.threads), denormals_as_zero():
        trainers = {name: Trainer(config, split) for name, config in configs.items()}
        for trainer in trainers.values():
            for _ in range(options.steps):
                trainer()
        rows = measure(trainers, options.repeats)
    Console().print(table(rows))
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    with replacing(options.out) as file:
        json.dump({"settings": settings, "systems": rows}, file, indent=1)


if __name__ == "__main__":
    main()
