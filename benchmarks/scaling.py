"""How time and FLOPs grow with the length of a recording: `tzn` and `uniform-6` in one pass, side by side.

    python benchmarks/scaling.py                       # 2k to 100k positions, some minutes
    python benchmarks/scaling.py --lengths 500 1000 --repeats 2

Random weights, random features, width 64. An exponent of 1 is linear; memory is that of tensors.
Writes runs/benchmarks/scaling.json.
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path

import numpy as np
import torch
from torch import nn

from temporalzoom.atomic import replacing
from temporalzoom.metrics.cost import count_run, peak_memory
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.models import build_model
from temporalzoom.models.runtime import denormals_as_zero, keep_freed_memory

CLASSES = 20


def exponent(lengths: list[int], values: list[float]) -> float:
    """`k` of the least-squares fit `value ~ length ** k`."""
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0]) if len(lengths) > 1 else float("nan")


def measure(length: int, models: dict[str, nn.Module], input_width: int, repeats: int) -> dict[str, dict[str, float]]:
    features, mask = torch.randn(1, length, input_width), torch.ones(1, length, dtype=torch.bool)
    runs = {name: lambda model=model: model(features, mask) for name, model in models.items()}
    latency = measure_latency(runs, repeats, warmup=1)
    return {
        name: {
            "seconds": latency[name].median,
            "ratio": latency_ratio(latency[name], latency["uniform-6"]).median,
            "flops": count_run(model, runs[name]).total,
            "peak_bytes": peak_memory(runs[name]),
        }
        for name, model in models.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[2_000, 5_000, 10_000, 20_000, 50_000, 100_000])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--input-width", type=int, default=64)
    parser.add_argument("--budget", type=float, default=0.15, help="share of positions that enter the deep path")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/scaling.json"))
    options = parser.parse_args()
    keep_freed_memory()

    torch.manual_seed(0)
    common = {"width": options.width, "distance_channels": 2}
    models = {
        "tzn": build_model("tzn", options.input_width, CLASSES, budget=options.budget, **common).eval(),
        "uniform-6": build_model("uniform-6", options.input_width, CLASSES, **common).eval(),
    }
    print(f"{'positions':>9} {'model':>10} {'ms':>10} {'/ uniform-6':>11} {'GFLOPs':>8} {'peak MB':>8}")
    table = {}
    with threads(options.threads), torch.inference_mode(), denormals_as_zero():
        for length in options.lengths:
            table[length] = measure(length, models, options.input_width, options.repeats)
            for name, row in table[length].items():
                print(
                    f"{length:9} {name:>10} {1e3 * row['seconds']:10.1f} {row['ratio']:11.3f} "
                    f"{row['flops'] / 1e9:8.2f} {row['peak_bytes'] / 1e6:8.1f}",
                    flush=True,
                )
    exponents = {
        name: {
            key: exponent(options.lengths, [row[name][key] for row in table.values()]) for key in ("seconds", "flops")
        }
        for name in models
    }
    for name, values in exponents.items():
        print(f"{name}: time grows as T^{values['seconds']:.2f}, FLOPs as T^{values['flops']:.2f}")
    process = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # Linux counts in kilobytes
    print(f"whole process, at most: {process / 1e6:.0f} MB")
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    results = {"settings": settings, "lengths": table, "exponents": exponents, "process_peak_bytes": process}
    with replacing(options.out) as file:
        json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
