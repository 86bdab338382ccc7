"""How routers learn: estimates against closed forms, and the terms of a whole step."""

import pytest
import torch

from temporalzoom.config import load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.models import Outputs
from temporalzoom.models.routing import one_hot_of_highest
from temporalzoom.runs.network import model_from_config
from temporalzoom.training.batches import training_batch
from temporalzoom.training.objective import objective
from temporalzoom.training.routing_objective import best_depths, calibration_loss, policy_loss

TINY = """
data.source=zoombench data.sequences=2 data.test_sequences=1 data.length=96 model.width=16
training.batch_size=2 training.length=64
""".split()


def test_the_policy_gradient_is_unbiased_on_a_bandit():
    """Three arms of known losses: the mean of many estimates is the gradient of the expected loss, in its units."""
    torch.manual_seed(0)
    logits = torch.tensor([0.2, -0.5, 0.7])
    losses = torch.tensor([1.0, 0.4, 2.0])
    positions, rounds = 8, 20_000
    policy = logits.expand(rounds * positions, 3).clone().requires_grad_()
    samples = torch.distributions.Categorical(logits=policy.detach()).sample()
    chosen = torch.nn.functional.one_hot(samples, 3).float()
    estimates = []
    for start in range(0, rounds * positions, positions):
        rows = slice(start, start + positions)
        estimates.append(policy_loss(policy[rows], chosen[rows], losses.expand(positions, 3)))
    torch.stack(estimates).sum().backward()
    each = policy.grad.view(rounds, positions, 3).sum(1)  # of the shared logits
    exact = logits.clone().requires_grad_()
    unit = (losses[0] - losses).abs().mean()
    (-(((losses[0] - losses) / unit) * exact.softmax(-1)).sum()).backward()
    error = each.std(0) / rounds**0.5
    assert ((each.mean(0) - exact.grad).abs() < 4 * error).all()
    assert exact.grad.abs().max() > 20 * error.max()  # precise enough to tell


def test_the_baseline_lowers_the_variance():
    torch.manual_seed(0)
    policy = torch.zeros(20_000, 2, requires_grad=True)
    chosen = one_hot_of_highest(torch.rand(20_000, 2))
    losses = torch.tensor([1.0, 0.0]).expand(20_000, 2)
    (with_baseline,) = torch.autograd.grad(policy_loss(policy, chosen, losses) * 20_000, policy)
    reward = ((losses[:, :1] - losses) * chosen).sum(-1) / 0.5
    plain = -(reward * (policy.log_softmax(-1) * chosen).sum(-1)).sum()
    (without,) = torch.autograd.grad(plain, policy)
    assert with_baseline.var() < 0.5 * without.var()


def test_the_best_depth_is_the_one_that_is_worth_its_price():
    layers = torch.tensor([0.0, 6.0, 9.0])
    losses = torch.ones(100, 3)
    losses[:10, 2] = 0.0  # a tenth gain by all layers, another tenth a little by six
    losses[10:20, 1:] = 0.8
    best = best_depths(losses, layers, 0.9)
    assert best.tolist() == [2] * 10 + [0] * 90
    best = best_depths(losses, layers, 1.5)
    assert best.tolist() == [2] * 10 + [1] * 10 + [0] * 80


def test_a_temperature_is_learned_and_nothing_else():
    torch.manual_seed(0)
    truth = torch.randn(1, 4000, 1) * 2
    labels = torch.bernoulli(truth.sigmoid())
    logits = (3.0 * truth).requires_grad_()  # three times too sure
    log_temperature = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([log_temperature], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        path = Outputs(logits, torch.zeros(1, 4000, 2))
        mask = torch.ones(1, 4000, dtype=torch.bool)
        calibration_loss([path], log_temperature.exp(), mask, lambda _: labels).backward()
        optimizer.step()
    assert float(log_temperature.detach().exp()) == pytest.approx(3.0, rel=0.1) and logits.grad is None


@pytest.mark.parametrize(
    ("allocation", "terms"),
    [
        ("discrete", {"shallow", "deep", "depth"}),
        ("gumbel", {"shallow", "deep"}),
        ("reinforce", {"shallow", "deep", "depth"}),
        ("exit", {"shallow", "deep"}),
        ("calibrated-exit", {"shallow", "deep", "temperature"}),
        ("mixture", {"shallow"}),
        ("random", {"shallow", "deep"}),
        ("none", {"shallow"}),
    ],
)
def test_terms_of_a_step_and_what_learns_from_them(allocation, terms):
    exits = allocation.endswith("exit")
    depths = [f"model.paper.depths={[1, 2] if exits else [0, 1, 2]}"] if terms & {"depth"} or exits else []
    config = load_config(None, [*TINY, f"model.paper.allocation={allocation}", *depths])
    split = load_data(config.data).train
    torch.manual_seed(0)
    model = model_from_config(config, split.input_width, len(split.classes), split.samples[0].grid).train()
    batch = training_batch(split, 0, 0, 2, 64, config.bdr)
    outputs = model(batch.features, batch.mask)
    found = objective(outputs.as_float32(), batch, config)
    plain = {"class", "diou", "box_variance", "distance", "distance_variance"}
    assert set(found) == plain | terms
    sum(found.values()).backward()
    assert all(bool(value.isfinite()) for value in found.values())
    silent = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert silent == []
    predictor = model.predictor
    if predictor is not None:
        assert any(float(parameter.grad.abs().sum()) > 0 for parameter in predictor.parameters())
