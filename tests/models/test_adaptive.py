"""Adaptive depth on every trunk, `tzn`'s own and the field's detectors: what is skipped never runs, and what runs gives
what dense execution gives. What only `tzn` has is in test_tzn."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.config import load_config
from temporalzoom.metrics.cost import count_flops
from temporalzoom.models import AdaptiveDepth, Outputs, TemporalZoom, build_model
from temporalzoom.models.layers import Branch
from temporalzoom.runs.network import model_from_config
from temporalzoom.timegrid import TimeGrid

DETECTORS = ("actionformer", "tridet", "temporalmaxer")
NAMES = ("logits", "offsets", "offset_log_variance", "distances", "distance_log_variance")
OWN = {
    "tzn": {"window": 5, "shallow_layers": 1, "head": "convolution", "dropout": 0.0},
    "actionformer": {"window": 3, "drop_path": 0.0},
    "tridet": {"bins": 4, "drop_path": 0.0},
    "temporalmaxer": {},
}
each = pytest.mark.parametrize("trunk", OWN)
each_detector = pytest.mark.parametrize("trunk", DETECTORS)


def make(trunk: str, seed: int = 0, **options) -> AdaptiveDepth:
    """A small network with random weights that all matter; about half the positions are active."""
    torch.manual_seed(seed)
    small = {"width": 16, "heads": 2, "levels": 3, "deep_layers": 2, "zoom": 4, "distance_channels": 2}
    model = build_model(trunk, 6, 3, **(small | OWN[trunk] | options))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
        model.depth.gate[-1].weight.normal_(std=1.0)
        model.threshold.fill_(model.train()(*inputs([60, 60])).depth.logits.median())
        model.batches.fill_(1000)  # the threshold has been found
    return model.eval()


def inputs(lengths: list[int], seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), max(lengths), 6) * mask[..., None], mask


def assert_same(first: Outputs, second: Outputs, tolerance: float = 1e-4) -> None:
    """At all points and positions that are not padding."""
    for name in NAMES:
        one, other = getattr(first, name), getattr(second, name)
        if one is None:
            assert other is None
            continue
        valid = first.points.valid[:, : one.shape[1]]
        torch.testing.assert_close(one[valid], other[valid], rtol=tolerance, atol=tolerance)


@torch.no_grad()
@each
@given(st.lists(st.integers(1, 90), min_size=1, max_size=5), st.floats(-3.0, 3.0), st.integers(0, 5), st.booleans())
@settings(max_examples=15)
def test_sparse_equals_dense(trunk, lengths, threshold, seed, bdr):
    model = make(trunk, seed, distance_channels=2 if bdr else None)
    model.threshold.fill_(threshold)
    features, mask = inputs(lengths, seed)
    sparse = model(features, mask)
    model.execution = "dense"
    dense = model(features, mask)
    assert torch.equal(sparse.depth.active, dense.depth.active)
    assert_same(sparse, dense)


@torch.no_grad()
@each
@pytest.mark.parametrize("length", [1, 2, 33, 1000])
@pytest.mark.parametrize("budget", [0.0, 0.3, 1.0])
def test_a_budget_is_the_share_that_runs(trunk, length, budget):
    model = make(trunk, budget=budget)
    entered: list[int] = []
    for layer in model.deep:
        layer.register_forward_pre_hook(lambda _, arguments: entered.append(arguments[0].shape[1]))
    depth = model(*inputs([length])).depth
    count = int(budget * length + 1e-9)
    assert int(depth.active.sum()) == count and entered == [count] * (2 if count else 0)


@torch.no_grad()
@each
def test_a_batch_gives_what_its_sequences_give_alone(trunk):
    lengths, model = [40, 7, 1, 63], make(trunk)
    features, mask = inputs(lengths)
    together = model(features, mask)
    for row, length in enumerate(lengths):
        alone = model(features[row : row + 1, :length], mask[row : row + 1, :length])
        valid = together.points.valid[row]
        for name in ("logits", "offsets"):
            found = getattr(together, name)[row, valid]
            torch.testing.assert_close(found, getattr(alone, name)[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(together.distances[row, :length], alone.distances[0], rtol=1e-4, atol=1e-4)


@each
def test_training_and_inference_agree(trunk):
    model, (features, mask) = make(trunk), inputs([40, 23])
    for module in model.deep.modules():
        if isinstance(module, Branch):  # stochastic depth is for training alone
            module.drop_path = 0.0
    trained = model.train()(features, mask)
    with torch.no_grad():
        found = model.eval()(features, mask)
    assert torch.equal(trained.depth.active[mask], found.depth.active[mask])
    assert 0 < found.depth.active.sum() < mask.sum()
    assert_same(trained, found)


@each
def test_every_weight_gets_a_gradient(trunk):
    model = make(trunk).train()
    outputs = model(*inputs([40, 40]))
    deep, depth = outputs.depth.deep, outputs.depth
    parts = (outputs.logits, outputs.offsets, outputs.distances, outputs.distance_log_variance)
    parts += (deep.logits, deep.offsets, depth.logits, depth.log_variance)
    parts += () if outputs.offset_log_variance is None else (outputs.offset_log_variance, deep.offset_log_variance)
    sum(part.square().sum() for part in parts).backward()
    assert [key for key, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0] == []


# On a detector


@torch.no_grad()
@each_detector
@pytest.mark.parametrize("channels", [None, 2])
def test_the_detector_stays_as_it_was(trunk, channels):
    """Without depth, and before training with it, its classes and boxes are those of the plain detector."""
    torch.manual_seed(0)
    small = {"width": 16, "levels": 3} | OWN[trunk] | ({"heads": 2} if trunk == "actionformer" else {})
    plain = build_model(trunk, 6, 3, **small).eval()
    zoomed = build_model(
        trunk, 6, 3, **(small | {"heads": 2, "deep_layers": 2, "zoom": 4, "distance_channels": channels})
    ).eval()
    zoomed.trunk.detector.load_state_dict(plain.state_dict())
    features, mask = inputs([50, 31])
    before = plain(features, mask)
    for budget in (0.0, 0.5):
        zoomed.budget = budget
        after = zoomed(features, mask)
        torch.testing.assert_close(after.logits, before.logits, rtol=0, atol=0)
        torch.testing.assert_close(after.offsets, before.offsets, rtol=1e-6, atol=0)
        assert after.depth.active.any() == (budget > 0) and (after.distances is None) == (channels is None)
        for name, values in vars(before.points).items():
            assert torch.equal(values, getattr(after.points, name)), name


@torch.no_grad()
@each_detector
def test_depth_changes_the_finest_level_where_it_is_active_alone(trunk):
    model, (features, mask) = make(trunk), inputs([50])
    outputs = []
    for budget in (0.0, 0.4):
        model.budget = budget
        outputs.append(model(features, mask))
    none, some = outputs
    active = some.depth.active[0]
    multiplied = active & (none.offsets[0, :50].flatten(1) > 0).any(1)  # an offset of zero stays zero
    for name, expected in (("logits", active), ("offsets", multiplied)):
        changed = (getattr(some, name) != getattr(none, name))[0].flatten(1).any(1)
        assert torch.equal(changed[:50], expected) and not changed[50:].any(), name


@torch.no_grad()
def test_tridet_s_boxes_are_corrected_alike_for_all_classes():
    model, (features, mask) = make("tridet"), inputs([50])
    model.budget = 0.0
    before = model(features, mask).offsets
    model.budget = 1.0
    depth = model.train()(features, mask).depth
    ratio = depth.deep.offsets / depth.shallow.offsets
    assert before.shape == (1, 50 + 25 + 13, 3, 2)
    torch.testing.assert_close(ratio, ratio[:, :, :1].expand_as(ratio), rtol=1e-4, atol=1e-4)
    assert ratio[:, :, 0].std() > 0.01


@each_detector
def test_distances_of_all_levels_are_for_training_only(trunk):
    model, (features, mask) = make(trunk, distances_on_all_levels=True), inputs([20])
    assert model(features, mask).level_distances is None
    outputs = model.train()(features, mask)
    assert outputs.level_distances.shape == (1, 20 + 10 + 5, 2)
    assert torch.equal(outputs.level_distances[:, :20], outputs.distances)


@torch.no_grad()
@each_detector
def test_a_single_level(trunk):
    outputs = make(trunk, levels=1, distances_on_all_levels=True).train()(*inputs([20, 11]))
    assert outputs.points.positions.tolist() == list(range(20)) and outputs.logits.shape == (2, 20, 3)


@each_detector
def test_what_depth_costs_is_a_part_of_its_own(trunk):
    features = inputs([80])[0][0].numpy()
    nothing, some = (count_flops(make(trunk, budget=budget), features).parts for budget in (0.0, 0.25))
    parts = {"trunk", "deep", "zoom", "heads", "uncertainty", "depth"}
    assert set(nothing) == set(some) == parts
    assert (
        nothing["deep"] == 0 < some["deep"] and nothing["heads"] < some["heads"] and nothing["trunk"] == some["trunk"]
    )


@each_detector
def test_settings_reach_the_network(trunk):
    words = f"model.name={trunk} model.deep_layers=3 model.zoom=5 model.share=0.3 model.width=16 model.heads=2"
    model = model_from_config(load_config(None, words.split()), 6, 3, TimeGrid(4, 8, 25))
    assert isinstance(model, AdaptiveDepth) and len(model.deep) == 3 and model.zoom.reach == 5
    assert (model.share, model.budget, model.has_budget, model.predictor) == (0.3, None, True, model.depth)
    plain = model_from_config(load_config(None, [f"model.name={trunk}", "model.width=16"]), 6, 3, TimeGrid(4, 8, 25))
    assert not isinstance(plain, AdaptiveDepth)


# Stored weights

KEYS = """
batches threshold
deep.0: feed_forward.0.bias feed_forward.0.weight feed_forward.2.bias feed_forward.2.weight feed_forward_branch.scale
  feed_forward_norm.bias feed_forward_norm.weight look.distance_bias look.output.bias look.output.weight look.query.bias
  look.query.weight look_branch.scale look_norm.bias look_norm.weight
