"""The benchmarks of cost run, made small, and write what they print."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from page_runner import SMALL_BENCHMARKS
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def start(name: str, out: Path, options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *options.split(), "--out", str(out)]
    environment = os.environ | {"PYTHONPATH": str(BENCHMARKS.parent / "src")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=out.parent)


def run(name: str, out: Path, options: str) -> tuple[dict, str, str]:
    done = start(name, out, options)
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text()), done.stdout, done.stderr


def test_every_benchmark_says_how_to_run_it():
    scripts = {path.stem: path.read_text() for path in BENCHMARKS.glob("*.py")}
    assert set(scripts) >= set(SMALL_BENCHMARKS)
    assert all(f"python benchmarks/{name}.py" in text for name, text in scripts.items())


def test_scaling(tmp_path):
    result, printed, _ = run("scaling", tmp_path / "scaling.json", SMALL_BENCHMARKS["scaling"])
    assert set(result["lengths"]) == {"40", "80"} and "time grows as T^" in printed
    for row in result["lengths"].values():
        assert row["uniform-6"]["ratio"] == 1.0 and row["tzn"]["flops"] > 0 and row["tzn"]["peak_bytes"] > 0
    assert 0.5 < result["exponents"]["uniform-6"]["flops"] < 1.5


def test_full_size(tmp_path):
    result, printed, _ = run("full_size", tmp_path / "full_size.json", SMALL_BENCHMARKS["full_size"])
    names = ["uniform-6, width 16", "temporalmaxer, width 16", "tzn, width 16", "tzn, width 8"]
    assert list(result["systems"]) == [*names, *(f"{name}, bfloat16" for name in names)]
    assert set(result["product_rates"]) == {"float32", "bfloat16"}
    baseline, _, wide, narrow = (result["systems"][name] for name in names)
    assert baseline["flops_ratio"] == 1.0 and baseline["time_ratio"] == [1.0, 1.0, 1.0]
    assert narrow["flops"] < wide["flops"] == sum(wide["parts"].values())
    assert all(name in printed for name in result["systems"])


def test_evaluation_without_the_real_detections(tmp_path):
    result, printed, warned = run("evaluation", tmp_path / "evaluation.json", SMALL_BENCHMARKS["evaluation"])
    assert list(result["results"]) == ["soft-NMS, 50 segments, 3 classes"] and "soft-NMS" in printed
    assert "nowhere: no such folder" in warned and "--scnn" in warned


@pytest.mark.slow
def test_training_cost(tmp_path):
    result, printed, _ = run("training_cost", tmp_path / "training_cost.json", SMALL_BENCHMARKS["training_cost"])
    assert all(name in printed for name in result["systems"])
    uniform, tzn, checkpointed = result["systems"].values()
    assert uniform["flops_ratio"] == uniform["peak_ratio"] == 1.0 and uniform["time_ratio"] == [1.0, 1.0, 1.0]
    # The backward pass is counted: only there does checkpointing compute again, and only there does it save memory.
    assert checkpointed["flops"] > tzn["flops"] > 0
    assert checkpointed["peak_bytes"] < tzn["peak_bytes"]
    assert all(
        row["seconds"] > 0 and row["time_ratio"][1] <= row["time_ratio"][2] for row in result["systems"].values()
    )


@pytest.mark.slow
def test_supervision(tmp_path):
    result, printed, _ = run("supervision", tmp_path / "supervision.json", SMALL_BENCHMARKS["supervision"])
    assert list(result["systems"]) == ["value", "penalty"] and result["seeds"] == [1, 2]
    for name, numbers in result["systems"].items():
        assert name in printed and (tmp_path / "supervision" / f"{name}-2" / "config.yaml").is_file()
        for number, (mean, low, high) in numbers.items():
            values = [found[number] for found in result["runs"][name]]
            assert mean == pytest.approx(sum(values) / 2) and low <= mean <= high and min(values) >= 0
        assert 0 < numbers["tau_near"][0] < 1 and 0 < numbers["tau_far"][0] < 1 and numbers["flops"][0] > 0
    assert result["runs"]["value"][0] != result["runs"]["penalty"][0]


def test_supervision_averages_tau_at_boundaries_and_far_from_them(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    grid = TimeGrid(stride=4, window=8, fps=30)
    starts, ends = grid.to_seconds(np.array([10.0])), grid.to_seconds(np.array([12.5]))
    sample = Sample("one", np.zeros((40, 1), np.float32), grid, 10.0, Segments(starts, ends, np.array(["jump"])))
    position = torch.arange(40.0)
    depth = SimpleNamespace(tau=position, active=position < 10)
    localizer = SimpleNamespace(outputs=lambda features: SimpleNamespace(depth=depth))
    numbers = importlib.import_module("supervision").depth_numbers(localizer, Split((sample,), ("jump",)))
    assert numbers["tau"] == 19.5 and numbers["active"] == 0.25
    assert numbers["tau_near"] == np.mean([9, 10, 11, 12, 13])
    assert numbers["tau_far"] == np.mean([0, 1, *range(21, 40)])


@pytest.mark.parametrize("name", ["training_cost", "supervision"])
def test_a_setting_that_does_not_exist_is_named(name, tmp_path):
    done = start(name, tmp_path / "out.json", "model.widht=8")
    assert done.returncode == 2 and "did you mean 'model.width'?" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_evaluation_of_the_real_detections(tmp_path, shared_data):
    options = f"--repeats 1 --scnn {shared_data / 'thumos14' / 'scnn'}"
    result, _, warned = run("evaluation", tmp_path / "evaluation.json", options)
    assert "mAP anet, 24244 detections" in result["results"] and not warned
