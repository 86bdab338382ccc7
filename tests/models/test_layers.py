"""Padding never leaks, packed and dense agree, the receptive field is exactly what it says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from temporalzoom.models import Uniform
from temporalzoom.models.inputs import Projection
from temporalzoom.models.layers import Branch, Encoder, NeighbourMix, Regularization, TokenLayout, TransformerLayer

WIDTH, HEADS, WINDOW = 16, 2, 4


def lengths_mask(lengths, longest):
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


def apply(module, tokens, mask):
    """A layer of any kind on (B, T, WIDTH)."""
    if isinstance(module, Projection | Uniform):
        result = module(tokens, mask)
        return (
            torch.cat([x for x in vars(result).values() if x is not None], -1)
            if isinstance(module, Uniform)
            else result
        )
    return module(tokens, TokenLayout.build(mask, WINDOW))


def roughened(module):
    """Random weights everywhere: initial zeros and ones would hide paths."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def modules():
    torch.manual_seed(0)
    options = {"width": WIDTH, "heads": HEADS, "depth": 2, "distance_channels": 2}
    return {
        "projection": Projection(WIDTH, WIDTH),
        "mix": NeighbourMix(WIDTH),
        "layer": TransformerLayer(WIDTH, HEADS, WINDOW),
        "encoder": Encoder(WIDTH, HEADS, 3, WINDOW),
        "uniform": Uniform(WIDTH, 3, window=WINDOW, **options),
        "uniform, global": Uniform(WIDTH, 3, window=None, **options),
    }


@pytest.mark.parametrize("name", modules())
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=3), st.integers(0, 40), st.integers(0, 10_000))
def test_padding_never_leaks(name, lengths, extra, seed):
    module, generator = roughened(modules()[name]), torch.Generator().manual_seed(seed)
    longest = max(lengths)
    tokens, mask = torch.randn(len(lengths), longest, WIDTH, generator=generator), lengths_mask(lengths, longest)
    outputs = apply(module, tokens, mask)

    longer = torch.cat((tokens, torch.zeros(len(lengths), extra, WIDTH)), 1)
    longer_mask = lengths_mask(lengths, longest + extra)
    noise = 10 * torch.randn(longer.shape, generator=generator)
    disturbed = torch.where(longer_mask.unsqueeze(-1), longer, noise)
    for padded in (longer, disturbed):
        result = apply(module, padded, longer_mask)[longer_mask]
        torch.testing.assert_close(result, outputs[mask], rtol=1e-5, atol=1e-5)

    for row, length in enumerate(lengths):  # and batches are as good as sequences one by one
        alone = apply(module, tokens[row : row + 1, :length], lengths_mask([length], length))
        torch.testing.assert_close(alone[0], outputs[row, :length], rtol=1e-5, atol=1e-5)


def test_projection_is_a_masked_convolution_with_norm_and_gelu():
    module = roughened(Projection(5, WIDTH, layers=1))
    features, mask = torch.randn(2, 30, 5), lengths_mask([30, 12], 30)
    weight, bias, norm = module.convolutions[0].weight, module.convolutions[0].bias, module.norms[0]
    outputs = module(features, mask)
    for row, length in enumerate((30, 12)):
        for t in range(length):
            total = bias + sum(weight[:, :, k + 1] @ features[row, t + k] for k in (-1, 0, 1) if 0 <= t + k < length)
            torch.testing.assert_close(outputs[row, t], nn.functional.gelu(norm(total)), rtol=1e-5, atol=1e-5)
    assert outputs[~mask].abs().max() == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(0, 10_000), st.floats(0.1, 0.9))