depth: gate.0.bias gate.0.weight gate.2.bias gate.2.weight standard.batches standard.mean standard.square
heads.all_levels: box.hidden.0.weight box.last.bias box.last.weight box.norms.0.bias box.norms.0.weight
  classes.hidden.0.weight classes.last.bias classes.last.weight classes.norms.0.bias classes.norms.0.weight
  first_convolution.weight first_norm.bias first_norm.weight norms.0.bias norms.0.weight norms.1.bias norms.1.weight
heads: box.0.bias box.0.weight box.2.bias box.2.weight box.4.bias box.4.weight classes.0.bias classes.0.weight
  classes.2.bias classes.2.weight classes.4.bias classes.4.weight distance.body.0.bias distance.body.0.weight
  distance.body.2.bias distance.body.2.weight distance.last.bias distance.last.weight norm.bias norm.weight
importance: 0.bias 0.weight 2.bias 2.weight
projection: convolutions.0.bias convolutions.0.weight convolutions.1.bias convolutions.1.weight norms.0.bias
  norms.0.weight norms.1.bias norms.1.weight standard.factor standard.mean
shallow.layers.0: attention.distance_bias attention.output.bias attention.output.weight attention.query_key_value.bias
  attention.query_key_value.weight attention_branch.scale attention_norm.bias attention_norm.weight feed_forward.0.bias
  feed_forward.0.weight feed_forward.2.bias feed_forward.2.weight feed_forward_branch.scale feed_forward_norm.bias
  feed_forward_norm.weight mix.taps
