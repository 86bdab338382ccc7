"""Both paths learn, and tau learns where depth pays."""

import pytest
import torch

from temporalzoom.config import Config, TZNConfig
from temporalzoom.models import Depth
from temporalzoom.training.batches import training_batch
from temporalzoom.training.depth_objective import value_loss, value_targets
from temporalzoom.training.network import model_from_config
from temporalzoom.training.objective import assign, detection_terms, objective, position_loss


def test_targets_are_high_where_depth_gains_and_low_where_it_changes_nothing():
    gain = torch.zeros(1, 100)
    gain[0, :10] = 2.0
    gain[0, 10:20] = -2.0
    everywhere = torch.ones(1, 100, dtype=torch.bool)
    targets = value_targets(gain, everywhere, everywhere, share=0.2)
    assert (targets[0, :10] > 0.9).all()
    assert (targets[0, 10:] < 0.1).all()
    assert (targets[0, 10:20] < targets[0, 20:].min()).all()


def test_a_smaller_share_asks_for_a_higher_price():
    gain = torch.linspace(0, 1, 101)[None]
    everywhere = torch.ones(1, 101, dtype=torch.bool)
    shares = [value_targets(gain, everywhere, everywhere, share).mean().item() for share in (0.05, 0.2, 0.4)]
    assert shares == sorted(shares) and shares[0] < shares[-1]


def test_nothing_tried_is_nothing_learned():
    nobody = torch.zeros(1, 8, dtype=torch.bool)
    logits = torch.zeros(1, 8, requires_grad=True)
    depth = Depth(logits, torch.sigmoid(logits), torch.ones(1, 8), torch.zeros(1, 8), ~nobody, nobody, nobody)
    loss = value_loss(depth, torch.zeros(1, 8), ~nobody, TZNConfig())
    loss.backward()
    assert loss.item() == 0 and (logits.grad == 0).all()


def test_positions_that_came_by_lot_stand_for_the_rest():
    logits = torch.tensor([[3.0, 3.0, -3.0, -3.0, -3.0]])
    active = torch.tensor([[True, True, False, False, False]])
    tried = torch.tensor([[True, True, True, False, False]])  # the third by lot
    everywhere = torch.ones(1, 5, dtype=torch.bool)
    depth = Depth(logits, torch.sigmoid(logits), torch.ones(1, 5), torch.zeros(1, 5), everywhere, active, tried)
    gain = torch.tensor([[0.0, 0.0, 5.0, 0.0, 0.0]])
    once = value_loss(depth, gain, everywhere, TZNConfig(explore=1.0, share=0.15))
    often = value_loss(depth, gain, everywhere, TZNConfig(explore=0.1, share=0.15))
    assert often > once  # the surprise at the third weighs ten times as much


def tzn_config(tiny_config, *settings: str) -> Config:
    return tiny_config("model.name=tzn", "tzn.deep_layers=2", "tzn.warmup=0", "model.dropout=0", *settings)


@pytest.mark.parametrize("supervision", ["value", "penalty"])
def test_every_term_is_there_and_finite(tiny_config, tiny_split, supervision):
    config = tzn_config(tiny_config, f"tzn.supervision={supervision}")
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    terms = objective(model(batch.features, batch.mask), batch, config, progress=0.5)
    expected = {"shallow", "deep", "uncertainty", "prune", "depth" if supervision == "value" else "compute"}
    assert expected <= set(terms)
    assert all(value.isfinite() for value in terms.values())
    sum(terms.values()).backward()
    silent = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not silent


def test_the_penalty_warms_up(tiny_config, tiny_split):
    config = tzn_config(tiny_config, "tzn.supervision=penalty")
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    outputs = model(batch.features, batch.mask)
    early, late = (objective(outputs, batch, config, progress)["compute"] for progress in (0.03, 0.9))
    assert early.item() == pytest.approx(0.1 * late.item(), rel=1e-4)
    assert late.item() == pytest.approx(0.05 * outputs.depth.tau[batch.mask].mean().item(), rel=1e-5)


def test_losses_by_position_add_up_to_the_loss(tiny_config, tiny_split):
    config = tiny_config("bdr.enabled=false", "training.box_variance_weight=0")
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    outputs = model(batch.features, batch.mask)
    matches = assign(outputs, batch, config.training)
    terms = detection_terms(outputs, matches, batch, config.training)
    total = position_loss(outputs, matches, batch, config).sum() / (matches >= 0).sum()
    assert total.item() == pytest.approx(sum(terms.values()).item(), rel=1e-5)


@pytest.mark.parametrize(
    "off", [[], ["depth"], ["uncertainty"], ["pruning"], ["depth", "uncertainty"], ["depth", "pruning"]]
)
def test_components_are_settings(tiny_config, tiny_split, off):
    config = tzn_config(tiny_config, *(f"tzn.{part}=false" for part in off))
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    terms = objective(model(batch.features, batch.mask), batch, config)
    assert ("depth" in terms) == ("depth" not in off)
    assert ("prune" in terms) == ("pruning" not in off)
    assert ("uncertainty" in terms) == ("uncertainty" not in off)
