"""`tzoom bench --quick`: a row of every table in seconds, on both variants of ZoomBench, and stored as what it is."""

import json

import pytest

from members_here import run_members_here
from page_data import write_sbhar
from temporalzoom.errors import InputError
from temporalzoom.experiments.bench import run_bench
from temporalzoom.experiments.data_sets import DATA_SETS, default_seeds, quick_settings, training_config
from temporalzoom.experiments.registry import command_of, find_table, read_results, table_names
from temporalzoom.experiments.rendering import markdown


@pytest.fixture(autouse=True)
def here(monkeypatch):
    run_members_here(monkeypatch)


@pytest.mark.parametrize("table", table_names())
def test_a_row_of_every_table(tzoom, tmp_path, table):
    data_set, where = "zoombench-context", ()
    try:
        find_table(table).trainings(data_set)
    except InputError:  # a table about another data set
        data_set, where = "sbhar", ("--root", write_sbhar(tmp_path / "sbhar"))
    row = next(iter(find_table(table).trainings(data_set)))
    words = ("--table", table, "--systems", row, "--quick", "--out", tmp_path / "out", *where)
    code, printed, notes = tzoom("bench", data_set, *words)
    assert code == 0, notes
    (file,) = (tmp_path / "out").glob("quick-*.json")
    results = json.loads(file.read_text())
    assert results["quick"] is True and results["seeds"] == [0] and list(results["systems"]) == [row]
    assert "a quick run that shows that the table works" in " ".join(printed.split())
    assert "--quick" in command_of(results) and "--seeds" not in command_of(results)


def test_layers_on_both_variants_say_whether_depth_pays(tmp_path):
    for data_set in ("zoombench", "zoombench-context"):
        chosen = ["uniform-0+bdr", "uniform-1+bdr", "uniform-6+bdr"]
        results = run_bench(data_set, tmp_path / data_set, table="layers", systems=chosen, quick=True)
        assert list(results["differences"]) == ["uniform-1+bdr - uniform-0+bdr", "uniform-6+bdr - uniform-0+bdr"]
        assert results["systems"]["uniform-6+bdr"]["flops_ratio"] == [1.0, 1.0, 1.0]
        ratios = [results["systems"][name]["flops_ratio"][0] for name in chosen]
        assert ratios == sorted(ratios) and results["test_recordings"] == 2
        page = markdown(read_results(results))
        assert ("Flat: " in page) or ("Depth " in page)


def test_layers_on_real_salads(shared_data, tzoom, tmp_path):
    root, out = shared_data / "salads50", tmp_path / "out"
    words = ("--table", "layers", "--root", root, "--systems", "uniform-0+bdr,uniform-1+bdr", "--quick", "--out", out)
    code, _, notes = tzoom("bench", "salads", *words)
    assert code == 0, notes
    results = json.loads(next(out.glob("quick-*.json")).read_text())
    assert results["test_recordings"] == 10 and list(results["differences"]) == ["uniform-1+bdr - uniform-0+bdr"]
    assert results["data_set"] == "salads" and results["test_instances"] == 251


def test_given_seeds_and_settings_come_before_the_quick_ones(tmp_path):
    options = {"table": "layers", "systems": ["uniform-0+bdr"], "quick": True}
    results = run_bench("zoombench", tmp_path, seeds=[2], overrides=["training.steps=2"], **options)
    assert results["seeds"] == [2] and results["configurations"]["uniform-0+bdr"]["training"]["steps"] == 2
    assert command_of(results).endswith("--seeds 2 --quick --set training.steps=2")


def test_published_tables_of_generated_data_are_large():
    for name in ("zoombench", "zoombench-context"):
        config = training_config(name, None, 0)
        assert (config.data.sequences, config.data.test_sequences) == (480, 400) and not config.data.validation
        assert default_seeds(name) == (0, 1, 2, 3, 4) and default_seeds(name, quick=True) == (0,)
        small = training_config(name, None, 0, quick_settings(name))
        assert small.data.sequences < 10 and small.training.steps < 10
    assert all(default_seeds(name) == (0, 1, 2) for name in DATA_SETS if not name.startswith("zoombench"))
