"""The tables: found by name, every system of each has a configuration, and what it says is what it is."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from temporalzoom.config import ZoomSection, dump_tree, load_config, parse_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.experiments import tables
from temporalzoom.experiments.bench import run_bench
from temporalzoom.experiments.data_sets import DATA_SETS, fold_settings, training_config
from temporalzoom.experiments.registry import data_sets_of, find_table, table_names
from temporalzoom.experiments.systems import PYRAMIDS, SYSTEMS
from temporalzoom.experiments.tables import components, depth, ours, retrofit, strides, systems
from temporalzoom.models.inputs import Stem
from temporalzoom.runs.network import model_from_config
from temporalzoom.timegrid import TimeGrid

NAMES = """
    capacity combination components depth extraction gradients hysteresis layers lengths losses ours paper penalty
    pruning refinement retrofit stride strides systems
""".split()
ONLY_OF = {"strides": ["sbhar"], "stride": ["zoombench", "zoombench-context"]}


@pytest.mark.parametrize("name", table_names())
def test_every_system_of_every_table_has_a_configuration(name):
    table = find_table(name)
    assert table.SUMMARY and len(table.SUMMARY) < 100
    assert data_sets_of(table) == ONLY_OF.get(name, list(DATA_SETS))
    for data_set in data_sets_of(table):
        for settings in table.trainings(data_set).values():
            config = training_config(data_set, None, 0, settings)
            assert parse_config(dump_tree(config)) == config  # a training that is done is known again


def test_what_is_compared_is_trained():
    for table, baseline in (
        (ours, "uniform-6"),
        (systems, "uniform-6"),
        (retrofit, "uniform-6"),
        (components, "uniform-6"),
        (depth, "tzn"),
    ):
        trained = table.trainings("tug")
        assert baseline in trained and {name for pair in table.COMPARISONS for name in pair} <= set(trained)


def test_a_new_table_is_one_new_file(tmp_path, monkeypatch):
    assert table_names() == NAMES
    (tmp_path / "anew.py").write_text('"""One more."""\nSUMMARY = "of something"\n')
    monkeypatch.setattr(tables, "__path__", [*tables.__path__, str(tmp_path)])
    assert "anew" in table_names() and find_table("anew").SUMMARY == "of something"
    del sys.modules[f"{tables.__name__}.anew"]


def test_systems_of_one_name_are_the_same_in_all_tables():
    """Tables of a data set share a folder, and the trainings in it."""
    for data_set in DATA_SETS:
        found: dict[str, dict] = {}
        for name in table_names():
            if data_set in data_sets_of(find_table(name)):
                for system, settings in find_table(name).trainings(data_set).items():
                    tree = dump_tree(training_config(data_set, None, 0, settings))
                    assert found.setdefault(system, tree) == tree


def test_bdr_is_in_the_systems_that_are_named_so():
    for table in (ours, systems, retrofit):
        for name, settings in table.trainings("tug").items():
            has_bdr = "+bdr" in name or name.startswith("tzn") or name == "dense"
            assert training_config("tug", None, 0, settings).bdr.enabled == has_bdr


def test_zoom_is_bdr_and_depth_on_the_same_detector():
    for name in PYRAMIDS:
        with_bdr, with_zoom = (
            dump_tree(training_config("tug", None, 0, SYSTEMS[f"{name}+bdr{more}"])) for more in ("", "+zoom")
        )
        assert with_zoom["model"].pop("deep_layers") == ZoomSection().deep_layers
        assert with_bdr["model"].pop("deep_layers") == 0
        added = {key: with_zoom["model"].pop(key) for key in list(with_zoom["model"]) if key not in with_bdr["model"]}
        assert with_zoom == with_bdr and {"zoom", "share", "budget"} <= set(added)


def test_tzn_is_what_the_recipe_trains():
    for data_set, chosen in DATA_SETS.items():
        assert training_config(data_set, None, 0, ours.trainings(data_set)["tzn"]) == load_config(
            data_set, chosen.settings
        )


def test_components_are_three_switches():
    found = {name: training_config("zoombench", None, 0, s) for name, s in components.trainings("zoombench").items()}
    assert list(found) == [
        "uniform-6", "bdr", "uncertainty", "depth", "bdr+uncertainty", "bdr+depth", "uncertainty+depth", "tzn",
    ]  # fmt: skip
    for name, config in found.items():
        if name != "uniform-6":
            parts = set(name.split("+")) if name != "tzn" else {"bdr", "uncertainty", "depth"}
            switches = {"bdr": config.bdr.enabled, "uncertainty": config.model.uncertainty, "depth": config.model.depth}
            assert {part for part, on in switches.items() if on} == parts and not config.model.pruning
    assert len(components.COMPARISONS) == 10


def test_at_every_stride_of_sbhar_the_same_time_is_seen():
    """In seconds, whatever the number of positions; only the step of 25 samples is no multiple of the others."""
    configs = [training_config("sbhar", None, 0, settings) for settings in strides.trainings("sbhar").values()]
    assert [config.data.stride for config in configs] == [25, 12, 6]
    for config in configs:
        assert math.prod(config.model.stem) == config.data.stride
        reaches = (config.model.zoom / 24, config.bdr.radius / 8, config.training.length / 192)
        assert len(set(reaches)) == 1 and reaches[0] * config.data.stride == pytest.approx(25, rel=0.05)
        assert reaches[0] * 2**6 == 2**config.model.levels


def test_on_zoombench_all_seeds_are_tested_on_the_same_sequences():
    """Tables compare the predictions of all seeds with one truth."""
    first, second = (
        load_data(config.data, config.seed)
        for config in (training_config("zoombench", None, seed, ["data.sequences=2"]) for seed in (0, 1))
    )
    for one, other in ((first.train, second.train), (first.test, second.test)):
        assert len(one.samples) == len(other.samples)
        assert all(np.array_equal(a.features, b.features) for a, b in zip(one.samples, other.samples, strict=True))


def test_a_folder_means_the_files_in_it(tmp_path):
    rats = training_config("rats", tmp_path, 0)
    assert rats.data.annotations == tmp_path / "coarse.json" and rats.data.features == tmp_path / "pose.npz"
    assert training_config("tug", tmp_path, 3).data.root == tmp_path and training_config("tug", tmp_path, 3).seed == 3
    assert training_config("tug", None, 0).data.root == Path.cwd() / "data/tug"


def test_folds_of_salads_are_the_published_ones(shared_data):
    """Five of people, who are in one of them each, with both of their recordings."""
    root = shared_data / "salads50"
    entries = json.loads((root / "annotations.json").read_text())["database"]
    settings, tested = fold_settings("salads", 5), []
    for number, folder in enumerate(settings, 1):
        data = load_data(training_config("salads", root, 0, settings[folder]).data)
        names = {sample.name for sample in data.test.samples}
        assert names == {name for name, entry in entries.items() if entry["fold"] == number}
        assert not {name[:2] for name in names} & {sample.name[:2] for sample in data.train.samples}
        tested += names
    assert sorted(tested) == sorted(entries) and len(tested) == 50
    usual = load_data(training_config("salads", root, 0).data)
    assert {sample.name for sample in usual.test.samples} == set(tested[:10])


def test_unknown_names_are_answered_with_the_known(tmp_path):
    for message, arguments in {
        r"no data set 'sbahr'; there are zoombench, zoombench-context, sbhar, sbhar-windows, tug, rats, salads": {
            "data_set": "sbahr"
        },
        r"no table 'component'; did you mean 'components'\?": {"table": "component"},
        r"no table 'x'; there are capacity, combination, ": {"table": "x"},
        r"--systems: table ours has no 'tznn'; there are uniform-6,": {"systems": ["tznn"]},
        r"strides: is about sbhar, .*not about tug": {"data_set": "tug", "table": "strides"},
        r"--root: zoombench has no folder": {"root": tmp_path},
        r"--folds: zoombench has no subjects": {"folds": 3},
        r"--folds: salads was published with 5 folds, got 4": {"data_set": "salads", "folds": 4},
        r"^bmn: .*model\.heads": {"table": "systems", "overrides": ["model.heads=2"], "systems": ["tzn", "bmn"]},
        r"data\.root": {"data_set": "sbhar", "root": tmp_path / "nowhere"},
    }.items():
        with pytest.raises(InputError, match=message):
            run_bench(**{"data_set": "zoombench", "out": tmp_path / "out", **arguments})
    assert not (tmp_path / "out").exists()


def test_systems_of_a_table_have_the_same_width_and_see_the_same_inputs():
    """What a recipe says about its input holds for every architecture in its place; bmn's map wants half the width."""
    for data_set in DATA_SETS:
        configs = {name: training_config(data_set, None, 0, settings) for name, settings in SYSTEMS.items()}
        inputs = {(c.model.standardize, c.model.stem, c.data.stride) for c in configs.values()}
        widths = {c.model.width for name, c in configs.items() if not name.startswith("bmn")}
        assert len(inputs) == 1 and len(widths) == 1, data_set


