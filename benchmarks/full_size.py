"""One pass at the paper's size: `tzn`, `uniform-6` and the field's detectors, beside a plain product of the same FLOPs.

    python benchmarks/full_size.py                     # 2304 positions of 2048 channels, some minutes
    python benchmarks/full_size.py --length 128 --input-width 32 --widths 32 --baseline-width 32 --repeats 2

Random weights, random features. `uniform-6` and `tzn` have the shape of their recipe on SBHAR: six levels, and `tzn`
attention where it zooms only. The others have their published one. All of them run in float32, and again with products
in bfloat16. Writes runs/benchmarks/full_size.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from temporalzoom.atomic import replacing
from temporalzoom.metrics.cost import count_parameters, count_run
from temporalzoom.metrics.latency import latency_ratio, measure_latency, threads
from temporalzoom.models import build_model
from temporalzoom.models.runtime import denormals_as_zero, keep_freed_memory, products_in

CLASSES = 20
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=2304)
    parser.add_argument("--input-width", type=int, default=2048)
    parser.add_argument("--widths", type=int, nargs="+", default=[512, 256], help="of tzn")
    parser.add_argument("--baseline-width", type=int, default=512, help="of uniform-6 and the field's detectors")
    parser.add_argument("--peers", nargs="*", default=["actionformer", "temporalmaxer"], help="of the field")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--budget", type=float, default=0.1, help="share of positions that enter the deep path")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
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

    def run(model: nn.Module, precision: str) -> None:
        with products_in(precision):
            model(features, mask)

    runs: dict[tuple[str, str], Callable[[], object]] = {}
    for precision in options.precisions:
        runs |= {(name, precision): partial(run, model, precision) for name, model in models.items()}
        runs["product", precision] = partial(torch.mm, *(x.to(PRECISIONS[precision]) for x in (left, right)))
    with threads(options.threads), torch.inference_mode(), denormals_as_zero():
        flops = {name: count_run(model, partial(model, features, mask)) for name, model in models.items()}
        latency = measure_latency(runs, options.repeats, warmup=1)
    product_rates = {p: 2 * options.product**3 / latency["product", p].median for p in options.precisions}

    print(f"{'':34} {'ms':>9} {'GFLOPs':>8} {'FLOPs ratio':>11} {'time ratio to ' + baseline:>36} {'/ product':>9}")
    results = {}
    reference = latency[baseline, options.precisions[0]]
    for name, precision in runs:
        if name == "product":
            continue
        found = latency[name, precision]
        ratio = latency_ratio(found, reference)
        row = {
            "seconds": found.median,
            "flops": flops[name].total,
            "parts": flops[name].parts,
            "parameters": count_parameters(models[name]),
            "flops_ratio": flops[name].total / flops[baseline].total,
            "time_ratio": [ratio.median, ratio.low, ratio.high],
            "time_over_product": found.median * product_rates[precision] / flops[name].total,
        }
        label = name if precision == "float32" else f"{name}, {precision}"
        results[label] = row
        interval = f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"
        print(
            f"{label:34} {1e3 * row['seconds']:9.1f} {row['flops'] / 1e9:8.2f} {row['flops_ratio']:11.3f} "
            f"{interval:>36} {row['time_over_product']:9.2f}"
        )
    for precision, rate in product_rates.items():
        print(
            f"plain {options.product}^3 product, {precision}: {rate / 1e9:.1f} GFLOPs per second, "
            f"{options.threads} thread(s)"
        )
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    with replacing(options.out) as file:
        json.dump({"settings": settings, "systems": results, "product_rates": product_rates}, file, indent=1)


if __name__ == "__main__":
    main()
