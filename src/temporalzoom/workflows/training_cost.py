"""What trained systems cost, side by side: a step of their training, and their use. Counted on what really runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

from temporalzoom.datasets.samples import Split
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_run, peak_memory
from temporalzoom.metrics.latency import measure_latency
from temporalzoom.progress import track
from temporalzoom.runs.checkpoint import BEST, find_checkpoint, load_network, read_info
from temporalzoom.runs.network import distance_scales, oracle_reach
from temporalzoom.training.batches import training_batch
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.training.objective import objective
from temporalzoom.training.teacher import load_teacher
from temporalzoom.workflows.evaluate import sample_outputs
from temporalzoom.workflows.sweep_member import training_seconds

WARMUP = 1  # rounds that do not count


@dataclass(frozen=True)
class Cost:
    """Of a step, forward and backward, its teacher included: FLOPs, seconds, peak bytes of tensors. steps, of the whole
    training, and the seconds that it took, of the runs where that is known. Of localizing all test recordings: FLOPs
    executed, seconds, and peak bytes on the longest one."""

    step_flops: int
    step_seconds: float
    step_bytes: int
    steps: int
    trained_seconds: float
    flops: int
    seconds: float
    bytes: int

    def training(self) -> dict[str, Any]:
        return {
            "step_flops": self.step_flops,
            "step_seconds": self.step_seconds,
            "step_peak_bytes": self.step_bytes,
            "steps": self.steps,
            "flops": self.step_flops * self.steps,
            "seconds": self.trained_seconds,
        }

    def inference(self) -> dict[str, Any]:
        return {"flops": self.flops, "seconds": self.seconds, "peak_bytes": self.bytes}


def measure_costs(
    runs: Mapping[str, Path],
    train: Split,
    test: Split,
    taught: Mapping[str, Path] | None = None,
    repeats: int = 5,
    console: Console | None = None,
) -> dict[str, Cost]:
    """On the processor, timed in turn in this process. taught: teachers of those that have one."""
    steps = {name: training_step(run, train, (taught or {}).get(name)) for name, run in runs.items()}
    users = {name: Localizer.load(run, device="cpu") for name, run in runs.items()}
    uses = {name: _use(localizer, test) for name, localizer in users.items()}
    longest = {name: _use(localizer, test, only_longest=True) for name, localizer in users.items()}

    def watched(what: str) -> Callable[[range], Any]:
        return lambda turns: track(turns, what, console, "rounds")

    trained = measure_latency(steps, repeats, WARMUP, watched("timing training"))
    used = measure_latency(uses, repeats, WARMUP, watched("timing inference"))
    costs = {}
    for name, run in runs.items():
        options = read_info(find_checkpoint(run)).config.training
        costs[name] = Cost(
            count_step(steps[name]) * options.accumulate,
            trained[name].median * options.accumulate,
            peak_memory(steps[name]),
            options.steps,
            training_seconds(read_metrics(_folder(run) / "metrics.jsonl")),
            count_run(users[name].model, uses[name]).total,
            used[name].median,
            peak_memory(longest[name]),
        )
    return costs


def training_step(run: Path, split: Split, teacher: Path | None = None) -> Callable[[], None]:
    """Forward and backward pass of a trained network on its first batch; its weights stay as they are."""
    checkpoint = find_checkpoint(run)
    info = read_info(checkpoint)
    config, options = info.config, info.config.training
    network, _ = load_network(checkpoint, info)
    network.train()
    taught_by = load_teacher(teacher, config, split)
    reach, scales = oracle_reach(config, info.grid.stride), distance_scales(config)

    @torch.inference_mode(False)  # `peak_memory` looks at inference, where there would be no gradients
    @torch.enable_grad()
    def step() -> None:
        torch.manual_seed(config.seed)
        which = (split, config.seed, 0, options.batch_size, options.length, config.bdr)
        batch = training_batch(*which, reach, None, scales)
        truth = {} if batch.boundaries is None else {"boundaries": batch.boundaries}
        outputs = network(batch.features, batch.mask, **truth)
        with torch.no_grad():
            taught = None if taught_by is None else taught_by(batch.features, batch.mask)
        terms = objective(outputs, batch, config, taught=taught)
        torch.stack(list(terms.values())).sum().backward()
        network.zero_grad(set_to_none=True)

    return step


def count_step(step: Callable[[], object]) -> int:
    """FLOPs of one step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        step()
    return int(counter.get_total_flops())


def _use(localizer: Localizer, split: Split, only_longest: bool = False) -> Callable[[], None]:
    samples = [max(split.samples, key=len)] if only_longest else split.samples

    def run() -> None:
        for sample in samples:
            sample_outputs(localizer, sample)

    return run


def _folder(run: Path) -> Path:
    """Of a checkpoint or a run: that of the run."""
    checkpoint = find_checkpoint(run)
    return checkpoint.parent if checkpoint.name == BEST else checkpoint.parents[1]
