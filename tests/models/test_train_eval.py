"""What runs at inference is what was trained: masks, gates and combinations are the same in both modes."""

import itertools

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from temporalzoom.models import Outputs, TemporalZoom, adaptive
from temporalzoom.models.packing import Packed

MODES = ["residual", "logits", "features", "layers"]
NAMES = ("logits", "offsets", "offset_log_variance", "distances", "distance_log_variance")


def make(seed: int = 0, **options) -> TemporalZoom:
    """A small network without dropout whose random weights all matter; about half the positions are active."""
    torch.manual_seed(seed)
    small = dict(width=16, heads=2, window=5, deep_window=7, deep_layers=3, shallow_layers=1, distance_channels=2)
    model = TemporalZoom(6, 3, **(small | dict(dropout=0.0) | options))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        if model.depth is not None:
            model.depth.gate[-1].weight.normal_(std=1.0)
        if model.depth is not None:
            features, mask = inputs([60, 60])
            model.threshold.fill_(model.train()(features, mask).depth.logits.median())
            model.batches.fill_(1000)  # the threshold has been found
    return model


def inputs(lengths: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), 6) * mask[..., None], mask


def assert_same(first: Outputs, second: Outputs, where: torch.Tensor) -> None:
    """Where `where`, (B, T); at coarser levels wherever there is no padding."""
    for name in NAMES:
        rows = where
        if first.points is not None and getattr(first, name).shape[1] > where.shape[1]:
            rows = torch.cat((where, first.points.valid[:, where.shape[1] :]), 1)
        torch.testing.assert_close(getattr(first, name)[rows], getattr(second, name)[rows], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zoom", [0, 4])
@pytest.mark.parametrize("head", ["mlp", "convolution"])
def test_training_and_inference_agree(mode, zoom, head, monkeypatch):
    """Every variant, whichever other positions are tried in training."""
    monkeypatch.setattr(adaptive, "gumbel_noise", torch.zeros_like)
    features, mask = inputs([40, 23])
    variants = itertools.product((1, 3), (False, True), ("none", "hold", "deadzone"), (None, 5))
    for number, (levels, pruning, hysteresis, window) in enumerate(variants):
        options = dict(levels=levels, pruning=pruning, hysteresis=hysteresis, window=window, keep=0.7, protect=1)
        explore, supervision = (1.0, 0.4, 0.0)[number % 3], ("value", "penalty")[number % 2]
        model = make(number, combine=mode, zoom=zoom, head=head, explore=explore, supervision=supervision, **options)
        trained = model.train()(features, mask)
        with torch.no_grad():
            found = model.eval()(features, mask)
        assert torch.equal(trained.depth.active[mask], found.depth.active[mask]), options
        assert 0 < found.depth.active.sum() < mask.sum()
        assert_same(trained, found, mask)


@pytest.mark.parametrize("window", [None, 5])
def test_tokens_that_are_only_tried_are_seen_by_no_other(window):
    """Without zoom, active tokens attend to each other: those that are tried for their value must not change them."""
    features, mask = inputs([50, 31])
    few, all_of_them = (make(zoom=0, window=window, explore=e).train()(features, mask) for e in (0.0, 1.0))
    assert torch.equal(few.depth.active, all_of_them.depth.active) and all_of_them.depth.tried[mask].all()
    assert_same(few, all_of_them, mask)
    torch.testing.assert_close(
        few.depth.deep.logits[few.depth.active], all_of_them.depth.deep.logits[few.depth.active], rtol=1e-4, atol=1e-4
    )


def test_the_value_of_a_tried_position_is_that_of_joining_the_active_ones():
    """Without zoom: the deep output of a tried position is what it would be, were it active beside the others."""
    features, mask = inputs([30])
    model = make(zoom=0, window=None, deep_layers=1).train()
    outputs = model(features, mask)
    active = outputs.depth.active
    # Away from active ones: the convolution before attention would let these see it.
    near = torch.nn.functional.max_pool1d(active[None].float(), 3, 1, 1)[0, 0] > 0
    tried = int((~near).nonzero()[0])
    joined = active.clone()
    joined[0, tried] = True
    with torch.no_grad():
        model.eval()
        tokens = model.shallow(model.projection(features, mask), adaptive.TokenLayout.build(mask, model.window))
        packed = Packed.of(joined, None)
        deep = model.deep[0](packed.gather(tokens), packed.layout)
        found = model.heads.deeper(deep, outputs).logits[packed.index == tried]
    torch.testing.assert_close(outputs.depth.deep.logits[0, tried], found[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("supervision", ["value", "penalty"])
def test_gated_layers_do_not_gate_what_is_only_tried(supervision):
    """Its value is that of the whole deep path: its own low tau would hide it, and depth could never pay there."""
    features, mask = inputs([60, 44])
    gated, whole = (
        make(combine=mode, zoom=4, supervision=supervision).train()(features, mask).depth
        for mode in ("layers", "residual")
    )
    tried = gated.tried & ~gated.active
    assert torch.equal(gated.active, whole.active) and tried.sum() > 10
    for name in NAMES:
        torch.testing.assert_close(
            getattr(gated.deep, name)[tried], getattr(whole.deep, name)[tried], rtol=1e-4, atol=1e-4
        )


@torch.no_grad()
def test_logits_are_blended_after_layer_norm():
    """The paper's appendix: (1 - tau) LayerNorm(shallow) + tau LayerNorm(deep), at all positions and levels."""
    features, mask = inputs([60])
    model = make(combine="logits", zoom=4, levels=3).train()
    outputs = model(features, mask)
    plain = make(combine="residual", zoom=4, levels=3).train()
    plain.load_state_dict({k: v for k, v in model.state_dict().items() if "logit_norm" not in k})
    plain.threshold.copy_(model.threshold)
    raw = plain.eval()(features, mask)
    tau = (outputs.depth.tau * outputs.depth.active).unsqueeze(-1)
    blend = (1 - tau) * outputs.depth.shallow.logits + tau * outputs.depth.deep.logits
    torch.testing.assert_close(outputs.logits[:, :60], blend, rtol=1e-4, atol=1e-4)
    unit = (outputs.logits[:, 60:] - model.heads.logit_norm.bias) / model.heads.logit_norm.weight
    expected = torch.nn.functional.layer_norm(raw.logits[:, 60:], (3,))
    torch.testing.assert_close(unit, expected, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match=r"tzn\.combine: logits normalizes over the classes"):
        TemporalZoom(6, 1, width=16, combine="logits")


@torch.no_grad()
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("zoom", [0, 4])
@pytest.mark.parametrize("hysteresis", ["none", "hold"])
def test_a_whole_budget_goes_deep_everywhere(mode, zoom, hysteresis):
    """Pruning ranks positions; it does not keep a budget from being spent."""
    features, mask = inputs([50, 33])
    options = dict(combine=mode, zoom=zoom, hysteresis=hysteresis, budget=1.0)
    pruned = make(pruning=True, keep=0.3, **options).eval()
    outputs = pruned(features, mask)
    assert torch.equal(outputs.depth.active, mask)
    assert (outputs.depth.tau[mask] >= 0.5).all()
    pruned.importance = None
    assert_same(outputs, pruned(features, mask), mask)


@torch.no_grad()
def test_a_budget_is_spent_on_what_was_kept_first():
    model = make(pruning=True, keep=0.5, budget=0.7, distance_channels=None).eval()
    features, mask = inputs([40])
    depth = model(features, mask).depth
    model.budget = 0.4
    fewer = model(features, mask).depth
    assert int(depth.active.sum()) == 28 and int(fewer.active.sum()) == 16
    assert (fewer.kept | ~fewer.active).all() and (depth.active | ~fewer.kept).all()


@torch.no_grad()
@pytest.mark.parametrize("mode", ["residual", "layers"])
@pytest.mark.parametrize("execution", ["sparse", "dense"])
def test_global_attention_costs_each_sequence_its_own(mode, execution):
    """Eight equal sequences cost eight times one, not the square."""
    features, mask = inputs([120])
    model = make(window=None, zoom=0, combine=mode, execution=execution).eval()

    def flops(batch: int) -> int:
        with FlopCounterMode(display=False) as counter:
            model(features.expand(batch, -1, -1), mask.expand(batch, -1))
        return counter.get_total_flops()

    assert flops(8) == pytest.approx(8 * flops(1), rel=0.02)


def test_rows_are_selected_in_order():
    keep = torch.tensor([[True, False, True, True], [False, False, True, False]])
    packed = Packed.of(keep, None, by_sequence=True)
    assert packed.index[packed.mask].tolist() == [0, 2, 3, 6] and packed.positions[packed.mask].tolist() == [0, 2, 3, 2]
    fewer, chosen = packed.select(packed.mask & (packed.index != 0))
    assert fewer.index[fewer.mask].tolist() == [2, 3, 6]
    assert torch.equal(packed.index.flatten()[chosen.flatten()], fewer.index.flatten())


@pytest.mark.parametrize("mode", ["residual", "logits", "features"])
@pytest.mark.parametrize("head", ["mlp", "convolution"])
def test_with_a_penalty_tau_learns_below_its_threshold_too(mode, head):
    """Straight-through: there depth adds nothing, but the loss tells what it would have added."""
    features, mask = inputs([40])
    outputs = make(combine=mode, head=head, zoom=4, supervision="penalty").train()(features, mask)
    outputs.depth.tau.retain_grad()
    outputs.logits.square().sum().backward()
    assert (outputs.depth.tau.grad[mask & ~outputs.depth.active] != 0).all()
