"""`tzoom bench --table depth` from its words to its figure, with trainings of a few steps."""

import json

import pytest

from members_here import run_members_here
from temporalzoom.errors import InputError
from temporalzoom.experiments import bench as running
from temporalzoom.experiments import operating
from temporalzoom.experiments.bench import run_bench
from temporalzoom.experiments.registry import command_of, read_results
from temporalzoom.experiments.rendering import markdown
from temporalzoom.experiments.tables import depth
from temporalzoom.training.metrics_log import read_metrics

TINY = (
    "data.sequences=3 data.test_sequences=2 data.length=96 model.width=16 "
    "training.steps=4 training.batch_size=2 training.length=64 training.log_every=1"
).split()
CHOSEN = "tzn,tzn-none,tzn-oracle,reinforce,early-exit,mixture"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    run_members_here(monkeypatch)
    monkeypatch.setattr(running, "RESAMPLES", 20)
    monkeypatch.setattr(operating, "MATCHED_ON", 2)


@pytest.mark.slow
def test_the_table(tzoom, tmp_path):
    words = ("--table", "depth", "--systems", CHOSEN, "--seeds", "0", "--out", tmp_path)
    code, printed, notes = tzoom("bench", "zoombench", *words, *(w for value in TINY for w in ("--set", value)))
    assert code == 0, notes
    results = json.loads((tmp_path / "results-depth.json").read_text())
    systems = results["systems"]
    assert list(systems) == CHOSEN.split(",") and results["baseline"] == "tzn"
    assert list(results["differences"]) == [f"tzn - {name}" for name in CHOSEN.split(",")[1:]]
    assert systems["tzn"]["flops_ratio"] == [1.0, 1.0, 1.0] and systems["tzn-none"]["mean_depth"] == 0
    assert 0 < systems["tzn-none"]["flops_ratio"][0] < 1
    for name, system in systems.items():
        assert len(system["matched"]) == 1 and system["latency_ratio"][0] > 0 and system["at_once"]["latency_ms"] > 0
        assert system["steps_to_90"] is None or 1 <= system["steps_to_90"] <= 4, name
        assert (system["depth_gradient_variance"] is None) == (name in ("tzn-none", "tzn-oracle", "early-exit"))
        curve = json.loads((tmp_path / name / "seed-0" / "curve.json").read_text())
        assert sorted(curve, key=int) == ["1", "2", "3", "4"]
    for name in ("tzn", "mixture", "reinforce"):
        points = results["budgets"][name]
        assert len(points) >= 2 and [p["gflops"] for p in points] == sorted(p["gflops"] for p in points), name
    assert len(results["budgets"]["tzn-none"]) == 1
    logged = read_metrics(tmp_path / "tzn/seed-0/metrics.jsonl")
    assert "depth_gradient_variance" not in logged[0] and logged[-1]["depth_gradient_variance"] >= 0
    assert systems["tzn"]["depth_gradient_variance"] > 0
    narrow = results["configurations"]["early-exit"]["model"]["width"]
    assert narrow <= 16 and results["configurations"]["mixture"]["model"]["width"] == 16
    figure = (tmp_path / "results-depth.svg").read_text()
    assert "mAP@0.7" in figure and "mAP@0.9" in figure and "mixture" in figure
    depth.draw(results, tmp_path / "again.svg")  # from stored results
    assert (tmp_path / "again.svg").read_text() == figure
    page = markdown(read_results(results))
    assert "steps to 90 %" in page and "an ablation, not a result" in page and "16 at once" in page
    assert "tzoom bench zoombench --table depth --systems" in command_of(results)
    assert f"wrote {tmp_path / 'results-depth.json'}" in printed


def test_the_table_needs_what_all_others_are_matched_to(tmp_path):
    with pytest.raises(InputError, match="matches all others to tzn"):
        run_bench("zoombench", tmp_path, table="depth", seeds=(0,), systems=["tzn-none"], overrides=TINY, resamples=10)
