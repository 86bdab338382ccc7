"""One pass at the paper's size: `tzn`, `uniform-6` and the field's detectors, beside a plain product of the same FLOPs.

    python benchmarks/full_size.py                     # 2304 positions of 2048 channels, some minutes
    python benchmarks/full_size.py --length 128 --input-width 32 --widths 32 --baseline-width 32 --repeats 2

Random weights, random features. `uniform-6` and `tzn` have the shape of their recipe on SBHAR: six levels, and `tzn`
attention where it zooms only. The others have their published one. Writes runs/benchmarks/full_size.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from temporalzoom.atomic import replacing
from temporalzoom.metrics.cost import count_parameters, count_run
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.models import build_model
from temporalzoom.models.allocator import keep_freed_memory
from temporalzoom.models.denormals import denormals_as_zero

CLASSES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=2304)
    parser.add_argument("--input-width", type=int, default=2048)
    parser.add_argument("--widths", type=int, nargs="+", default=[512, 256], help="of tzn")
    parser.add_argument("--baseline-width", type=int, default=512, help="of uniform-6 and the field's detectors")
    parser.add_argument("--peers", nargs="*", default=["actionformer", "temporalmaxer"], help="of the field")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--budget", type=float, default=0.1, help="share of positions that enter the deep path")
    parser.add_argument("--product", type=int, default=1024, help="size of the square matrices of the plain product")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/full_size.json"))
    options = parser.parse_args()

    keep_freed_memory()
    torch.manual_seed(0)
    common = {"heads": options.heads, "distance_channels": 2, "levels": 6}
    baseline = f"uniform-6, width {options.baseline_width}"
    models = {
        baseline: build_model("uniform-6", options.input_width, CLASSES, width=options.baseline_width, **common).eval()
    }
    for peer in options.peers:
        model = build_model(peer, options.input_width, CLASSES, width=options.baseline_width)
        models[f"{peer}, width {options.baseline_width}"] = model.eval()
    zooms = {"shallow_layers": 0, "deep_layers": 4, "budget": options.budget}
    for width in options.widths:
        model = build_model("tzn", options.input_width, CLASSES, width=width, **zooms, **common)
        models[f"tzn, width {width}"] = model.eval()

    features = torch.randn(1, options.length, options.input_width)
    mask = torch.ones(1, options.length, dtype=torch.bool)
    left, right = torch.randn(2, options.product, options.product)
    runs = {name: lambda model=model: model(features, mask) for name, model in models.items()}
    with threads(options.threads), torch.inference_mode(), denormals_as_zero():
        flops = {name: count_run(model, runs[name]) for name, model in models.items()}
        latency = measure_latency(runs | {"product": lambda: left @ right}, options.repeats, warmup=1)
    product_rate = 2 * options.product**3 / latency["product"].median  # FLOPs per second

    print(f"{'':24} {'ms':>9} {'GFLOPs':>8} {'FLOPs ratio':>11} {'time ratio to ' + baseline:>36} {'/ product':>9}")
    results = {}
    for name, model in models.items():
        ratio = latency_ratio(latency[name], latency[baseline])
        results[name] = {
            "seconds": latency[name].median,
            "flops": flops[name].total,
            "parts": flops[name].parts,
            "parameters": count_parameters(model),
            "flops_ratio": flops[name].total / flops[baseline].total,
            "time_ratio": [ratio.median, ratio.low, ratio.high],
            "time_over_product": latency[name].median * product_rate / flops[name].total,
        }
        row = results[name]
        interval = f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
        print(
            f"{name:24} {1e3 * row['seconds']:9.1f} {row['flops'] / 1e9:8.2f} {row['flops_ratio']:11.3f} "
            f"{interval:>36} {row['time_over_product']:9.2f}"
        )
    print(f"plain {options.product}^3 product: {product_rate / 1e9:.1f} GFLOPs per second, {options.threads} thread(s)")
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    with replacing(options.out) as file:
        json.dump({"settings": settings, "systems": results, "product_rate": product_rate}, file, indent=1)


if __name__ == "__main__":
    main()