uncertainty: context.mix.bias context.mix.weight head.0.bias head.0.weight head.2.bias head.2.weight narrow.bias
  narrow.weight
zoom: key_value.bias key_value.weight norm.bias norm.weight
"""
# Sum and sum of squares of each output, as the first version that stored weights under these names gives them.
SUMS = {
    "logits": (-8.83988, 5.07378),
    "offsets": (39.42685, 48.04944),
    "offset_log_variance": (26.12503, 36.09574),
    "distances": (-1.8775, 0.47292),
    "distance_log_variance": (8.39243, 2.99204),
}


def stored_keys() -> set[str]:
    found, prefix = set(), ""
    for line in KEYS.strip().splitlines():
        if not line.startswith(" "):
            head, _, rest = line.rpartition(": ")
            prefix, line = (f"{head}." if head else ""), rest
        found |= {prefix + word for word in line.split()}
    return found


@torch.no_grad()
def test_weights_that_were_stored_before_give_what_they_gave():
    model = TemporalZoom(
        3, 2, width=8, heads=2, window=4, shallow_layers=1, deep_layers=1, zoom=3, expansion=1, pruning=True,
        standardize=True, distance_channels=2, head="convolution", levels=2, layer_scale=0.1, budget=0.4,
    ).eval()  # fmt: skip
    weights = model.state_dict()
    assert set(weights) == stored_keys()
    for number, name in enumerate(sorted(weights)):
        value = weights[name]
        if value.is_floating_point():
            value.copy_(0.4 * torch.sin(0.7 * torch.arange(value.numel()) + number).view(value.shape))
    weights["projection.standard.factor"].fill_(1.0)
    weights["depth.standard.square"].fill_(2.0)
    model.load_state_dict(weights)
    features = torch.sin(0.9 * torch.arange(36.0).view(1, 12, 3))
    outputs = model(features, torch.ones(1, 12, dtype=torch.bool))
    assert outputs.depth.active[0].nonzero().squeeze(1).tolist() == [7, 8, 9, 10]
    for name, sums in SUMS.items():
        values = getattr(outputs, name).double()
        assert (float(values.sum()), float(values.square().sum())) == pytest.approx(sums, rel=1e-4), name
