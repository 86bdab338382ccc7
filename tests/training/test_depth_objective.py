"""Both paths learn, and tau learns where depth pays."""

from dataclasses import replace

import pytest
import torch

from temporalzoom.config import Config, ZoomSection
from temporalzoom.models import Depth, Outputs
from temporalzoom.runs.network import model_from_config
from temporalzoom.training.batches import training_batch
from temporalzoom.training.depth_objective import GAIN_LIMITS, value_loss, value_targets
from temporalzoom.training.objective import assign, detection_terms, objective, position_loss, read_crossings


def test_targets_are_gains_in_prices():
    gain = torch.zeros(1, 100)
    gain[0, :10] = 2.0
    gain[0, 10:20] = -2.0
    gain[0, 20] = 1.0
    everywhere = torch.ones(1, 100, dtype=torch.bool)
    targets = value_targets(gain, everywhere, everywhere, share=0.05)  # the price: what the best 5 % gain, 2
    assert targets[0, :10].tolist() == [1.0] * 10 and targets[0, 20] == 0.5
    assert (targets[0, 10:20] == -1.0).all() and (targets[0, 21:] == 0.0).all()


def test_single_positions_cannot_ask_for_any_height():
    gain = torch.zeros(1, 100)
    gain[0, 0], gain[0, 1] = 1e6, -1e6
    everywhere = torch.ones(1, 100, dtype=torch.bool)
    targets = value_targets(gain, everywhere, everywhere, share=0.2)
    assert (targets[0, 1], targets[0, 0]) == GAIN_LIMITS


