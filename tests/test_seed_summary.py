"""How results over several seeds become a table."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

REPOSITORY = Path(__file__).resolve().parents[1]


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "benchmarks" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scores(level: float, flops: float) -> dict:
    return {
        "mAP": {t: level for t in ("0.3", "0.5", "0.7", "0.9")},
        "average_mAP": level,
        "boundary_error_frames": 5.0,
        "flops": flops,
        "latency_ratio": [flops, flops, flops],
    }


@pytest.fixture
def summary() -> dict:
    runs = [
        {"uniform-6": scores(a, 1.0), "uniform-6+bdr": scores(a + 0.02, 1.0), "tzn": scores(a + 0.01, 0.5)}
        for a in (0.6, 0.7, 0.8)
    ]
    return {"seeds": [0, 1, 2], **benchmark("zoombench").summarise(runs)}


def test_interval_is_students():
    interval = benchmark("zoombench").interval
    mean, low, high = interval([1.0, 2.0, 3.0])
    assert mean == 2.0 and high - mean == pytest.approx(4.302653 / 3**0.5, rel=1e-5) and low == pytest.approx(4 - high)
    assert interval([7.0]) == (7.0, 7.0, 7.0)


def test_differences_are_taken_seed_by_seed(summary):
    mean, low, high = summary["differences"]["tzn - uniform-6, mAP@0.7"]
    assert (mean, low, high) == pytest.approx((1.0, 1.0, 1.0))  # though the seeds themselves differ by 20 points
    assert summary["differences"]["tzn - uniform-6+bdr, average mAP"][0] == pytest.approx(-1.0)
    assert summary["systems"]["tzn"]["flops"][0] == 0.5


def test_the_table_shows_every_system(summary):
    console = Console(width=200, record=True, quiet=False, file=open("/dev/null", "w"))
    console.print(benchmark("zoombench").table(summary))
    text = console.export_text()
    assert all(name in text for name in ("uniform-6", "uniform-6+bdr", "tzn"))
