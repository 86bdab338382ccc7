"""The paper's ablations: what each varies, and what it measures by hand."""

import numpy as np
import pytest
import torch
from rich.console import Console

from temporalzoom.config import load_config
from temporalzoom.datasets.samples import Sample
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.experiments.data_sets import quick_settings, training_config
from temporalzoom.experiments.tables import (
    capacity,
    combination,
    extraction,
    gradients,
    paper,
    penalty,
    pruning,
    refinement,
    stride,
)
from temporalzoom.inference.localizer import Localizer
from temporalzoom.models import Outputs, build_model
from temporalzoom.models.outputs import Depth
from temporalzoom.runs.network import oracle_reach, training_reach
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import train


@pytest.mark.parametrize("table", [capacity, combination, gradients, paper, penalty, pruning])
def test_what_is_compared_is_trained(table):
    trained = table.trainings("tug")
    assert table.BASELINE in trained and {name for pair in table.COMPARISONS for name in pair} <= set(trained)


@pytest.mark.parametrize("table", [refinement, extraction])
def test_every_way_reads_a_trained_system_with_settings_that_have_an_effect(table):
    trained = table.trainings("zoombench")
    assert {name for pair in table.COMPARISONS for name in pair} <= set(table.WAYS)
    for way in table.WAYS.values():
        training_config("zoombench", None, 0, trained[way.system], way.settings)  # what has none is refused


def test_capacity_says_when_a_classifier_has_caught_up():
    def results(*gaps, p=0.001):
        cells = {key: {"value": -1.0, "low": -2.0, "high": 0.0, "p": 1.0} for key in ("0.5", "0.8", "0.9", "average")}
        names = ["uniform-3+bce - uniform-6+bdr", "uniform-9+bce - uniform-6+bdr", "uniform-12+bce - uniform-6+bdr"]
        return {
            "differences": {
                name: {**cells, "0.7": {"value": gap, "low": gap, "high": gap, "p": p}}
                for name, gap in zip(names, gaps, strict=True)
            }
        }

    assert "From 9 layers on classification is not" in capacity.verdict(results(-3.0, 0.5, 1.0))[0]
    assert "With up to 12 layers classification stays behind" in capacity.verdict(results(-3.0, -2.0, -1.0))[0]
    assert "From 3 layers on" in capacity.verdict(results(-3.0, -2.0, -1.0, p=0.4))[0]
    assert capacity.verdict({"differences": {}}) == []


def test_the_design_of_the_paper_is_its_recipe_at_our_size():
    for data_set in ("zoombench", "sbhar"):
        ours = training_config(data_set, None, 0)
        config = training_config(data_set, None, 0, paper.trainings(data_set)["paper"])
        recipe = load_config("paper")
        for key in ("window", "levels", "head", "shallow_layers", "deep_layers", "zoom", "expansion", "pruning"):
            assert getattr(config.model, key) == getattr(recipe.model, key), key
        assert config.bdr == recipe.bdr and config.inference.refine == "snap"
        assert (config.training.assignment, config.training.box_loss) == ("hungarian", "l1+giou")
        assert config.model.paper.supervision == "penalty" and config.model.paper.hysteresis == "hold"
        assert config.model.width == ours.model.width and config.training.steps == ours.training.steps
    training_config("zoombench", None, 0, paper.trainings("zoombench")["paper"], quick_settings("zoombench"))


def test_the_grid_of_penalties_is_that_of_the_paper():
    found = [training_config("zoombench", None, 0, words).model.paper for words in penalty.SYSTEMS.values()]
    assert [(one.compute_weight, one.prune_weight) for one in found] == list(penalty.WEIGHTS)
    assert penalty.BASELINE == "tzn-c0.05-p0.01" and all(one.supervision == "penalty" for one in found)