def test_of_every_competitor_it_is_known_what_had_to_be_chosen():
    assert set(depth.HYPERPARAMETERS) == set(depth.SYSTEMS)
    assert len(depth.BUDGETS) >= 4


def test_competitors_differ_from_tzn_in_the_allocation_alone():
    """Same shallow network, heads, losses and data."""
    for data_set in DATA_SETS:
        reference = dump_tree(training_config(data_set, None, 0, ours.trainings(data_set)["tzn"]))
        for name, settings in depth.trainings(data_set).items():
            tree = dump_tree(training_config(data_set, None, 0, settings))
            assert {**tree, "model": None} == {**reference, "model": None}, name
            for key in ("width", "head", "levels", "shallow_layers", "drop_path", "layer_scale", "stem"):
                assert tree["model"].get(key) == reference["model"].get(key), (name, key)


def test_on_sbhar_the_field_s_detectors_read_the_same_samples_as_ours():
    """Through a stem: a single sample of one position changes what a network says."""
    for name in ("tzn", "uniform-6", "actionformer", "tridet", "temporalmaxer", "bmn", "temporalmaxer+bdr", "dense"):
        config = training_config("sbhar", None, 0, SYSTEMS[name], ["model.width=16", "bdr.enabled=true"])
        assert config.model.stem == (5, 5) and config.data.stride == 25 and config.data.window == 50
        torch.manual_seed(0)
        model = model_from_config(config, 300, 12, TimeGrid(25, 50, 50)).eval()
        stems = [module for module in model.modules() if isinstance(module, Stem)]
        assert len(stems) == 1 and stems[0].window == 50 and stems[0].rows == 25, name
        windows, mask = torch.randn(1, 40, 300), torch.ones(1, 40, dtype=torch.bool)
        other = windows.clone()
        other.view(1, 40, 50, 6)[0, 20, 25] += 3.0
        with torch.no_grad():
            assert not torch.equal(model(windows, mask).logits, model(other, mask).logits), name
