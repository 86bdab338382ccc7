"""Adaptive depth: what is pruned never runs, and what runs gives what dense execution gives."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.models import Outputs, TemporalZoom
from temporalzoom.models.depth import (
    RunningStandard,
    Uncertainty,
    dead_zone,
    gradient_magnitude,
    hold,
    keep_highest,
    near_crossings,
)
from temporalzoom.models.layers import TransformerLayer

MODES = ["residual", "logits", "features", "layers"]
HEADS = ["mlp", "convolution"]


def make(seed: int = 0, **options) -> TemporalZoom:
    """A small network with random weights; gates drawn wide, so that positions differ in depth."""
    torch.manual_seed(seed)
    settings = {"width": 16, "heads": 2, "window": 5, "deep_window": 7, "deep_layers": 3, "distance_channels": 2}
    model = TemporalZoom(6, 3, **(settings | options)).eval()
    with torch.no_grad():
        for gate in (model.depth and model.depth.gate, model.importance):
            if gate is not None:
                gate[-1].weight.normal_(std=3.0)
                gate[-1].bias.zero_()
        if options.get("head") == "convolution":  # corrections start from zero: here they are to matter
            for head in (model.heads.classes, model.heads.box):
                head[-1].weight.normal_(std=0.3)
        if model.depth is not None:  # once in training, or its evidence is of any scale
            model.depth.train()
            model(*inputs([200], seed))
        model.threshold.fill_(-0.5)
    return model.eval()


def inputs(lengths: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), 6) * mask[..., None], mask


def assert_same(first: Outputs, second: Outputs, where: torch.Tensor, tolerance: float = 1e-4) -> None:
    for name in ("logits", "offsets", "offset_log_variance", "distances", "distance_log_variance"):
        torch.testing.assert_close(
            getattr(first, name)[where], getattr(second, name)[where], rtol=tolerance, atol=tolerance
        )


class Spy:
    """Counts the tokens that enter each layer of the deep path."""

    def __init__(self, model: TemporalZoom) -> None:
        self.tokens: list[int] = []
        for layer in model.deep:
            layer.register_forward_pre_hook(lambda _, arguments: self.tokens.append(arguments[0].shape[1]))


@torch.no_grad()
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zoom", [0, 4])
@pytest.mark.parametrize("head", HEADS)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=8), st.floats(-9.0, 9.0), st.integers(0, 5))
@settings(max_examples=20)
def test_sparse_equals_dense(mode, zoom, head, lengths, threshold, seed):
    sparse, dense = (make(seed, combine=mode, zoom=zoom, head=head, execution=e) for e in ("sparse", "dense"))
    for model in (sparse, dense):
        model.threshold.fill_(threshold)
    features, mask = inputs(lengths, seed)
    first, second = sparse(features, mask), dense(features, mask)
    torch.testing.assert_close(first.depth.active, second.depth.active)
    assert_same(first, second, mask)


@torch.no_grad()
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 1000, 5000])
@pytest.mark.parametrize("budget", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("zoom", [0, 24])
def test_sparse_equals_dense_at_any_length_and_share(mode, length, budget, zoom):
    features, mask = inputs([length])
    models = [make(combine=mode, zoom=zoom, budget=budget, pruning=False, execution=e) for e in ("sparse", "dense")]
    outputs = [model(features, mask) for model in models]
    assert outputs[0].depth.active.float().mean() == pytest.approx(budget, abs=1 / length)
    assert_same(outputs[0], outputs[1], mask)


@torch.no_grad()
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("head", HEADS)
def test_a_batch_gives_what_its_sequences_give_alone(mode, head):
    lengths = [40, 7, 1, 63]
    model = make(combine=mode, window=5, head=head)
    features, mask = inputs(lengths)
    together = model(features, mask)
    for row, length in enumerate(lengths):
        alone = model(features[row : row + 1, :length], mask[row : row + 1, :length])
        for name in ("logits", "offsets", "distances"):
            torch.testing.assert_close(
                getattr(together, name)[row, :length], getattr(alone, name)[0], rtol=1e-4, atol=1e-4
            )


@torch.no_grad()
@pytest.mark.parametrize("mode", MODES)
def test_with_zoom_a_position_s_depth_changes_nobody_else(mode):
    """The outputs at a position depend on its own depth only: the budget is a dial, not another network."""
    features, mask = inputs([80, 50])
    models = [make(combine=mode, zoom=6, budget=b, tau_min=0.0, pruning=False) for b in (0.3, 1.0)]
    some, all_ = (model(features, mask) for model in models)
    assert 0 < some.depth.active.sum() < mask.sum()
    assert_same(some, all_, some.depth.active)


@torch.no_grad()
@given(st.integers(1, 60), st.floats(0.0, 1.0))
@settings(max_examples=30)
def test_a_budget_gives_its_positions_at_least_half_their_depth(length, budget):
    model = make(budget=budget, pruning=False, hysteresis="none")
    depth = model(*inputs([length])).depth
    assert int(depth.active.sum()) == int(budget * length + 1e-9)
    assert (depth.tau[depth.active] >= 0.5).all() and (depth.tau[~depth.active] <= 0.5).all()


@torch.no_grad()
@pytest.mark.parametrize("zoom", [0, 4])
def test_global_attention_keeps_sequences_apart(zoom):
    model = make(window=None, deep_window=None, zoom=zoom)
    features, mask = inputs([20, 12])
    together = model(features, mask)
    alone = model(features[1:, :12], mask[1:, :12])
    torch.testing.assert_close(together.logits[1, :12], alone.logits[0], rtol=1e-4, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("mode", MODES)
def test_only_active_tokens_enter_the_deep_path(mode):
    model = make(combine=mode, tau_min=0.3)
    spy = Spy(model)
    features, mask = inputs([200, 150])
    active = model(features, mask).depth.active
    assert 0 < active.sum() < mask.sum()
    assert spy.tokens[0] <= active.sum() and spy.tokens == sorted(spy.tokens, reverse=True)
    if mode == "layers":
        assert spy.tokens[-1] < spy.tokens[0]
    else:
        assert spy.tokens == [int(active.sum())] * 3


@torch.no_grad()
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("head", HEADS)
def test_no_depth_at_all_is_the_shallow_path(mode, head):
    model = make(combine=mode, budget=0.0, head=head)
    spy = Spy(model)
    features, mask = inputs([50])
    outputs = model(features, mask)
    from temporalzoom.models.layers import TokenLayout

    tokens = model.shallow(model.projection(features, mask), TokenLayout.build(mask, model.window))
    assert_same(outputs, model.heads.normalized(model.heads(model.levels(tokens, mask)).finest), mask, tolerance=0)
    assert spy.tokens == []


@torch.no_grad()
@pytest.mark.parametrize("layers", [0, 2])
def test_before_training_depth_corrects_no_class_and_no_box(layers):
    torch.manual_seed(0)
    model = TemporalZoom(6, 3, width=16, heads=2, distance_channels=2, head="convolution", shallow_layers=layers)
    features, mask = inputs([70])
    for budget, same_distances in ((0.0, True), (0.5, False)):
        model.eval().budget = budget
        outputs = model(features, mask)
        if budget == 0:
            shallow = outputs
        torch.testing.assert_close(outputs.logits, shallow.logits, rtol=0, atol=0)
        torch.testing.assert_close(outputs.offsets, shallow.offsets, rtol=1e-6, atol=0)
        assert torch.equal(outputs.distances, shallow.distances) == same_distances


@torch.no_grad()
def test_pruning_keeps_the_share_and_the_predicted_boundaries():
    model = make(pruning=True, keep=0.5, protect=2)
    features, mask = inputs([100, 80])
    outputs = model(features, mask)
    from temporalzoom.models.layers import TokenLayout

    tokens = model.shallow(model.projection(features, mask), TokenLayout.build(mask, model.window))
    protected = near_crossings(model.heads(model.levels(tokens, mask)).finest.distances, 2) & mask
    assert (outputs.depth.kept | ~protected).all()
    assert ((outputs.depth.kept & ~protected).sum(1) <= torch.tensor([50, 40])).all()
    assert not (outputs.depth.kept & ~mask).any()
    assert (outputs.depth.kept | ~outputs.depth.active).all()


@torch.no_grad()
def test_the_oracle_protects_true_boundaries():
    model = make(pruning=True, keep=0.1)
    features, mask = inputs([60])
    truth = torch.zeros_like(mask)
    truth[0, 30:35] = True
    assert model(features, mask, truth).depth.kept[0, 30:35].all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("off", ["depth", "uncertainty", "pruning"])
def test_every_component_can_be_switched_off_and_every_parameter_learns(mode, off):
    model = make(combine=mode, **({"pruning": True} | {off: False})).train()
    features, mask = inputs([70, 50])
    outputs = model(features, mask)
    loss = sum(x[mask].square().sum() for x in (outputs.logits, outputs.offsets, outputs.distances))
    (loss + outputs.depth.log_variance.sum() + outputs.depth.logits.sum() + outputs.depth.importance.sum()).backward()
    without_gradient = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not [name for name in without_gradient if "log_variance" not in name], without_gradient


def test_recomputing_the_deep_path_changes_no_gradient():
    features, mask = inputs([70])
    gradients = []
    for recompute in (False, True):
        model = make(checkpoint_deep=recompute, dropout=0.0).train()
        torch.manual_seed(1)
        outputs = model(features, mask)
        outputs.logits.square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_evidence_is_standardized_by_the_valid_positions_of_training():
    torch.manual_seed(0)
    standard, mask = RunningStandard(2), torch.rand(4, 300) < 0.7
    scale, middle = torch.tensor([3.0, 0.1]), torch.tensor([50.0, -2.0])

    def batch() -> torch.Tensor:
        values = torch.randn(4, 300, 2) * scale + middle
        return values.masked_fill(~mask.unsqueeze(-1), 1e6)  # padding may hold anything

    for _ in range(40):
        standard(batch(), mask)
    standard.eval()
    result = standard(batch(), mask)[mask]
    torch.testing.assert_close(result.mean(0), torch.zeros(2), atol=0.15, rtol=0)
    torch.testing.assert_close(result.std(0), torch.ones(2), atol=0.15, rtol=0)
    before = standard.mean.clone()
    standard(batch() + 9, mask)
    assert torch.equal(standard.mean, before)  # only training changes it


@torch.no_grad()
@pytest.mark.parametrize("context", ["convolution", "attention"])
def test_local_context_sees_its_positions_and_no_padding(context):
    torch.manual_seed(0)
    module, tokens, change = Uncertainty(8, 8, context).eval(), torch.randn(1, 30, 8), torch.zeros(1, 30)
    mask = torch.arange(30)[None] < 25
    before = module(tokens, change, mask)
    tokens[0, 15] += 5.0
    tokens[0, 27] += 5.0  # padding
    moved = (module(tokens, change, mask) - before)[0, :25].abs() > 1e-6
    reach = 3 if context == "convolution" else 9  # three layers, each three positions farther
    assert moved[15 - reach : min(15 + reach + 1, 25)].all() or context == "attention"
    assert not moved[: 15 - reach].any() and not moved[15 + reach + 1 :].any()


def test_the_threshold_finds_the_share():
    model = make(share=0.25, warmup=5, explore=0.0, pruning=False, hysteresis="none").train()
    features, mask = inputs([200, 200])
    for _ in range(80):
        outputs = model(features, mask)
    assert outputs.depth.active.float().mean() == pytest.approx(0.25, abs=0.02)
    assert int(model.batches) == 80


@given(
    st.lists(st.sampled_from([0.0, 0.02, 0.04, 0.05, 0.1, 0.3, 0.34, 0.5, 1.0]), min_size=1, max_size=70),
    st.floats(0.01, 0.3),
    st.booleans(),
)
def test_hold_keeps_the_last_value_within_the_band(values, band, smooth):
    first = torch.tensor(values, dtype=torch.float64)
    first = first.cumsum(0) / len(values) if smooth else first
    tau = torch.stack((first, first.flip(0)))  # rows are held each on their own
    expected = tau.tolist()
    for row in expected:
        for index in range(1, len(row)):
            if abs(row[index] - row[index - 1]) < band:
                row[index] = row[index - 1]
    held = hold(tau, band)
    assert torch.equal(held, torch.tensor(expected, dtype=torch.float64))
    steps = held.diff(dim=1).abs()
    assert ((steps == 0) | (steps >= band - 1e-12)).all()


def test_hysteresis_lets_gradients_through():
    for steady in (hold, dead_zone):
        tau = torch.tensor([[0.5, 0.51, 0.9]], requires_grad=True)
        steady(tau, 0.05).sum().backward()
        assert (tau.grad == 1).all()


def test_dead_zone():
    tau = torch.tensor([[0.2, 0.46, 0.5, 0.54, 0.56]])
    torch.testing.assert_close(dead_zone(tau, 0.05), torch.tensor([[0.2, 0.5, 0.5, 0.5, 0.56]]))


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30), st.integers(0, 4))
def test_near_crossings_marks_rising_ones_only(values, reach):
    marked = near_crossings(torch.tensor(values, dtype=torch.float64)[None, :, None], reach)[0]
    rising = [t for t in range(len(values) - 1) if values[t] < 0 <= values[t + 1]]
    expected = [any(t - reach <= p <= t + 1 + reach for t in rising) for p in range(len(values))]
    assert marked.tolist() == expected


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.floats(0, 1))
def test_keep_highest_keeps_the_first_of_the_best(scores, share):
    mask = torch.ones(1, len(scores), dtype=torch.bool)
    kept = keep_highest(torch.tensor([scores], dtype=torch.float32), mask, share)[0]
    count = int(len(scores) * share + 1e-9)
    best = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count]
    assert kept.nonzero().squeeze(1).tolist() == sorted(best)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(0, 3))
def test_gradient_magnitude_reflects_at_the_edges(lengths, seed):
    features, mask = inputs(lengths, seed)
    result = gradient_magnitude(features, mask)
    for row, length in enumerate(lengths):
        x = features[row, :length]
        sizes = []
        for t in range(length):
            after = t + 1 if t + 1 < length else max(length - 2, 0)
            before = t - 1 if t > 0 else min(1, length - 1)
            sizes.append((x[after] - x[before]).norm().item())
        mean = max(sum(sizes) / length, 1e-6)
        torch.testing.assert_close(result[row, :length], torch.tensor(sizes) / mean, rtol=1e-4, atol=1e-5)


def test_a_layer_on_packed_tokens_is_a_layer_on_masked_ones():
    """The building block of sparse execution: dropping tokens is the same as masking them."""
    from temporalzoom.models.packing import Packed

    torch.manual_seed(0)
    layer = TransformerLayer(16, 2, 5).eval()
    tokens, active = torch.randn(3, 50, 16), torch.rand(3, 50) < 0.4
    sparse, dense = Packed.of(active, 5), Packed.of(active, 5, dense=True)
    few, all_of_them = layer(sparse.gather(tokens), sparse.layout), layer(dense.gather(tokens), dense.layout)
    torch.testing.assert_close(few[0], all_of_them[0, dense.mask[0]], rtol=1e-5, atol=1e-5)


def test_gradients_are_the_same_twice_on_two_threads():
    """Indices that repeat must be added up in one order: training is reproducible bit for bit."""
    features, mask = inputs([256] * 8)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        gradients = []
        for _ in range(6):
            model = make(width=64, heads=4, deep_window=32, dropout=0.0).train()
            torch.manual_seed(1)
            outputs = model(features, mask)
            (outputs.logits.square().sum() + outputs.distances.square().sum()).backward()
            gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    finally:
        torch.set_num_threads(before)
    for other in gradients[1:]:
        assert all(torch.equal(a, b) for a, b in zip(gradients[0], other, strict=True))
