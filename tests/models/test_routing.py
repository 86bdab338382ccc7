"""Competitors of adaptive depth: what is skipped is not computed, dense execution agrees, and limits are known."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.models import Outputs, RoutedZoom, TemporalZoom
from temporalzoom.models.routing import ROUTERS, build_tzn, gumbel_softmax, one_hot_of_highest, price_for

CLASSIFIERS = ["discrete", "gumbel", "reinforce"]
EXITS = ["exit", "calibrated-exit"]
HEADS = ["mlp", "convolution"]
OUTPUTS = ("logits", "offsets", "offset_log_variance", "distances", "distance_log_variance")


def make(allocation, seed=0, **options) -> RoutedZoom:
    """Random weights, drawn wide, so that positions differ in depth and depth matters."""
    torch.manual_seed(seed)
    depths = (1, 2, 4) if allocation.endswith("exit") else (0, 2, 3)
    chosen = {"width": 16, "heads": 2, "window": 5, "deep_layers": 3, "distance_channels": 2, "zoom": 4, "share": 0.3}
    model = RoutedZoom(6, 3, **(chosen | {"allocation": allocation, "depths": depths} | options))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.startswith(("heads.classes", "heads.box", "exits")) or "classifier" in name:
                parameter.normal_(std=0.5)
    return model.eval()


def inputs(lengths, seed=0):
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), 6) * mask[..., None], mask


def assert_same(first: Outputs, second: Outputs, where: torch.Tensor) -> None:
    for name in OUTPUTS:
        torch.testing.assert_close(getattr(first, name)[where], getattr(second, name)[where], rtol=1e-4, atol=1e-4)


def knob(model: RoutedZoom, value: float) -> None:
    """From 0, the least depth, to 1, all of it."""
    if model.router in EXITS:
        model.margin = 8 * value
    elif model.router == "mixture":
        model.budget = value
    else:
        model.threshold.fill_(3.0 - 6.0 * value)


class Spy:
    def __init__(self, model):
        self.tokens = []
        for layer in model.deep:
            layer.register_forward_pre_hook(lambda _, arguments: self.tokens.append(arguments[0].shape[1]))


@torch.no_grad()
@pytest.mark.parametrize("allocation", ROUTERS)
@pytest.mark.parametrize("head", HEADS)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.floats(0, 1), st.integers(0, 3))
@settings(max_examples=12)
def test_sparse_equals_dense_and_runs_what_it_says(allocation, head, lengths, value, seed):
    sparse, dense = (make(allocation, seed, head=head, execution=e) for e in ("sparse", "dense"))
    for model in (sparse, dense):
        knob(model, value)
    spy, (features, mask) = Spy(sparse), inputs(lengths, seed)
    first, second = sparse(features, mask), dense(features, mask)
    torch.testing.assert_close(first.depth.tau, second.depth.tau)
    assert_same(first, second, mask)
    layers = first.depth.tau[mask] * len(sparse.deep)  # of each position
    assert sum(spy.tokens) == round(float(layers.sum()))
    if allocation != "mixture":
        counts = [int((layers > number + 0.5).sum()) for number in range(len(sparse.deep))]
        assert spy.tokens == [count for count in counts if count]


@torch.no_grad()
@pytest.mark.parametrize("allocation", ROUTERS)
def test_a_batch_gives_what_its_sequences_give_alone(allocation):
    model, (features, mask) = make(allocation), inputs([50, 31])
    knob(model, 0.5)
    together, alone = model(features, mask), model(features[1:, :31], mask[1:, :31])
    for name in ("logits", "offsets", "distances"):
        torch.testing.assert_close(getattr(together, name)[1, :31], getattr(alone, name)[0], rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("head", HEADS)
def test_mixture_with_all_of_its_capacity_is_the_network_that_is_deep_everywhere(head):
    model = make("mixture", head=head, budget=1.0)
    everywhere = TemporalZoom(
        6, 3, width=16, heads=2, window=5, deep_layers=3, distance_channels=2, zoom=4, depth=False, uncertainty=False,
        head=head,
    ).eval()  # fmt: skip
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("classifier")}
    everywhere.load_state_dict(weights)
    features, mask = inputs([40, 25])
    assert_same(model(features, mask), everywhere(features, mask), mask)
    model.budget = 0.0
    everywhere.allocation = "none"
    assert_same(model(features, mask), everywhere(features, mask), mask)


@torch.no_grad()
@pytest.mark.parametrize("allocation", CLASSIFIERS)
@pytest.mark.parametrize("fixed", [0, 1, 2])
def test_a_fixed_choice_is_a_network_of_that_many_layers(allocation, fixed):
    model, (features, mask) = make(allocation), inputs([40, 25])
    model.classifier.gate[-1].weight.zero_()
    model.classifier.gate[-1].bias.copy_(torch.eye(3)[fixed])
    layers = model.depths[fixed]
    plain = TemporalZoom(
        6, 3, width=16, heads=2, window=5, deep_layers=max(layers, 1), distance_channels=2, zoom=4, depth=False,
        uncertainty=False,
    ).eval()  # fmt: skip
    if not layers:
        plain.allocation = "none"
    weights = {n: v for n, v in model.state_dict().items() if n in plain.state_dict()}
    plain.load_state_dict(weights)
    outputs = model(features, mask)
    assert_same(outputs, plain(features, mask), mask)
    assert torch.equal(outputs.depth.tau * max(model.depths), layers * mask.float())


@torch.no_grad()
@pytest.mark.parametrize("allocation", EXITS)
def test_an_exit_that_asks_for_certainty_is_the_full_network_and_one_that_asks_for_nothing_the_first(allocation):
    features, mask = inputs([40, 25])
    sure, easy = make(allocation, confidence=1.0), make(allocation, confidence=0.0)
    spy = Spy(easy)
    assert bool((sure(features, mask).depth.tau[mask] == 1).all())
    assert bool((easy(features, mask).depth.tau[mask] == 0.25).all()) and spy.tokens == [65]
    deepest, first = make(allocation, depths=(4,)), make(allocation, depths=(1,))
    for single, source, place in ((deepest, sure, 2), (first, easy, 0)):
        weights = {n.replace(f"exits.{place}.", "exits.0."): v for n, v in source.state_dict().items()}
        weights = {n: v[:1] if n == "log_temperature" else v for n, v in weights.items()}
        single.load_state_dict({n: weights[n] for n in single.state_dict()})
        assert_same(single(features, mask), source(features, mask), mask)


@torch.no_grad()
def test_a_temperature_changes_who_leaves_but_not_what_is_said():
    model, (features, mask) = make("calibrated-exit", confidence=0.8), inputs([60])
    before = model(features, mask)
    model.log_temperature.fill_(1.5)  # less sure
    after = model(features, mask)
    assert (after.depth.tau >= before.depth.tau).all() and after.depth.tau.sum() > before.depth.tau.sum()
    same = after.depth.tau == before.depth.tau
    torch.testing.assert_close(after.logits[same], before.logits[same])


def test_cold_gumbel_samples_of_clear_logits_are_their_argmax():
    torch.manual_seed(0)
    clear = 200 * torch.eye(4)[torch.randint(4, (500,))]
    assert torch.equal(gumbel_softmax(clear, 0.01), one_hot_of_highest(clear))


def test_gumbel_samples_follow_the_softmax_and_their_gradient_is_that_of_the_soft_ones():
    torch.manual_seed(0)
    logits = torch.tensor([0.5, -1.0, 1.5]).expand(40_000, 3).clone().requires_grad_()
    sample = gumbel_softmax(logits, 0.5)
    assert set(sample.detach().unique().tolist()) <= {0.0, 1.0} or torch.allclose(sample.sum(-1), torch.ones(40_000))
    torch.testing.assert_close(sample.mean(0), logits[0].softmax(-1), atol=0.01, rtol=0)
    torch.manual_seed(1)
    (first,) = torch.autograd.grad(gumbel_softmax(logits, 0.5)[:, 0].sum(), logits)
    torch.manual_seed(1)
    noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)))
    (second,) = torch.autograd.grad(((logits + noise) / 0.5).softmax(-1)[:, 0].sum(), logits)
    torch.testing.assert_close(first, second)


@given(st.floats(0.05, 0.95), st.booleans(), st.integers(0, 20))
@settings(max_examples=30)
def test_the_price_is_the_one_at_which_the_mean_depth_is_as_asked(share, sampled, seed):
    torch.manual_seed(seed)
    logits, layers = torch.randn(4000, 3), torch.tensor([0.0, 6.0, 9.0])
    dear = logits - price_for(logits, layers, 9 * share, sampled) * layers
    shares = dear.softmax(-1) if sampled else one_hot_of_highest(dear)
    assert float((shares * layers).sum(-1).mean()) == pytest.approx(9 * share, abs=0.05)


@pytest.mark.parametrize("allocation", ROUTERS)
@pytest.mark.parametrize("head", HEADS)
def test_in_training_what_counts_is_the_choice_and_every_parameter_learns(allocation, head):
    model, (features, mask) = make(allocation, head=head).train(), inputs([50, 40])
    outputs = model(features, mask)
    routing = outputs.depth.routing
    loss = sum(getattr(outputs, name)[mask].square().sum() for name in OUTPUTS)
    if routing is not None:
        paths = routing.paths()
        assert len(paths) == len(model.depths)
        chosen = routing.chosen.argmax(-1)
        for k, path in enumerate(paths):
            assert_same(outputs, path, mask & (chosen == k))
            loss = loss + sum(getattr(path, name)[mask].square().sum() for name in OUTPUTS)
        loss = loss + routing.logits.sum() if routing.logits.requires_grad else loss
        loss = loss if routing.temperatures is None else loss + routing.temperatures.sum()
    loss.backward()
    silent = [n for n, p in model.named_parameters() if p.grad is None]
    assert silent == []


def test_training_keeps_the_mean_depth_at_the_share():
    model = make("gumbel", share=0.2).train()
    for seed in range(40):
        outputs = model(*inputs([200, 200], seed))
    assert float(outputs.depth.tau.mean()) == pytest.approx(0.2, abs=0.08)
    with torch.no_grad():
        model.eval()
        found = [float(model(*inputs([200], seed)).depth.tau.mean()) for seed in range(10)]
    assert sum(found) / 10 == pytest.approx(0.2, abs=0.08)


def test_they_are_chosen_by_a_setting_and_need_the_zoom():
    assert isinstance(build_tzn(None, 6, 3, width=16, heads=2, allocation="mixture"), RoutedZoom)
    assert type(build_tzn(None, 6, 3, width=16, heads=2)) is TemporalZoom
    with pytest.raises(ValueError, match=r"discrete needs model\.zoom"):
        make("discrete", zoom=0)
