"""`tzoom cost` as a user meets it, on networks small enough to measure in a second."""

import json
from pathlib import Path

import pytest
import yaml

SETTINGS = {
    "data": {"source": "zoombench", "sequences": 2, "test_sequences": 2, "length": 64},
    "model": {"name": "tzn", "width": 16, "heads": 2, "levels": 1, "head": "mlp", "shallow_layers": 2, "deep_layers": 2,
              "window": 4, "pruning": True, "paper": {"hysteresis": "hold"}},
    "training": {"steps": 2, "batch_size": 2, "length": 48},
}  # fmt: skip
PARTS = {"projection", "shallow", "levels", "uncertainty", "depth", "importance", "zoom", "deep", "heads"}


@pytest.fixture
def measure(tzoom):
    """Run `tzoom cost ARGS --json` with two rounds of timing."""

    def run(*arguments: object) -> dict:
        code, out, err = tzoom("cost", *arguments, "--json", "--repeats", 2)
        assert code == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def config(tmp_path) -> Path:
    path = tmp_path / "zoom.yaml"
    path.write_text(yaml.safe_dump(SETTINGS))
    return path


@pytest.fixture
def uniform(tmp_path) -> Path:
    path = tmp_path / "uniform.yaml"
    model = {"name": "uniform-3", "width": 32, "heads": 2, "levels": 1, "head": "mlp", "window": 4}
    path.write_text(yaml.safe_dump(SETTINGS | {"model": model}))
    return path


def test_json_is_consistent_with_itself(measure, config):
    result = measure(config)
    assert (result["recordings"], result["positions"], result["threads"]) == (2, 2 * 64, 1)
    system, baseline, ratio = result["system"], result["baseline"], result["ratio"]
    assert (system["name"], baseline["name"]) == ("tzn", "uniform-6")
    assert set(system["flops"]["parts"]) == PARTS
    assert set(baseline["flops"]["parts"]) == {"projection", "encoder", "levels", "heads"}
    for cost in (system, baseline):
        assert cost["flops"]["total"] == sum(cost["flops"]["parts"].values()) > 0
        low, high = cost["latency"]["quartiles"]
        assert 0 < low <= cost["latency"]["median"] <= high
    for key in ("peak_memory", "parameters"):
        assert ratio[key] == system[key] / baseline[key] > 0
    assert ratio["flops"] == system["flops"]["total"] / baseline["flops"]["total"]
    assert ratio["latency"]["low"] <= ratio["latency"]["median"] <= ratio["latency"]["high"]
    assert system["flops"]["parts"]["projection"] == baseline["flops"]["parts"]["projection"]
    assert baseline["depth"] is None

    depth = system["depth"]
    assert 0 < depth["active"] <= 0.15 < depth["kept"] <= 1  # untrained: `share` is the budget
    assert set(depth["stability"]) == set(depth["stability_flops"]) == {"none", "hold"}
    assert depth["stability_flops"]["hold"] == system["flops"]["total"]
    assert depth["stability"]["hold"]["flip_rate"] <= depth["stability"]["none"]["flip_rate"]
    assert len(depth["stability"]["hold"]["histogram"]) == 10
    assert set(depth["overhead"]) == {"flops", "time", "time_at_once"} and min(depth["overhead"].values()) > 0


def test_counts_come_out_the_same_twice(measure, config):
    first, second = (measure(config, "data.test_sequences=1") for _ in range(2))
    for result in (first, second):
        for cost in (result["system"], result["baseline"]):
            del cost["latency"]
        del result["ratio"]["latency"]
        for key in ("time", "time_at_once"):
            result["system"]["depth"]["overhead"].pop(key)
    assert first == second


def test_the_budget_is_what_runs(measure, config):
    def at(budget: float) -> dict:
        return measure(config, f"model.budget={budget}", "model.pruning=false")["system"]

    nothing, half, everything = at(0.0), at(0.5), at(1.0)
    assert (nothing["depth"]["active"], half["depth"]["active"], everything["depth"]["active"]) == (0.0, 0.5, 1.0)
    assert nothing["flops"]["parts"]["deep"] == 0
    assert 0 < half["flops"]["parts"]["deep"] < 0.7 * everything["flops"]["parts"]["deep"]
    assert "importance" not in half["flops"]["parts"] and half["depth"]["kept"] == 1.0


def test_formula_is_the_paper_s(measure, config):
    """Everything everywhere, once, and E(tau) times the deep path; here from the parts of a full execution."""
    system = measure(config, "model.budget=1.0", "model.pruning=false")["system"]
    parts, tau = system["flops"]["parts"], system["depth"]["stability"]["hold"]["mean"]
    deep = parts["deep"]
    everywhere = sum(parts.values()) - deep - parts["heads"] / 2
    assert system["depth"]["formula"] == pytest.approx(everywhere + tau * deep, rel=1e-6)


