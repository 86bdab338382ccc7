"""How long scoring takes: mAP of S-CNN's THUMOS14 detections under both protocols, and soft-NMS of many segments.

    python benchmarks/evaluation.py [--scnn FOLDER]

Writes runs/benchmarks/evaluation.json. Ratios are to a sort of a million numbers, which any machine can repeat.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from temporalzoom.atomic import replacing
from temporalzoom.inference.nms import suppress
from temporalzoom.metrics import evaluate_detections
from temporalzoom.metrics.latency import measure_latency
from temporalzoom.segments import Segments

REPOSITORY = Path(__file__).resolve().parents[1]
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)


def scoring_runs(folder: Path, name: str) -> dict[str, Callable[[], object]]:
    """One run per protocol, on files read beforehand."""
    database = json.loads((folder / "thumos14_test_gt.json").read_text())["database"]
    truth = {video: Segments.from_records(entry["annotations"]) for video, entry in database.items()}
    ambiguous = {
        video: Segments.from_records({"label": "Ambiguous", "segment": span} for span in entry["ambiguous"])
        for video, entry in database.items()
    }
    results = json.loads((folder / f"{name}.json").read_text())["results"]
    found = {video: Segments.from_records(records) for video, records in results.items()}
    count = sum(map(len, found.values()))
    return {
        f"mAP {protocol}, {count} detections": lambda protocol=protocol: evaluate_detections(
            truth, found, THRESHOLDS, protocol, ambiguous
        )
        for protocol in ("anet", "th14")
    }


def suppression_run(segments: int, classes: int) -> Callable[[], object]:
    random = np.random.default_rng(0)
    starts = random.uniform(0, 600, segments)
    ends = starts + random.lognormal(1.0, 1.0, segments)
    scores, labels = random.uniform(size=segments), random.integers(classes, size=segments)
    return lambda: suppress(starts, ends, scores, labels, max_segments=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scnn", type=Path, default=REPOSITORY.parent / "shared" / "data" / "thumos14" / "scnn")
    parser.add_argument("--detections", default="scnn_iou0.5", help="name of the prediction file in that folder")
    parser.add_argument("--segments", type=int, default=2000)
    parser.add_argument("--classes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarks/evaluation.json"))
    options = parser.parse_args()

    runs: dict[str, Callable[[], object]] = {}
    if options.scnn.is_dir():
        runs |= scoring_runs(options.scnn, options.detections)
    else:
        print(f"{options.scnn}: no such folder, so that scoring is left out; name it with --scnn", file=sys.stderr)
    name = f"soft-NMS, {options.segments} segments, {options.classes} classes"
    runs[name] = suppression_run(options.segments, options.classes)
    numbers = np.random.default_rng(0).uniform(size=1_000_000)
    latency = measure_latency(runs | {"sort": lambda: np.sort(numbers)}, options.repeats, warmup=1)
    sort = latency.pop("sort").median
    results = {name: {"seconds": r.median, "over_sort": r.median / sort} for name, r in latency.items()}
    for name, row in results.items():
        print(f"{name:45} {1e3 * row['seconds']:9.1f} ms  {row['over_sort']:8.2f} x a sort of a million numbers")
    with replacing(options.out) as file:
        json.dump({"results": results, "sort_seconds": sort}, file, indent=1)


if __name__ == "__main__":
    main()
