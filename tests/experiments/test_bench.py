"""`tzoom bench` from its words to its tables, with trainings of a few steps."""

import json
import shlex
from pathlib import Path

import pytest
import torch
import yaml

from members_here import run_members_here
from page_data import write_sbhar
from temporalzoom.experiments import bench as running
from temporalzoom.experiments.bench import run_bench
from temporalzoom.experiments.registry import command_of, read_results
from temporalzoom.experiments.rendering import markdown
from temporalzoom.inference.localizer import Localizer
from temporalzoom.training.metrics_log import read_metrics

TINY = (
    "data.sequences=3 data.test_sequences=2 data.length=96 model.width=16 "
    "training.steps=3 training.batch_size=2 training.length=64 training.log_every=1"
).split()
# A row per sample needs no sequences.
SIGNALS = "model.width=16 training.steps=3 training.batch_size=2 training.length=40".split()


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """One folder for all tables, which may share trainings, and need not: every test runs on its own too."""
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(autouse=True)
def quick(request, monkeypatch):
    if request.function is not test_ours_twice:  # that one has processes of its own, as users have them
        run_members_here(monkeypatch)
    monkeypatch.setattr(running, "RESAMPLES", 50)


def settings(values: list[str]) -> list[str]:
    return [word for value in values for word in ("--set", value)]


@pytest.mark.slow
def test_ours_twice(tzoom, out):
    code, printed, notes = tzoom("bench", "zoombench", "--seeds", "0,1", "--out", out, *TINY)  # bare settings
    assert code == 0, notes
    results = json.loads((out / "results.json").read_text())
    assert list(results["systems"]) == ["uniform-6", "uniform-6+bdr", "tzn"] and results["test_recordings"] == 2
    assert results["systems"]["uniform-6"]["flops_ratio"][0] == 1.0 and results["systems"]["tzn"]["latency_ms"] > 0
    assert list(results["configurations"]) == list(results["systems"]) and results["seeds"] == [0, 1]
    assert results["configurations"]["tzn"]["training"]["steps"] == 3
    assert results["configurations"]["uniform-6"]["bdr"] == {"enabled": False}
    source = results["provenance"]
    assert set(source) == {"commit", "dirty", "version", "date", "trained_by"} and len(source["trained_by"]) == 1
    assert "zoombench: 2 test recordings" in printed and "tzn - uniform-6" in " ".join(printed.split())
    assert f"wrote {out / 'results.json'}" in printed
    assert command_of(results) == " ".join(["tzoom bench zoombench --seeds 0,1", *settings(TINY)])
    stored = yaml.safe_load((out / "tzn/seed-0/config.yaml").read_text())
    assert stored["data"]["seed"] == 1 and stored["training"]["steps"] == 3
    # Again: nothing is trained, and what trained is not what measures.
    finished = (out / "tzn/seed-0/result.json").stat().st_mtime_ns
    (out / "tzn/seed-0/provenance.json").write_text(json.dumps({"commit": "0" * 40, "dirty": False}))
    code, _, notes = tzoom("bench", "zoombench", "--seeds", "0,1", "--out", out, *settings(TINY))
    assert code == 0 and (out / "tzn/seed-0/result.json").stat().st_mtime_ns == finished, notes
    again = json.loads((out / "results.json").read_text())
    assert "0" * 40 in again["provenance"]["trained_by"]
    assert again["systems"]["tzn"]["mAP"] == results["systems"]["tzn"]["mAP"]


@pytest.mark.slow
def test_retrofit(tzoom, out):
    chosen = "uniform-6,bmn,bmn+bdr,temporalmaxer+bdr,temporalmaxer+bdr+zoom"
    words = ("--table", "retrofit", "--systems", chosen, "--seeds", "0", "--out", out, *settings(TINY))
    code, printed, notes = tzoom("bench", "zoombench", *words)
    assert code == 0, notes
    results = json.loads((out / "results-retrofit.json").read_text())
    assert list(results["differences"]) == ["bmn+bdr - bmn", "temporalmaxer+bdr+zoom - temporalmaxer+bdr"]
    assert "map" not in results["systems"]["uniform-6"]
    assert f"BDR adds {results['added_lines']} lines to a plain detector: examples/retrofit." in printed
    assert "2 crops of 64 positions per step" in " ".join(printed.split())


@pytest.mark.slow
def test_systems(tzoom, out):
    words = ("--table", "systems", "--systems", "uniform-6,temporalmaxer,bmn,tzn", "--seeds", "0", "--out", out)
    code, _, notes = tzoom("bench", "zoombench", *words, *settings(TINY))
    assert code == 0, notes
    results = json.loads((out / "results-systems.json").read_text())
    assert list(results["differences"]) == ["tzn - uniform-6", "tzn - temporalmaxer", "tzn - bmn"]
    page = markdown(read_results(results))
    assert "\nbmn: the map grows" in page and "BDR adds" not in page


