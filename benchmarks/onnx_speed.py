"""What leaving PyTorch brings on a CPU: time of onnxruntime over that of PyTorch, for the same model on one thread.

    python benchmarks/onnx_speed.py                    # uniform-6 and tzn, width 128, 700 positions
    python benchmarks/onnx_speed.py --length 2304 --repeats 20

Random weights, random features; `tzn` sends the share --budget of the positions deep. Needs the extra `onnx`. Writes
runs/benchmarks/onnx_speed.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

from temporalzoom.atomic import replacing
from temporalzoom.config import InferenceConfig
from temporalzoom.errors import InputError
from temporalzoom.inference.onnx_export import save_onnx
from temporalzoom.inference.onnx_network import OnnxDescription
from temporalzoom.models import build_model
from temporalzoom.timegrid import TimeGrid

CLASSES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=700)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--input-width", type=int, default=64)
    parser.add_argument("--budget", type=float, default=0.15, help="share of positions that enter the deep path")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/onnx_speed.json"))
    options = parser.parse_args()

    results: dict[str, dict[str, object]] = {}
    print(f"{'':10} {'active':>7} {'onnxruntime / PyTorch':>24} {'largest difference':>20}")
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in (("uniform-6", {}), ("tzn", {"budget": options.budget})):
            torch.manual_seed(0)
            model = build_model(
                name, options.input_width, CLASSES, width=options.width, distance_channels=2, **settings
            )
            classes = tuple(f"class {number}" for number in range(CLASSES))
            described = OnnxDescription(name, classes, TimeGrid(4, 8, 25), InferenceConfig(), options.input_width)
            file = Path(folder) / f"{name}.onnx"
            try:
                _, found = save_onnx(model, described, file, (options.length,), options.repeats)
            except InputError as error:
                sys.exit(f"error: {error}")
            active = 1.0 if found.active is None else found.active
            interval = f"{found.time.median:.3f} [{found.time.low:.3f}, {found.time.high:.3f}]"
            print(f"{name:10} {active:7.0%} {interval:>24} {found.difference:20.1e}")
            results[name] = {
                "ratio": [found.time.median, found.time.low, found.time.high],
                "difference": found.difference,
                "active": active,
                "bytes": file.stat().st_size,
            }
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    with replacing(options.out) as file:
        json.dump({"settings": settings, "systems": results}, file, indent=1)


if __name__ == "__main__":
    main()
