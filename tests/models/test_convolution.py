"""Convolutions as matrix products: the same numbers as PyTorch's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from temporalzoom.models import convolution
from temporalzoom.models.coarse_to_fine import pooled_levels
from temporalzoom.models.convolution import TokenConvolution, beside, side_by_side
from temporalzoom.models.level_heads import LevelHeads

# From more channels to few, a convolution is computed in another way.
WIDTHS = st.sampled_from([(1, 6), (3, 6), (5, 6), (8, 2), (9, 2), (4, 1)])


@given(st.integers(1, 3), st.integers(1, 9), WIDTHS, st.integers(1, 4), st.booleans(), st.integers(0, 99))
def test_the_numbers_of_a_plain_convolution(
    batch: int, length: int, widths: tuple[int, int], stride: int, bias: bool, seed: int
):
    torch.manual_seed(seed)
    ours = TokenConvolution(*widths, stride, bias)
    tokens = torch.randn(batch, length * stride, widths[0], requires_grad=True)
    found = ours(tokens)
    plain = F.conv1d(tokens.transpose(1, 2), ours.weight, ours.bias, stride=stride, padding=stride).transpose(1, 2)
    assert found.shape == (batch, length, widths[1])
    if stride == 1:
        torch.testing.assert_close(ours(tokens, beside(tokens)), found, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-5)
    variables = [tokens, *ours.parameters()]
    gradients, expected = (torch.autograd.grad(x.square().sum(), variables) for x in (found, plain))
    torch.testing.assert_close(gradients, expected, atol=1e-3, rtol=1e-4)


@given(st.integers(1, 2), st.integers(1, 9), st.integers(0, 4))
def test_neighbours_side_by_side_are_what_a_wide_convolution_reads(batch: int, length: int, reach: int):
    torch.manual_seed(0)
    tokens, weight = torch.randn(batch, length, 3), torch.randn(5, 3, 2 * reach + 1)
    found = side_by_side(tokens, reach) @ weight.transpose(1, 2).flatten(1).T
    plain = F.conv1d(tokens.transpose(1, 2), weight, padding=reach).transpose(1, 2)
    torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-5)


def test_long_sequences_take_the_way_that_copies_nothing(monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    ours, tokens = TokenConvolution(4, 3, 5), torch.randn(2, 35, 4)
    heads, mask = LevelHeads(4, 3, levels=3, hidden=4, first=0), torch.ones(2, 35, dtype=torch.bool)
    short, logits = ours(tokens), heads(heads.normed(pooled_levels(tokens, mask, 3))).logits
    monkeypatch.setattr(convolution, "LARGEST", 100)
    assert beside(tokens) is None
    torch.testing.assert_close(ours(tokens), short, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(heads(heads.normed(pooled_levels(tokens, mask, 3))).logits, logits, atol=1e-6, rtol=1e-6)