@pytest.mark.slow
def test_components_and_what_their_switches_do(tzoom, out):
    code, printed, notes = tzoom(
        "bench", "zoombench", "--table", "components", "--seeds", "0", "--out", out, *settings(TINY)
    )
    assert code == 0, notes
    assert "tzn has all three" in printed
    results = json.loads((out / "results-components.json").read_text())
    assert len(results["systems"]) == 8 and len(results["differences"]) == 10
    for name in results["systems"]:
        folder = out / name / "seed-0"
        localizer = Localizer.load(folder)
        features = torch.randn(1, 60, localizer.description.input_width)
        with torch.no_grad():
            outputs = localizer.model(features, torch.ones(1, 60, dtype=torch.bool))
        parts = {"bdr", "uncertainty", "depth"} if name == "tzn" else set(name.split("+"))
        assert (outputs.distances is not None) == ("bdr" in parts)
        if name == "uniform-6":
            assert outputs.depth is None
            continue
        assert bool((outputs.depth.log_variance != 0).any()) == ("uncertainty" in parts)
        assert bool((outputs.depth.tau != 1).any()) == ("depth" in parts)
        assert "depth" in parts or bool(outputs.depth.active.all())
        assert bool(outputs.depth.kept.all())  # nothing is pruned
        # Of the distances, or without BDR of the boxes.
        assert ("uncertainty" in read_metrics(folder / "metrics.jsonl")[-1]) == ("uncertainty" in parts)


@pytest.mark.slow
def test_strides_are_timed_on_positions_of_their_own(tzoom, tmp_path):
    root, chosen = write_sbhar(tmp_path / "sbhar"), "tzn,tzn-stride-12"
    words = ("--table", "strides", "--systems", chosen, "--root", root, "--seeds", "0", "--out", tmp_path / "out")
    code, printed, notes = tzoom("bench", "sbhar", *words, *settings(SIGNALS))
    assert code == 0, notes
    found = json.loads((tmp_path / "out" / "results-strides.json").read_text())
    coarse, fine = found["systems"].values()
    assert fine["latency_positions"] == pytest.approx(25 / 12 * coarse["latency_positions"], abs=3)
    assert coarse["flops_ratio"] == [1.0, 1.0, 1.0] and fine["flops_ratio"][0] > 1.2
    assert list(found["differences"]) == ["tzn-stride-12 - tzn"] and "tzn = 1" in printed
    assert str(tmp_path) not in json.dumps(found)


@pytest.mark.slow
def test_folds_score_every_recording_by_a_network_that_has_not_seen_its_person(tmp_path):
    root = write_sbhar(tmp_path / "sbhar")
    options = {"systems": ["uniform-6", "tzn"], "seeds": (0,), "folds": 2, "overrides": SIGNALS, "resamples": 20}
    results = run_bench("sbhar-windows", tmp_path / "out", root=root, **options)
    assert json.loads((tmp_path / "out" / "folds-2-results.json").read_text()) == results
    assert results["test_recordings"] == 6 and results["test_instances"] == 12
    runs = [json.loads((tmp_path / f"out/tzn/seed-0/fold-{k}/result.json").read_text()) for k in (0, 1)]
    assert [run["test_recordings"] for run in runs] == [3, 3]  # of users 1 to 6, every second
    assert results["systems"]["tzn"]["gflops"] == pytest.approx(sum(run["flops"] for run in runs) / 1e9)
    page = markdown(read_results(results))
    assert "6 recordings, 12 instances, each scored by a network that has not seen its subject (2 folds)" in page
    assert "--seeds 0 --folds 2 --set model.width=16" in command_of(results)


def test_the_list_names_data_sets_and_tables(tzoom):
    code, out, _ = tzoom("bench", "--list")
    assert code == 0
    words = " ".join(out.split())
    for name in ("zoombench", "sbhar-windows", "rats", "ours", "systems", "retrofit", "components"):
        assert f"{name} " in words
    assert "strides sbhar with a position" in words and "(only of sbhar)" in words


@pytest.mark.parametrize(
    ("words", "now"),
    {
        "retrofit --data tug --root d": "tzoom bench tug --table retrofit --root d",
        "systems --data sbhar-stem": "tzoom bench sbhar --table systems",
        "retrofit --data sbhar": "tzoom bench sbhar-windows --table retrofit",
        "systems": "tzoom bench DATASET --table systems",
        "strides --data d": "tzoom bench sbhar --table strides --root d",
        "sbhar --stem --data d": "tzoom bench sbhar --root d",
        "sbhar --data d": "tzoom bench sbhar-windows --root d",
        "sbhar-stem": "tzoom bench sbhar",
        "tug --data 'my data'": "tzoom bench tug --root 'my data'",
    }.items(),
)
def test_earlier_forms_are_answered_with_the_new(tzoom, words, now):
    code, out, err = tzoom("bench", *shlex.split(words))
    assert code == 2 and not out and err.strip().endswith(f"now it is: {now}") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    {
        "": "which data set?",
        "training.steps=2": "which data set?",
        "nowhere": "no data set 'nowhere'",
        "tug --table strides": "strides: is about sbhar",
        "zoombench --table no": "no table 'no'",
        "zoombench --seeds 0,0": "expected different numbers",
        "zoombench --set training.stepz=2": "training.stepz",
        "zoombench training.stepz=2": "training.stepz",
    }.items(),
)
def test_bad_words_end_in_one_line(tzoom, words, message):
    code, out, err = tzoom("bench", *words.split())
    assert code == 2 and not out and message in err and err.count("\n") == 1
