"""One forward pass on one thread, in PyTorch and in onnxruntime: milliseconds, and what leaving PyTorch brings.

    python benchmarks/onnx_speed.py                    # uniform-6 and tzn, width 128, 700 positions
    python benchmarks/onnx_speed.py --length 2304 --repeats 20
    python benchmarks/onnx_speed.py --recipe sbhar --length 704 --input-width 300 --classes 12  # one of its recordings

Random weights, random features; `tzn` sends the share --budget of the positions deep, by default its
`model.share`. Needs the extra `onnx`. Writes runs/benchmarks/onnx_speed.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, InferenceConfig, ZoomSection, load_config
from temporalzoom.errors import InputError
from temporalzoom.runs.description import ModelDescription
from temporalzoom.runs.network import model_from_config
from temporalzoom.timegrid import TimeGrid
from temporalzoom.workflows.export import save_onnx

NAMES = ("uniform-6", "tzn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=700)
    parser.add_argument("--width", type=int, help="default: that of the recipe, or 128")
    parser.add_argument("--input-width", type=int, default=64)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--recipe", help="name of a recipe, or a configuration file; default: all defaults")
    parser.add_argument("--budget", type=float, help="share of positions that enter the deep path")
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/onnx_speed.json"))
    options = parser.parse_args()
    try:
        results = measure(options)
    except InputError as error:
        sys.exit(f"error: {error}")
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    with replacing(options.out) as file:
        json.dump({"settings": settings, "systems": results}, file, indent=1)


def configurations(options: argparse.Namespace) -> dict[str, Config]:
    width = () if options.width is None else (f"model.width={options.width}",)
    return {name: load_config(options.recipe, (f"model.name={name}", *width)) for name in NAMES}


def measure(options: argparse.Namespace) -> dict[str, dict[str, object]]:
    """Prints a line per system, and returns the numbers."""
    results: dict[str, dict[str, object]] = {}
    print(
        f"{'':16} {'active':>7} {'PyTorch (ms)':>13} {'onnxruntime (ms)':>17} {'ratio':>22} {'largest difference':>19}"
    )
    classes = tuple(f"class {number}" for number in range(options.classes))
    with tempfile.TemporaryDirectory() as folder:
        for name, config in configurations(options).items():
            torch.manual_seed(0)
            grid = TimeGrid(config.data.stride or 4, config.data.window or 8, 25)
            model = model_from_config(config, options.input_width, options.classes, grid)
            if isinstance(config.model, ZoomSection):  # nothing was learned yet that could decide by itself
                model.budget = config.model.share if options.budget is None else options.budget
            described = ModelDescription(name, classes, grid, InferenceConfig(), options.input_width)
            file = Path(folder) / f"{name}.onnx"
            _, found = save_onnx(model, described, file, (options.length,), options.repeats)
            active = 1.0 if found.active is None else found.active
            interval = f"{found.time.median:.3f} [{found.time.low:.3f}, {found.time.high:.3f}]"
            own, exported = (1000 * seconds for seconds in found.seconds)
            print(f"{name:16} {active:7.0%} {own:13.1f} {exported:17.1f} {interval:>22} {found.difference:19.1e}")
            results[name] = {
                "milliseconds": [own, exported],
                "ratio": [found.time.median, found.time.low, found.time.high],
                "difference": found.difference,
                "active": active,
                "bytes": file.stat().st_size,
            }
    return results


if __name__ == "__main__":
    main()
