"""The field's pyramid detectors: published size and cost, any length, padding that never leaks, BDR beside them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.metrics.cost import count_run
from temporalzoom.models import build_model
from temporalzoom.models.pyramid import Level, max_pooled
from temporalzoom.models.tridet import MaskedGroupNorm, neighbours

NAMES = ("actionformer", "tridet", "temporalmaxer")
SMALL = {"width": 16, "levels": 4}
ATTENTION = {"heads": 2, "window": 3}  # of actionformer

each = pytest.mark.parametrize("name", NAMES)


def small(name, **options):
    torch.manual_seed(0)
    own = ATTENTION if name == "actionformer" else {}
    return build_model(name, 5, 3, **(SMALL | own | options)).eval()


def everywhere(batch, length):
    return torch.ones(batch, length, dtype=torch.bool)


@pytest.mark.parametrize(
    ("name", "parameters", "macs", "tolerance"),
    [("actionformer", 29.2e6, 45.0e9, 0.02), ("tridet", 16.0e6, 43.7e9, 0.03), ("temporalmaxer", 7.1e6, 23.5e9, 0.02)],
)
def test_size_and_cost_are_the_published_ones(name, parameters, macs, tolerance):
    """At the THUMOS14 setting: 2048 channels, width 512, 2304 positions, 20 classes."""
    model = build_model(name, 2048, 20).eval()  # as published, by its name alone
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(parameters, rel=tolerance)
    features = torch.zeros(1, 2304, 2048)
    flops = count_run(model, lambda: model(features, everywhere(1, 2304))).total
    assert flops / 2 == pytest.approx(macs, rel=tolerance)


@each
@pytest.mark.parametrize("length", [1, 2, 3, 9, 33])
def test_any_length_gives_all_levels(name, length):
    outputs = small(name)(torch.randn(2, length, 5), everywhere(2, length))
    points = outputs.points
    expected = [float(p) for level in range(4) for p in range(0, length, 2**level)]
    assert points.positions.tolist() == expected
    assert outputs.logits.shape == (2, len(expected), 3)
    assert outputs.offsets.shape[:2] == (2, len(expected)) and outputs.offsets.shape[-1] == 2
    assert (outputs.offsets >= 0).all() and outputs.offsets.isfinite().all()
    assert outputs.distances is None and outputs.offset_log_variance is None


@each
@torch.no_grad()
def test_padding_never_leaks(name):
    model = small(name, distance_channels=2)
    features = torch.randn(1, 21, 5)
    alone = model(features, everywhere(1, 21))
    padded = torch.cat((features, torch.full((1, 12, 5), 7.0)), 1)
    both = model(padded, torch.arange(33)[None] < 21)
    valid = both.points.valid[0]
    torch.testing.assert_close(both.logits[:, valid], alone.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(both.offsets[:, valid], alone.offsets, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(both.distances[:, :21], alone.distances, atol=1e-5, rtol=1e-5)
    assert both.points.positions[valid].tolist() == alone.points.positions.tolist()


@each
def test_the_retrofit_leaves_the_detector_as_it_was(name):
    plain, retrofitted = small(name), small(name, distance_channels=2)
    weights = {key.removeprefix("detector."): value for key, value in retrofitted.state_dict().items()}
    assert {key: weights[key].shape for key in plain.state_dict()} == {
        key: value.shape for key, value in plain.state_dict().items()
    }
    plain.load_state_dict({key: weights[key] for key in plain.state_dict()})
    features, mask = torch.randn(1, 20, 5), everywhere(1, 20)
    before, after = plain(features, mask), retrofitted(features, mask)
    assert torch.equal(before.logits, after.logits) and torch.equal(before.offsets, after.offsets)
    assert after.distances.shape == (1, 20, 2)


def test_distances_of_all_levels_are_for_training_only():
    model = small("actionformer", distance_channels=2, distances_on_all_levels=True)
    features, mask = torch.randn(1, 20, 5), everywhere(1, 20)
    assert model(features, mask).level_distances is None
    outputs = model.train()(features, mask)
    assert outputs.level_distances.shape == (1, 20 + 10 + 5 + 3, 2)
    assert torch.equal(outputs.level_distances[:, :20], outputs.distances)


@each
def test_every_weight_gets_a_gradient(name):
    model = small(name, **({} if name == "temporalmaxer" else {"drop_path": 0.1, "layer_scale": 1e-4})).train()
    outputs = model(torch.randn(4, 40, 5), everywhere(4, 40))
    (outputs.logits.square().sum() + outputs.offsets.square().sum()).backward()
    without_gradient = [key for key, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not without_gradient


@each
def test_an_option_that_the_detector_does_not_have_is_refused(name):
    with pytest.raises(TypeError, match="head_form"):
        small(name, head_form="mlp")


@each
def test_a_depth_is_refused_in_words(name):
    with pytest.raises(ValueError, match=f"{name}-6: {name} has no number of layers"):
        build_model(f"{name}-6", 5, 3, **SMALL)


def test_the_window_is_the_reach_of_attention():
    """One layer at full resolution: two embedding convolutions, one depthwise, the window, the heads (3 x 3)."""
    model = small("actionformer", levels=1, stem_layers=1, window=3)
    features = torch.randn(1, 60, 5, requires_grad=True)
    model(features, everywhere(1, 60)).logits[0, 30].sum().backward()
    touched = features.grad[0].abs().sum(-1).nonzero().squeeze(1)
    reach = 2 + 1 + 3 + 3
    assert (touched.min(), touched.max()) == (30 - reach, 30 + reach)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-9, 9, width=32), st.booleans()), min_size=1, max_size=12))
def test_max_pooling_takes_the_highest_valid_neighbour(rows):
    values, mask = torch.tensor([v for v, _ in rows]), torch.tensor([m for _, m in rows])
    pooled = max_pooled(Level((values * mask)[None, :, None], mask[None]))[0, :, 0]
    for place in range(0, len(rows), 2):
        near = [float(values[t]) for t in range(max(place - 1, 0), min(place + 2, len(rows))) if mask[t]]
        assert pooled[place // 2] == (max(near) if mask[place] else 0.0)


def test_neighbours_stand_nearest_first_and_are_zero_beyond_the_ends():
    logits = torch.arange(1.0, 6.0)[None, :, None]  # one class, values 1 .. 5 at positions 0 .. 4
    before, after = (neighbours(logits, 2, after)[0, :, 0].tolist() for after in (False, True))
    assert before == [[1, 0, 0], [2, 1, 0], [3, 2, 1], [4, 3, 2], [5, 4, 3]]
    assert after == [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 0], [5, 0, 0]]


@torch.no_grad()
def test_trident_offsets_are_expectations_over_the_bins():
    """A boundary head that is sure of one place moves every point's boundary there."""
    model = small("tridet", levels=1, bins=4)
    model.center_head.last.weight.zero_(), model.center_head.last.bias.zero_()

    def sure(level):  # of a start at position 6, for all classes
        logits = torch.zeros(1, 12, 3)
        logits[:, 6] = 50.0
        return logits

    model.start_head.forward = model.end_head.forward = sure
    offsets = model(torch.randn(1, 12, 5), everywhere(1, 12)).offsets[0, :, 0]
    assert offsets[6:11, 0].tolist() == pytest.approx([0, 1, 2, 3, 4], abs=1e-4)
    assert offsets[2:7, 1].tolist() == pytest.approx([4, 3, 2, 1, 0], abs=1e-4)
    assert offsets[0, 0] == pytest.approx(2.0)  # nothing known: the middle of the bins


def test_group_norm_equals_the_library_without_padding():
    norm, library = MaskedGroupNorm(16, 4), torch.nn.GroupNorm(4, 16)
    tokens = torch.randn(3, 9, 16)
    expected = library(tokens.transpose(1, 2)).transpose(1, 2)
    torch.testing.assert_close(norm(tokens, everywhere(3, 9)), expected, atol=1e-5, rtol=1e-5)