def test_packed_mix_equals_dense_mix_with_zeros_in_the_gaps(length, seed, share):
    torch.manual_seed(seed)
    mix, dense, kept = NeighbourMix(WIDTH), torch.randn(1, length, WIDTH), torch.rand(length) < share
    kept[0] = True
    everywhere = torch.ones(1, length, dtype=torch.bool)
    expected = mix(dense * kept[:, None], TokenLayout.build(everywhere, WINDOW))[:, kept]
    positions = kept.nonzero().squeeze(1)[None]
    layout = TokenLayout.build(everywhere[:, kept], WINDOW, positions)
    torch.testing.assert_close(mix(dense[:, kept], layout), expected, rtol=0, atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 80), st.integers(1, 9), st.integers(0, 10_000), st.floats(0.1, 0.9))
def test_packed_layer_equals_dense_layer_in_which_dropped_positions_are_invalid(length, window, seed, share):
    torch.manual_seed(seed)
    layer = roughened(TransformerLayer(WIDTH, HEADS, window))
    dense, kept = torch.randn(1, length, WIDTH), torch.rand(length) < share
    kept[-1] = True
    expected = layer(dense, TokenLayout.build(kept[None], window))[:, kept]
    positions, valid = kept.nonzero().squeeze(1)[None], torch.ones(1, int(kept.sum()), dtype=torch.bool)
    packed = layer(dense[:, kept], TokenLayout.build(valid, window, positions))
    torch.testing.assert_close(packed, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("window", "depth"), [(1, 1), (2, 2), (4, 2), (3, 3)])
def test_receptive_field_is_exact(window, depth):
    torch.manual_seed(window)
    model = roughened(Uniform(5, 3, depth=depth, width=WIDTH, heads=HEADS, window=window, distance_channels=2)).double()
    length, middle = 120, 60
    features, mask = torch.randn(1, length, 5, dtype=torch.float64), torch.ones(1, length, dtype=torch.bool)
    changed = features.clone()
    changed[0, middle] += 3.0
    effect = (apply(model, changed, mask) - apply(model, features, mask))[0].abs().amax(-1)
    touched = effect.nonzero().squeeze(1)
    assert model.receptive_field == 2 + depth * (window + 1)
    assert (touched.min(), touched.max()) == (middle - model.receptive_field, middle + model.receptive_field)


def test_global_attention_has_no_finite_receptive_field():
    assert Uniform(5, 3, depth=1, width=WIDTH, heads=HEADS, window=None).receptive_field is None


def test_dropout_works_in_training_only():
    torch.manual_seed(0)
    layer, tokens = TransformerLayer(WIDTH, HEADS, WINDOW, Regularization(dropout=0.5)), torch.randn(1, 10, WIDTH)
    layout = TokenLayout.build(torch.ones(1, 10, dtype=torch.bool), WINDOW)
    assert not torch.equal(layer(tokens, layout), layer(tokens, layout))
    assert torch.equal(layer.eval()(tokens, layout), layer(tokens, layout))


@pytest.mark.parametrize("per_token", [False, True])
def test_a_dropped_branch_adds_nothing_and_the_others_make_up_for_it(per_token):
    torch.manual_seed(0)
    branch = Branch(4, Regularization(drop_path=0.25, layer_scale=1e-4, per_token=per_token)).train()
    out = branch(torch.ones(1, 4000, 4) if per_token else torch.ones(4000, 1, 4)).view(4000, 4) / 1e-4
    kept = out[:, 0] > 0
    assert out[kept].allclose(torch.tensor(4 / 3)) and not out[~kept].any()
    assert kept.float().mean() == pytest.approx(0.75, abs=0.03)
    assert branch.eval()(torch.ones(1, 1, 4)).allclose(torch.tensor(1e-4))


def test_a_sequence_loses_a_branch_as_a_whole():
    torch.manual_seed(0)
    layer, tokens = TransformerLayer(WIDTH, HEADS, WINDOW, Regularization(drop_path=0.5)), torch.randn(64, 10, WIDTH)
    layout = TokenLayout.build(torch.ones(64, 10, dtype=torch.bool), WINDOW)
    changed = (layer(tokens, layout) != tokens).any(-1)
    assert torch.equal(changed.any(1), changed.all(1))
    assert changed.any(1).float().mean() == pytest.approx(0.75, abs=0.15)  # one of two branches, or both, are left
