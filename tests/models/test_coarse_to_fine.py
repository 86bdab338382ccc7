"""Layers on coarser levels: what they see, what they hand down, what they cost."""

import pytest
import torch

from temporalzoom.metrics.cost import count_flops
from temporalzoom.models import build_model
from temporalzoom.models.coarse_to_fine import REACH, CoarseToFine, pooled_levels
from temporalzoom.models.layers import TokenLayout

LEVELS = 4


def levels_of(layers: int) -> CoarseToFine:
    torch.manual_seed(0)
    return CoarseToFine(8, 2, LEVELS, layers).eval()


def everywhere(length: int, batch: int = 1) -> torch.Tensor:
    return torch.ones(batch, length, dtype=torch.bool)


@torch.no_grad()
def test_without_layers_levels_are_max_pooled_tokens():
    tokens = torch.randn(2, 13, 8)
    found = levels_of(0)(tokens, everywhere(13, 2))
    assert [level.stride for level in found] == [1, 2, 4, 8]
    for level, plain in zip(found, pooled_levels(tokens, everywhere(13, 2), LEVELS), strict=True):
        assert torch.equal(level.tokens, plain.tokens)
    third = torch.stack([tokens[:, max(p - 1, 0) : p + 2].amax(1) for p in range(0, 13, 2)], 1)
    assert torch.equal(found[1].tokens, third)


@torch.no_grad()
def test_levels_are_what_they_are_written_to_be():
    """Beside a slow version, a level at a time."""
    module, tokens, mask = levels_of(1), torch.randn(1, 21, 8), everywhere(21)
    up = [tokens]
    for encoder in module.encoders:
        pooled = pooled_levels(up[-1], everywhere(up[-1].shape[1]), 2)[1].tokens
        up.append(encoder(pooled, TokenLayout.build(everywhere(pooled.shape[1]), REACH)))
    down = [up[-1]]
    for linear, finer in zip(reversed(module.down), reversed(up[:-1]), strict=True):
        heard = linear(down[0])
        down.insert(0, finer + torch.stack([heard[:, p // 2] for p in range(finer.shape[1])], 1))
    for level, expected in zip(module(tokens, mask), down, strict=True):
        torch.testing.assert_close(level.tokens, expected, atol=1e-5, rtol=1e-5)


def test_the_finest_level_hears_from_far_away():
    """A layer on level 3 sees REACH strides of 8; without layers nothing is handed down at all."""
    for layers, reaches in ((0, False), (1, True)):
        module, tokens = levels_of(layers), torch.randn(1, 256, 8, requires_grad=True)
        finest = module(tokens, everywhere(256))[0].tokens
        (slope,) = torch.autograd.grad(finest[0, 128].sum(), tokens)
        seen = slope[0].abs().amax(-1).nonzero().flatten()
        assert (int(seen.min()) <= 128 - 8 * REACH) == reaches and (int(seen.max()) >= 128 + 8 * REACH) == reaches


@pytest.mark.parametrize("length", [1, 2, 3, 9])
@torch.no_grad()
def test_sequences_of_any_length_have_all_levels(length):
    found = levels_of(2)(torch.randn(1, length, 8), everywhere(length))
    assert [level.tokens.shape[1] for level in found] == [-(-length // 2**n) for n in range(LEVELS)]
    assert all(torch.isfinite(level.tokens).all() for level in found)


def test_a_layer_on_every_coarser_level_costs_less_than_one_at_every_position():
    features = torch.randn(512, 5)
    options = {"width": 32, "heads": 2, "window": 8, "levels": 6, "head": "convolution"}
    costs = [
        count_flops(build_model(f"uniform-{depth}", 5, 3, **options, coarse_layers=layers).eval(), features).total
        for depth, layers in ((0, 0), (0, 1), (1, 0))
    ]
    plain, on_levels, at_positions = costs
    assert plain < on_levels < at_positions
