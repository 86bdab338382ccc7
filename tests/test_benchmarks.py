"""The benchmarks of cost run, made small, and write what they print."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SMALL = {
    "scaling": "--lengths 40 80 --width 16 --input-width 8 --repeats 1",
    "full_size": "--length 50 --input-width 8 --widths 16 8 --baseline-width 16 --heads 2 --product 32 --repeats 2",
    "evaluation": "--segments 50 --classes 3 --repeats 1 --scnn nowhere",
}


def run(name: str, out: Path, options: str) -> tuple[dict, str, str]:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *options.split(), "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=out.parent)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), done.stdout, done.stderr


def test_every_benchmark_says_how_to_run_it():
    scripts = {path.stem: path.read_text() for path in BENCHMARKS.glob("*.py")}
    assert set(scripts) >= set(SMALL)
    assert all(f"python benchmarks/{name}.py" in text for name, text in scripts.items())


def test_scaling(tmp_path):
    result, printed, _ = run("scaling", tmp_path / "scaling.json", SMALL["scaling"])
    assert set(result["lengths"]) == {"40", "80"} and "time grows as T^" in printed
    for row in result["lengths"].values():
        assert row["uniform-6"]["ratio"] == 1.0 and row["tzn"]["flops"] > 0 and row["tzn"]["peak_bytes"] > 0
    assert 0.5 < result["exponents"]["uniform-6"]["flops"] < 1.5


def test_full_size(tmp_path):
    result, printed, _ = run("full_size", tmp_path / "full_size.json", SMALL["full_size"])
    assert list(result["systems"]) == ["uniform-6, width 16", "tzn, width 16", "tzn, width 8"]
    baseline, wide, narrow = result["systems"].values()
    assert baseline["flops_ratio"] == 1.0 and baseline["time_ratio"] == [1.0, 1.0, 1.0]
    assert narrow["flops"] < wide["flops"] == sum(wide["parts"].values())
    assert all(name in printed for name in result["systems"])


def test_evaluation_without_the_real_detections(tmp_path):
    result, printed, warned = run("evaluation", tmp_path / "evaluation.json", SMALL["evaluation"])
    assert list(result["results"]) == ["soft-NMS, 50 segments, 3 classes"] and "soft-NMS" in printed
    assert "nowhere: no such folder" in warned and "--scnn" in warned


@pytest.mark.slow
def test_evaluation_of_the_real_detections(tmp_path, shared_data):
    options = f"--repeats 1 --scnn {shared_data / 'thumos14' / 'scnn'}"
    result, _, warned = run("evaluation", tmp_path / "evaluation.json", options)
    assert "mAP anet, 24244 detections" in result["results"] and not warned
