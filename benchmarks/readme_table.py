"""Put the results of benchmarks/zoombench.py into the README, between its two markers.

    python benchmarks/readme_table.py runs/benchmarks/zoombench.json --write

Without --write it only prints the block.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing

README = Path(__file__).resolve().parents[1] / "README.md"
COLUMNS = {"0.5": "mAP@0.5", "0.7": "mAP@0.7", "0.9": "mAP@0.9", "average": "average .3:.7"}
COLUMNS |= {"flops": "FLOPs", "latency": "latency"}


def block(results: dict[str, Any]) -> str:
    """The Markdown between the markers."""
    lines = [
        f"ZoomBench at the size of the demo, mean over {len(results['seeds'])} seeds, 95 % interval; executed FLOPs",
        "and latency of localization relative to uniform-6, on the same inputs in one process",
        "(`python benchmarks/zoombench.py`):",
        "",
        "| system | " + " | ".join(COLUMNS.values()) + " |",
        "|---|" + "---:|" * len(COLUMNS),
    ]
    for name, numbers in results["systems"].items():
        cells = []
        for number in COLUMNS:
            mean, low, high = numbers[number]
            digits = 2 if number in ("flops", "latency") else 1
            spread = f" ± {(high - low) / 2:.{digits}f}" if high > low else ""
            cells.append(f"{mean:.{digits}f}{spread}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("")
    for name, (mean, low, high) in results["differences"].items():
        lines.append(f"- {name}: {mean:+.1f} [{low:+.1f}, {high:+.1f}]")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", default=Path("runs/benchmarks/zoombench.json"))
    parser.add_argument("--write", action="store_true", help="change README.md instead of printing")
    options = parser.parse_args()
    text = block(json.loads(options.results.read_text(encoding="utf-8")))
    if not options.write:
        print(text)
        return
    marked = re.compile(r"(<!-- zoombench:[^\n]*-->\n).*?(<!-- /zoombench -->)", re.S)
    page = README.read_text(encoding="utf-8")
    with replacing(README) as file:
        file.write(marked.sub(lambda match: f"{match[1]}{text}\n{match[2]}", page))


if __name__ == "__main__":
    main()