@pytest.mark.parametrize("data_set", ["zoombench", "zoombench-context"])
def test_at_every_stride_the_actions_are_the_same(data_set):
    small = ["data.sequences=1", "data.test_sequences=3"]
    truths, lengths = [], []
    for name, words in stride.trainings(data_set).items():
        config = training_config(data_set, None, 0, words, small)
        test = load_data(config.data, 0, train=False).test
        assert test.samples[0].grid == TimeGrid(float(name.rpartition("-")[2]), 8, 30)
        lengths.append(len(test.samples[0]))
        truths.append({n: (s.starts.tolist(), s.ends.tolist(), s.labels.tolist()) for n, s in test.truth().items()})
        step = test.samples[0].grid.stride / 4
        assert config.model.zoom * step == 24 and config.bdr.radius * step == 8
        assert config.training.length * step == 256 and 2**config.model.levels * step == 64
    assert lengths == [513, 1025, 257] and truths[0] == truths[1] == truths[2]
    with pytest.raises(InputError, match="about generated sequences"):
        stride.trainings("tug")


def test_boundaries_that_the_shallow_path_misses_and_pruning_drops():
    """Stride 4: two frames are half a position. The start is found, the end is missed, and pruned or not."""
    grid, length = TimeGrid(4, 0, 30), 40
    times = [grid.to_seconds(10.4), grid.to_seconds(25.0)]
    sample = Sample("x", np.zeros((length, 1), np.float32), grid, 9.0, Segments([times[0]], [times[1]], ["a"]))
    positions = torch.arange(length, dtype=torch.float32)
    distances = torch.stack([positions - 10.0, positions - 26.0], 1)
    nothing = torch.zeros(length)
    for kept in (True, False):
        survived = torch.ones(length, dtype=torch.bool)
        survived[25] = kept
        depth = Depth(nothing, nothing, nothing, nothing, survived, nothing.bool(), nothing.bool())
        outputs = Outputs(torch.zeros(length, 1), torch.zeros(length, 2), distances=distances, depth=depth)
        found = pruning.boundaries_kept(None, sample, outputs)
        assert found["recall"] == 50 and found["lost"] == (0 if kept else 50)
        assert found["kept"] == pytest.approx(100 if kept else 97.5)


def test_protection_in_training_is_told_the_truth_in_training_only(tmp_path, tiny_split, tiny_config):
    settings = ("model.name=tzn", "model.pruning=true", "model.depth=false", "training.steps=2")
    config = tiny_config(*settings, "model.paper.protection=training")
    assert training_reach(config, 4.0) == 3 and oracle_reach(config, 4.0) is None
    oracle = tiny_config(*settings, "model.paper.protection=oracle")
    assert training_reach(oracle, 4.0) == oracle_reach(oracle, 4.0) == 3
    assert training_reach(tiny_config(*settings), 4.0) is None
    train(config, tiny_split, tmp_path, console=Console(quiet=True))
    localizer = Localizer.load(tmp_path)
    features = tiny_split.samples[0].features
    deep = localizer.outputs(features)
    assert localizer.description.oracle_reach is None and deep.depth is not None
    pruning.shallow_alone(localizer)
    alone = localizer.outputs(features)
    assert torch.equal(alone.depth.kept, deep.depth.kept) and not torch.equal(alone.distances, deep.distances)


def test_stopped_gradients_come_from_no_position_below_the_limit():
    torch.manual_seed(0)
    features, mask = torch.randn(2, 50, 6), torch.ones(2, 50, dtype=torch.bool)
    gradients_of = {}
    for supervision in ("penalty", "stopped"):
        torch.manual_seed(1)
        model = build_model("tzn", 6, 2, width=16, heads=2, deep_layers=1, tau_min=0.5, supervision=supervision).train()
        torch.manual_seed(2)
        depth = model(features, mask).depth
        depth.logits.retain_grad()
        depth.tau.sum().backward()
        gradients_of[supervision] = depth.logits.grad, depth.tau.detach()
    (plain, tau), (stopped, _) = gradients_of.values()
    assert bool((plain != 0).all())
    assert torch.equal(stopped, torch.where(tau < 0.3, torch.zeros_like(plain), plain))
