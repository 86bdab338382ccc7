"""How tau learns: the demo's `tzn` taught the value of depth, and with the paper's linear price on tau instead.

    python benchmarks/supervision.py --seeds 100 101
    python benchmarks/supervision.py --seeds 100 --steps 2 model.width=16 data.sequences=8

Settings `key=value` hold for both. Every seed draws its own data, weights and batches; intervals are those of the mean
over seeds (Student's t, 95 %). FLOPs are executed ones of localizing the test sequences, relative to `uniform-6`, which
runs all its layers everywhere. Prints a table and writes runs/benchmarks/supervision.json, the runs beside it.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import nn

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, load_config
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.windows import run_network
from temporalzoom.metrics.cost import count_run
from temporalzoom.runs.network import model_from_config
from temporalzoom.training import train
from temporalzoom.workflows.demo import ADAPTIVE, BASELINE, STEPS, SYSTEMS, THRESHOLDS
from temporalzoom.workflows.evaluate import evaluate_split
from zoombench import interval  # the script beside this one

SUPERVISIONS = {
    "value": ("model.paper.supervision=value",),
    "penalty": ("model.paper.supervision=penalty", "model.paper.tau_min=0.5"),
}
# Distance in positions to the closest true boundary: at most so many is at it, more than so many is far from it.
NEAR, FAR = 1, 8
AVERAGED = (0.3, 0.4, 0.5, 0.6, 0.7)
COLUMNS = {
    "average_mAP": "avg .3:.7",
    "mAP@0.7": "@0.7",
    "mAP@0.9": "@0.9",
    "tau": "tau",
    "tau_near": f"tau <= {NEAR}",
    "tau_far": f"tau > {FAR}",
    "active": "active (%)",
    "flops": "FLOPs (x)",
}
PERCENT = ("average_mAP", "mAP@0.7", "mAP@0.9", "active")


def boundary_distance(sample: Sample) -> NDArray[np.float64]:
    """How far every position is from the closest true start or end, in positions, (T,); infinite without any."""
    times = np.concatenate((sample.segments.starts, sample.segments.ends))
    return np.abs(np.arange(len(sample))[:, None] - sample.grid.to_grid(times)).min(1, initial=np.inf)


def depth_numbers(localizer: Localizer, test: Split) -> dict[str, float]:
    """Mean of tau everywhere, at true boundaries and far from them, and the share of active positions."""
    taus, actives = [], []
    for sample in test.samples:
        depth = localizer.outputs(sample.features).depth
        assert depth is not None
        taus.append(depth.tau.double().numpy())
        actives.append(depth.active.numpy())
    tau, active = np.concatenate(taus), np.concatenate(actives)
    distance = np.concatenate([boundary_distance(sample) for sample in test.samples])

    def mean(where: NDArray[np.bool_]) -> float:
        return float(tau[where].mean()) if where.any() else float("nan")

    return {
        "tau": float(tau.mean()),
        "tau_near": mean(distance <= NEAR),
        "tau_far": mean(distance > FAR),
        "active": float(active.mean()),
    }


def executed_flops(model: nn.Module, test: Split, window: int) -> int:
    """Of localizing all test sequences."""
    return count_run(model, lambda: [run_network(model, sample.features, window) for sample in test.samples]).total


def run_one(config: Config, baseline: Config, run: Path, console: Console) -> dict[str, float]:
    """Train and score one system; the baseline is only counted, and its FLOPs do not depend on its weights."""
    data = load_data(config.data, config.seed)
    assert data.train is not None and data.test is not None
    shutil.rmtree(run, ignore_errors=True)
    train(config, data.train, run, console=console)
    localizer = Localizer.load(run)
    detection = evaluate_split(localizer, data.test, THRESHOLDS, console).detection.mAP
    grid = data.test.samples[0].grid
    plain = model_from_config(baseline, data.test.input_width, len(data.test.classes), grid).eval()
    window = config.inference.max_length
    return {
        "average_mAP": float(np.mean([detection[threshold] for threshold in AVERAGED])),
        "mAP@0.7": detection[0.7],
        "mAP@0.9": detection[0.9],
        **depth_numbers(localizer, data.test),
        "flops": executed_flops(localizer.model, data.test, window) / executed_flops(plain, data.test, window),
    }


def summarise(runs: Sequence[dict[str, float]]) -> dict[str, tuple[float, float, float]]:
    """Mean over seeds and its interval, of every number."""
    return {number: interval([run[number] for run in runs]) for number in COLUMNS}


def table(summary: dict[str, dict[str, tuple[float, float, float]]]) -> Table:
    """One column per supervision: eight numbers with intervals side by side fit no terminal."""
    result = Table(
        title="tzn on ZoomBench by model.paper.supervision, mean over seeds [95 % interval]", title_justify="left"
    )
    result.add_column("")
    for name in summary:
        result.add_column(name, justify="right", no_wrap=True)
    for number, title in COLUMNS.items():
        scale, digits = (100.0, 1) if number in PERCENT else (1.0, 3)
        cells = []
        for numbers in summary.values():
            mean, low, high = (f"{scale * value:.{digits}f}" for value in numbers[number])
            cells.append(escape(f"{mean} [{low}, {high}]"))
        result.add_row(title, *cells)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings for both")
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    parser.add_argument("--steps", type=int, help="of training; default: the demo's")
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/supervision.json"))
    options = parser.parse_args()
    console = Console()

    def config(system: str, seed: int, changes: Sequence[str] = ()) -> Config:
        steps = () if options.steps is None else (f"training.steps={options.steps}",)
        settings = (STEPS, *SYSTEMS[system], *changes, *steps, *options.overrides, f"seed={seed}")
        return load_config("zoombench", settings)

    runs: dict[str, list[dict[str, float]]] = {name: [] for name in SUPERVISIONS}
    try:
        for seed in options.seeds:
            for name, changes in SUPERVISIONS.items():
                console.print(f"seed {seed}, {name}", highlight=False)
                run = options.out.with_suffix("") / f"{name}-{seed}"
                progress = Console(stderr=True)
                runs[name].append(run_one(config(ADAPTIVE, seed, changes), config(BASELINE, seed), run, progress))
    except InputError as error:
        parser.error(str(error))
    summary = {name: summarise(found) for name, found in runs.items()}
    console.print(table(summary))
    with replacing(options.out) as file:
        json.dump({"seeds": options.seeds, "systems": summary, "runs": runs}, file, indent=1)


if __name__ == "__main__":
    main()