def test_the_predictor_that_knows_the_mean_gain_loses_least():
    """Of two kinds of positions the one that gains more on average is worth more, also if it gains less often."""
    torch.manual_seed(0)
    often, seldom = torch.full((1, 500), 0.5), 2.0 * (torch.rand(1, 500) < 0.4)
    gain, everywhere = torch.cat((often, seldom), 1), torch.ones(1, 1000, dtype=torch.bool)
    known = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.Adam([known], 0.05)
    for _ in range(300):
        logits = known.repeat_interleave(500)[None]
        depth = Depth(logits, logits, logits, logits, everywhere, everywhere, everywhere)
        loss = value_loss(depth, gain, everywhere, ZoomSection(share=0.1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    price = max(float(torch.quantile(gain, 0.9)), float(gain.mean()))
    expected = torch.stack((often.mean(), seldom.mean())) / price
    torch.testing.assert_close(known.detach(), expected, atol=1e-2, rtol=0)
    assert known[1] > known[0]


def test_distances_count_beside_boundaries_and_where_the_shallow_path_takes_them_to_be(tiny_config, tiny_split):
    config = tzn_config(tiny_config)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    exact = Outputs(torch.zeros(2, 80, 2), torch.ones(2, 80, 2), distances=batch.distances.clone())
    weights = read_crossings(exact, batch)
    assert ((weights == 1) == (batch.distances.abs() <= 1)).all()
    assert ((weights == 0) == (batch.distances.abs() >= 2)).all()
    nearby = ((batch.distances.abs() > 2) & (batch.distances.abs() < 3)).nonzero()[0]
    far = (batch.distances.abs() > 3).nonzero()[0]
    exact.distances[tuple(nearby)] = exact.distances[tuple(far)] = 0.5
    weights = read_crossings(exact, batch)
    assert weights[tuple(nearby)] == 1 and weights[tuple(far)] == 0
    assert read_crossings(Outputs(torch.zeros(2, 80, 2), torch.ones(2, 80, 2)), batch) is None


def test_a_smaller_share_asks_for_a_higher_price():
    gain = torch.linspace(0, 1, 101)[None]
    everywhere = torch.ones(1, 101, dtype=torch.bool)
    means = [value_targets(gain, everywhere, everywhere, share).mean().item() for share in (0.05, 0.2, 0.4)]
    assert means == sorted(means) and means[0] < means[-1]


def test_nothing_tried_is_nothing_learned():
    nobody = torch.zeros(1, 8, dtype=torch.bool)
    logits = torch.zeros(1, 8, requires_grad=True)
    depth = Depth(logits, torch.sigmoid(logits), torch.ones(1, 8), torch.zeros(1, 8), ~nobody, nobody, nobody)
    loss = value_loss(depth, torch.zeros(1, 8), ~nobody, ZoomSection())
    loss.backward()
    assert loss.item() == 0 and (logits.grad == 0).all()


def tzn_config(tiny_config, *settings: str) -> Config:
    return tiny_config("model.name=tzn", "model.deep_layers=2", "model.pruning=true", *settings)


@pytest.mark.parametrize("supervision", ["value", "penalty"])
def test_every_term_is_there_and_finite(tiny_config, tiny_split, supervision):
    threshold = ("model.paper.tau_min=0.5",) if supervision == "penalty" else ()
    config = tzn_config(tiny_config, f"model.paper.supervision={supervision}", "model.pruning=true", *threshold)
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    terms = objective(model(batch.features, batch.mask), batch, config, progress=0.5)
    expected = {"shallow", "deep", "uncertainty", "prune", "depth" if supervision == "value" else "compute"}
    assert expected <= set(terms)
    assert all(value.isfinite() for value in terms.values())
    sum(terms.values()).backward()
    without_gradient = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not without_gradient


def test_the_penalty_warms_up(tiny_config, tiny_split):
    config = tzn_config(tiny_config, "model.paper.supervision=penalty", "model.paper.tau_min=0.5")
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    outputs = model(batch.features, batch.mask)
    early, late = (objective(outputs, batch, config, progress)["compute"] for progress in (0.03, 0.9))
    assert early.item() == pytest.approx(0.1 * late.item(), rel=1e-4)
    assert late.item() == pytest.approx(0.05 * outputs.depth.tau[batch.mask].mean().item(), rel=1e-5)


def test_losses_by_position_add_up_to_the_loss(tiny_config, tiny_split):
    config = tiny_config("bdr.enabled=false")
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    outputs = model(batch.features, batch.mask)
    matches = assign(outputs, batch, config.training)
    terms = detection_terms(outputs, matches, batch, config.training)
    terms.pop("box_variance")  # how sure a path is does not make depth pay
    total = position_loss(outputs, matches, batch, config).sum() / (matches >= 0).sum()
    assert total.item() == pytest.approx(sum(terms.values()).item(), rel=1e-5)


@pytest.mark.parametrize(
    "off", [[], ["depth"], ["uncertainty"], ["pruning"], ["depth", "uncertainty"], ["depth", "pruning"]]
)
def test_components_are_settings(tiny_config, tiny_split, off):
    config = tzn_config(tiny_config, "model.pruning=true", *(f"model.{part}=false" for part in off))
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    terms = objective(model(batch.features, batch.mask), batch, config)
    assert ("depth" in terms) == ("depth" not in off)
    assert ("prune" in terms) == ("pruning" not in off)
    assert ("uncertainty" in terms) == ("uncertainty" not in off)


@pytest.mark.parametrize("levels", [1, 3])
def test_without_distances_uncertainty_learns_from_boxes(tiny_config, tiny_split, levels):
    config = tzn_config(tiny_config, "bdr.enabled=false", f"model.levels={levels}")
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    outputs = model(batch.features, batch.mask)
    term = objective(outputs, batch, config)["uncertainty"]
    matches, expected = assign(outputs, batch, config.training), []
    for sequence, row in (matches >= 0).nonzero().tolist():
        position = row if outputs.points is None else int(outputs.points.positions[row])
        start, end = (times[sequence][matches[sequence, row]] for times in (batch.starts, batch.ends))
        log_variance = outputs.depth.log_variance[sequence, position]
        for found, true in zip(outputs.offsets[sequence, row], (position - start, end - position), strict=True):
            expected.append(0.5 * ((found - true) ** 2 * torch.exp(-log_variance) + log_variance).item())
    assert term.item() == pytest.approx(config.model.paper.uncertainty_weight * sum(expected) / len(expected), rel=1e-4)
    term.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.uncertainty.parameters())
    assert all(p.grad is None or (p.grad == 0).all() for p in model.heads.box.parameters())  # errors are detached


def test_without_instances_there_is_no_box_to_be_uncertain_of(tiny_config, tiny_split):
    config = tzn_config(tiny_config, "bdr.enabled=false")
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    empty = replace(
        batch,
        starts=[x[:0] for x in batch.starts],
        ends=[x[:0] for x in batch.ends],
        labels=[x[:0] for x in batch.labels],
        scores=[x[:0] for x in batch.scores],
    )
    assert objective(model(batch.features, batch.mask), empty, config)["uncertainty"] == 0


@pytest.mark.parametrize("name", ["actionformer", "tridet", "temporalmaxer"])
@pytest.mark.parametrize("bdr", [True, False])
def test_a_detector_with_depth_has_the_same_terms(tiny_config, tiny_split, name, bdr):
    """And without BDR, sigma^2 learns from the boxes, of `tridet` those of the true class."""
    zoomed = (f"model.name={name}", "model.heads=2", "model.deep_layers=2", f"bdr.enabled={str(bdr).lower()}")
    config = tiny_config(*zoomed, *(("model.bins=4",) if name == "tridet" else ()))
    torch.manual_seed(0)
    model = model_from_config(config, tiny_split.input_width, 2, tiny_split.samples[0].grid)
    batch = training_batch(tiny_split, 0, 0, 2, 80, config.bdr)
    outputs = model(batch.features, batch.mask)
    terms = objective(outputs, batch, config)
    plain = {"class", "l1", "giou", *(("distance", "distance_variance") if bdr else ())}
    assert set(terms) == plain | {"shallow", "deep", "uncertainty", "depth"}
    assert all(term.isfinite() and term > -10 for term in terms.values())
    sum(terms.values()).backward()
    learning = (*model.depth.parameters(), *model.uncertainty.parameters(), *model.deep.parameters())
    assert all(p.grad is not None and p.grad.isfinite().all() for p in learning)
    if not bdr:
        matches, expected = assign(outputs, batch, config.training), []
        for sequence, row in (matches >= 0).nonzero().tolist():
            instance, position = int(matches[sequence, row]), int(outputs.points.positions[row])
            label = int(batch.labels[sequence][instance])
            box = outputs.offsets[sequence, row, label] if name == "tridet" else outputs.offsets[sequence, row]
            start, end = (times[sequence][instance] for times in (batch.starts, batch.ends))
            log_variance = outputs.depth.log_variance[sequence, position]
            for found, true in zip(box, (position - start, end - position), strict=True):
                expected.append(0.5 * ((found - true) ** 2 * torch.exp(-log_variance) + log_variance).item())
        assert terms["uncertainty"].item() == pytest.approx(0.1 * sum(expected) / len(expected), rel=1e-4)
