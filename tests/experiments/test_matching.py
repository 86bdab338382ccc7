"""Equal cost: knobs are found, sizes are found, and never on the test."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.datasets.sources import load_data
from temporalzoom.experiments.data_sets import training_config
from temporalzoom.experiments.matching import BUDGET, Knob, Match, executed, knob_of, match, search
from temporalzoom.experiments.measures import told_boundaries
from temporalzoom.experiments.operating import counted_layers
from temporalzoom.experiments.sizing import matched_sizes, untrained_cost
from temporalzoom.experiments.systems import COMPETITORS, CONTROLS, REFERENCES, TZN
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_run, count_total
from temporalzoom.models import build_model
from temporalzoom.runs.description import describe
from temporalzoom.runs.network import model_from_config
from temporalzoom.workflows.validation_data import validation_split

SMALL = "data.sequences=4 data.test_sequences=2 data.length=128 model.width=32".split()


@given(st.floats(0.001, 0.999), st.booleans(), st.floats(0.3, 4.0))
@settings(max_examples=60)
def test_a_search_meets_what_can_be_met(place, rises, power):
    knob = Knob("x", -3.0, 5.0, rises)

    def cost(value: float) -> float:
        share = (value + 3) / 8
        return 100 + 900 * (share if rises else 1 - share) ** power

    target = 100 + 900 * place
    value, spent = search(cost, knob, target)
    assert spent == cost(value) and abs(spent / target - 1) < 0.02


def test_a_search_stays_at_the_end_where_the_target_lies_beyond():
    assert search(lambda v: 10 + v, BUDGET, 3.0) == (0.0, 10.0)
    assert search(lambda v: 10 + v, BUDGET, 30.0) == (1.0, 11.0)
    assert search(lambda v: 10 + round(4 * v), BUDGET, 12.4)[1] in (12.0, 13.0)
    assert Match("budget", 0.1, 104.9, 100.0).within and not Match("budget", 0.1, 105.2, 100.0).within


@torch.no_grad()
@pytest.mark.parametrize("name", ["uniform-2", "tzn", "temporalmaxer", "tridet", "actionformer", "bmn"])
def test_the_fast_count_is_the_count_by_parts(name):
    torch.manual_seed(0)
    options = {"width": 16, "distance_channels": 2} | ({"durations": 8, "samples": 4} if name == "bmn" else {})
    model = build_model(name, 6, 3, **options).eval()
    features, mask = torch.randn(1, 70, 6), torch.ones(1, 70, dtype=torch.bool)
    assert count_total(lambda: model(features, mask)) == count_run(model, lambda: model(features, mask)).total > 0


def localizer_of(name, own, data):
    config = training_config("zoombench", None, 0, own, SMALL)
    torch.manual_seed(0)
    train = data.train
    model = model_from_config(config, train.input_width, len(train.classes), train.samples[0].grid)
    with torch.no_grad():
        for parameter in () if model.predictor is None else model.predictor.parameters():
            parameter.normal_(std=1.0)
    return Localizer(model.eval(), describe(config, train.classes, train.input_width, train.samples[0].grid, None, 0))


@pytest.fixture(scope="module")
def data():
    return load_data(training_config("zoombench", None, 0, TZN, SMALL).data, 0)


@pytest.mark.parametrize(
    "name", ["tzn-random", "tzn-oracle", "discrete-4", "gumbel", "early-exit", "mixture", "pruning"]
)
def test_every_knob_reaches_a_cost_between_its_ends(name, data):
    localizer = localizer_of(name, {**CONTROLS, **COMPETITORS}[name], data)
    knob, split = knob_of(localizer.model), data.train
    ends = []
    for value in (knob.low, knob.high):
        knob.set(localizer.model, value)
        ends.append(executed(localizer, split))
    assert (ends[1] > ends[0]) == knob.rises and min(ends) > 0
    target = 0.6 * min(ends) + 0.4 * max(ends)
    found = match(localizer, split, target)
    assert found.within and found.knob == knob.name
    assert executed(localizer, split) == found.flops  # it stays set


def test_what_has_no_knob_says_what_it_costs(data):
    for name in ("tzn-none", "tzn-all"):
        localizer = localizer_of(name, CONTROLS[name], data)
        found = match(localizer, data.train, 1.0)
        assert found.knob is None and found.flops == executed(localizer, data.train) and not found.within


def test_validation_sequences_are_neither_trained_on_nor_tested(data):
    config = training_config("zoombench", None, 0, TZN, SMALL)
    chosen = validation_split(config, data.train, 5)
    assert len(chosen.samples) == 5 and chosen.classes == data.train.classes
    known = [s.features for s in (*data.train.samples, *data.test.samples)]
    assert not any(np.array_equal(s.features, other) for s in chosen.samples for other in known)


def test_layers_are_counted_as_they_run():
    torch.manual_seed(0)
    features, mask = torch.randn(2, 50, 6), torch.ones(2, 50, dtype=torch.bool)
    for name, options, mean in (("uniform-3", {}, 3.0), ("tzn", {"budget": 0.2, "deep_layers": 5}, 1.0)):
        model = build_model(name, 6, 3, width=16, **options).eval()
        with counted_layers(model) as count, torch.no_grad():
            model(features, mask)
        assert count.mean == pytest.approx(mean)
        model(features, mask)
        assert count.positions == 100  # nothing is left behind


def test_sizes_cost_what_tzn_does_whatever_the_overrides():
    def config_of(own):
        return training_config("zoombench", None, 0, own, ["model.width=48"])

    found = matched_sizes({**COMPETITORS, **REFERENCES}, config_of)
    assert set(found) == {"early-exit", "early-exit+temp", "dense"}
    test = load_data(config_of(TZN).data, 0, train=False).test
    target = untrained_cost(config_of(TZN), test)
    dense = training_config("zoombench", None, 0, REFERENCES["dense"], ["model.width=48"], found["dense"])
    assert untrained_cost(dense, test) == pytest.approx(target, rel=0.05)
    leaving = training_config("zoombench", None, 0, COMPETITORS["early-exit"], ["model.width=48"], found["early-exit"])
    assert untrained_cost(leaving, test) <= 0.9 * target
    assert leaving.model.width < 48 and leaving.model.paper.depths == (2, 4, 6)
    assert matched_sizes({"tzn": TZN}, config_of) == {}


def test_the_oracle_is_told_in_the_table_too(data):
    localizer = localizer_of("tzn-oracle", CONTROLS["tzn-oracle"], data)
    sample = data.test.samples[0]
    mask = torch.ones(2, len(sample), dtype=torch.bool)
    told = told_boundaries(localizer, sample, mask)
    assert told["boundaries"].shape == (2, 128) and told["boundaries"].any() and not told["boundaries"].all()
    localizer.model(torch.tensor(sample.features)[None].repeat(2, 1, 1), mask, **told)
    assert told_boundaries(localizer_of("tzn", TZN, data), sample, mask) == {}


def test_margins_are_log_odds():
    config = training_config("zoombench", None, 0, COMPETITORS["early-exit"], [*SMALL, "model.paper.confidence=0.8"])
    split = load_data(config.data, 0, train=False).test
    model = model_from_config(config, split.input_width, len(split.classes), split.samples[0].grid)
    assert model.margin == pytest.approx(math.log(4))