def test_a_baseline_of_one_s_own(measure, config, uniform):
    result = measure(uniform, "--baseline", config)
    assert result["system"]["name"] == "uniform-3" and result["system"]["depth"] is None
    assert result["baseline"]["depth"]["active"] > 0
    swapped = measure(config, "--baseline", uniform)
    assert swapped["ratio"]["flops"] == pytest.approx(1 / result["ratio"]["flops"])


def test_trained_runs(tzoom, measure, config, uniform, tmp_path):
    for name, path in (("zoom", config), ("uniform", uniform)):
        code, _, err = tzoom("train", path, "--out", tmp_path / name)
        assert code == 0, err
    result = measure("--model", tmp_path / "zoom", "--baseline-model", tmp_path / "uniform")
    assert (result["system"]["name"], result["baseline"]["name"]) == ("tzn", "uniform-3")
    assert result["system"]["weights"] == str(tmp_path / "zoom") and result["system"]["note"] is None
    less = measure("--model", tmp_path / "zoom", "model.budget=0")
    assert less["system"]["depth"]["active"] == 0.0 and less["baseline"]["name"] == "uniform-6"

    knobs = ("sequences=2", "test_sequences=1", "length=64", "dimension=6")
    assert tzoom("data", "make-zoombench", "--out", tmp_path / "narrow", *knobs)[0] == 0
    code, _, err = tzoom("cost", tmp_path / "narrow" / "config.yaml", "--baseline-model", tmp_path / "uniform")
    assert code == 2 and "32 channels" in err and "have 6" in err


def test_tables_show_both_and_say_what_is_a_formula(tzoom, config):
    code, out, err = tzoom("cost", config, "--repeats", 1)
    assert code == 0, err
    for words in ("tzn", "uniform-6", "executed", "paper's formula", "1 thread", "peak", "parameters", "flip rate"):
        assert words in out, words
    assert "random weights" in err and "model.share 0.1 " in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either a configuration file or --model"),
        (["nowhere.yaml"], "nowhere.yaml"),
        (["--model", "nowhere"], "nowhere"),
        (["CONFIG", "--model", "nowhere"], "either"),
        (["CONFIG", "--baseline", "a.yaml", "--baseline-model", "b"], "either --baseline or --baseline-model"),
        (["CONFIG", "model.name=nothing"], "nothing"),
    ],
)
def test_what_cannot_be_measured_is_one_line(tzoom, config, arguments, words):
    code, _, err = tzoom("cost", *(config if argument == "CONFIG" else argument for argument in arguments))
    assert code == 2 and words in err and "Traceback" not in err


def test_help_has_an_example(tzoom):
    code, out, _ = tzoom("cost", "--help")
    assert code == 0 and "Example" in out and "tzoom cost " in out


def test_an_oracle_has_no_cost_of_interest(tzoom, config):
    code, _, err = tzoom("cost", config, "model.paper.protection=oracle")
    assert (
        code == 2
        and "model.paper.protection" in err
        and "add model.paper.protection=predicted" in " ".join(err.split())
    )


@pytest.mark.parametrize("name", ["temporalmaxer", "tridet", "actionformer"])
def test_a_detector_with_adaptive_depth(tzoom, measure, tmp_path, name):
    """Trained, localized with a budget, counted; an export is refused in words."""
    path, run = tmp_path / "zoomed.yaml", tmp_path / "run"
    model = {"name": name, "width": 16, "heads": 2, "deep_layers": 2, "zoom": 4, "share": 0.25}
    path.write_text(yaml.safe_dump(SETTINGS | {"model": model}))
    untrained = measure(path)["system"]
    assert untrained["depth"]["active"] == 0.25 and "taken as the budget" in untrained["note"]
    assert set(untrained["flops"]["parts"]) == {"trunk", "uncertainty", "depth", "zoom", "deep", "heads"}
    code, _, err = tzoom("train", path, "--out", run)
    assert code == 0, err
    costs = [measure("--model", run, f"model.budget={budget}")["system"] for budget in (0.0, 0.5)]
    assert [cost["depth"]["active"] for cost in costs] == [0.0, 0.5] and costs[0]["flops"]["parts"]["deep"] == 0
    assert tzoom("eval", "--model", run, "--budget", 0.5)[0] == 0
    code, _, err = tzoom("export", "--model", run, "--out", tmp_path / "m.onnx")
    assert code == 2 and f"model.name: {name} cannot be exported; uniform-N and tzn can" in " ".join(err.split())
