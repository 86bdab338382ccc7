"""Local attention against a dense masked reference; global attention; distances instead of positions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.models.attention import (
    SelfAttention,
    attend,
    attend_shared,
    entries_within,
    global_layout,
    initial_bias,
    local_layout,
)

HEADS, HEAD_WIDTH = 2, 4


def dense_attention(query, key, value, bias, positions, mask, window):
    """Softmax attention with full (B, T, T) tables: valid keys at most `window` away, and every token itself."""
    difference = positions[:, None, :] - positions[:, :, None]
    allowed = ((difference.abs() <= window) & mask[:, None, :]) | torch.eye(mask.shape[1], dtype=torch.bool)
    reach = bias.shape[1] // 2
    scores = torch.einsum("bqhe,bkhe->bhqk", query, key) / query.shape[-1] ** 0.5
    scores = scores + torch.stack([row[difference.clamp(-reach, reach) + reach] for row in bias], 1)
    weights = scores.masked_fill(~allowed[:, None], float("-inf")).softmax(-1)
    return torch.einsum("bhqk,bkhe->bqhe", weights, value)


def random_inputs(seed, batch, length, reach):
    """Query, key, value (B, T, H, E), bias (H, 2 * reach + 1), and a cotangent of the outputs."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, length, HEADS, HEAD_WIDTH)] * 3 + [(HEADS, 2 * reach + 1), (batch, length, HEADS, HEAD_WIDTH)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def assert_equal_to_dense(seed, layout, positions, mask, window, reach):
    """Outputs and the gradients of all four inputs agree at every valid query, with own and with shared keys."""
    *inputs, cotangent = random_inputs(seed, *mask.shape, reach)

    def run(function):
        leaves = [x.clone().requires_grad_() for x in inputs]
        output = function(*leaves) * mask[:, :, None, None]
        return output, *torch.autograd.grad((output * cotangent).sum(), leaves)

    def dense(query, key, value, bias):
        return dense_attention(query, key, value, bias, positions, mask, window)

    def first_head(x):
        return x[:, :, :1].expand(x.shape)

    own = lambda query, key, value, bias: attend(query, key, value, layout, bias)  # noqa: E731
    shared = lambda query, key, value, bias: attend_shared(query, key[:, :, 0], value[:, :, 0], layout, bias)  # noqa: E731
    dense_shared = lambda query, key, value, bias: dense(query, first_head(key), first_head(value), bias)  # noqa: E731
    for ours, reference in (*zip(run(own), run(dense), strict=True), *zip(run(shared), run(dense_shared), strict=True)):
        torch.testing.assert_close(ours, reference, rtol=0, atol=1e-9)


@given(st.lists(st.integers(0, 60), min_size=1, unique=True), st.integers(1, 20))
def test_packed_keys_reach_no_farther_than_they_must(kept, window):
    positions = sorted(kept)
    apart = [j - i for i, a in enumerate(positions) for j, b in enumerate(positions) if 0 <= b - a <= window]
    assert entries_within(torch.tensor([positions]), window) == max(apart)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(1, 20), st.booleans(), st.integers(0, 10_000), st.data())
def test_local_equals_dense(length, window, contiguous, seed, data):
    valid = data.draw(st.lists(st.integers(0, length), min_size=1, max_size=3), label="valid lengths")
    positions = torch.arange(length).expand(len(valid), length)
    mask = positions < torch.tensor(valid)[:, None]
    assert_equal_to_dense(seed, local_layout(positions, mask, window, contiguous), positions, mask, window, window)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 120), st.integers(1, 20), st.floats(0.05, 1.0), st.integers(0, 10_000))
def test_local_equals_dense_on_packed_positions(length, window, share, seed):
    """Only some positions kept, different ones and differently many per row; what is left over is padding."""
    kept = torch.rand(3, length, generator=torch.Generator().manual_seed(seed)) < share
    counts = kept.sum(1)
    packed = torch.zeros(3, max(int(counts.max()), 1), dtype=torch.long)
    for row in range(3):
        packed[row, : counts[row]] = kept[row].nonzero().squeeze(1)
    mask = torch.arange(packed.shape[1]) < counts[:, None]
    assert_equal_to_dense(seed, local_layout(packed, mask, window), packed, mask, window, window)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 90), st.integers(1, 40), st.booleans(), st.integers(0, 10_000))
def test_local_equals_dense_with_holes_in_the_mask(length, window, contiguous, seed):
    mask = torch.rand(2, length, generator=torch.Generator().manual_seed(seed)) < 0.5
    positions = torch.arange(length).expand(2, length)
    assert_equal_to_dense(seed, local_layout(positions, mask, window, contiguous), positions, mask, window, window)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 80), st.integers(1, 30), st.integers(1, 3), st.integers(0, 10_000))
def test_global_equals_dense(length, reach, stretch, seed):
    """Distances beyond the reach of the bias count as the reach."""
    positions = stretch * torch.arange(length).expand(2, length)
    mask = torch.arange(length) < torch.tensor([[length], [length // 2]])
    assert_equal_to_dense(seed, global_layout(positions, mask, reach), positions, mask, 10_000, reach)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 10_000))
def test_global_attention_ignores_padding(valid, padding, seed):
    query, key, value, bias, noise = random_inputs(seed, 1, valid + padding, reach=8)
    positions = torch.arange(valid + padding)[None]
    mask = positions < valid
    layout = global_layout(positions[:, :valid], mask[:, :valid], 8)
    alone = attend(*(x[:, :valid] for x in (query, key, value)), layout, bias)
    key, value = (torch.where(mask[:, :, None, None], x, 100 * noise) for x in (key, value))
    padded = attend(query, key, value, global_layout(positions, mask, 8), bias)
    torch.testing.assert_close(padded[:, :valid], alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("window", [1, 9, 50])
def test_memory_is_linear_in_length(window):
    def size(length):
        positions = torch.arange(length)[None]
        layout = local_layout(positions, torch.ones_like(positions, dtype=torch.bool), window)
        return layout.barred.numel() + layout.distance.numel()

    assert size(3200) == 2 * size(1600) == 4 * size(800)
    assert size(3200) < 3200**2 / 5


def test_a_sequence_of_padding_gives_no_nan():
    query, key, value, bias, _ = random_inputs(0, 2, 40, reach=3)
    positions, mask = torch.arange(40).expand(2, 40), torch.zeros(2, 40, dtype=torch.bool)
    for layout in (local_layout(positions, mask, 3), global_layout(positions, mask, 3)):
        assert attend(query, key, value, layout, bias).isfinite().all()


@pytest.mark.parametrize("shift", [1, 777, 1_000_000])
def test_shifting_all_positions_changes_nothing(shift):
    torch.manual_seed(0)
    attention = SelfAttention(16, 2, reach=5)
    tokens, mask = torch.randn(2, 60, 16), torch.arange(60) < torch.tensor([[60], [45]])
    positions = torch.arange(60).expand(2, 60)
    for build in (local_layout, global_layout):
        here, there = (attention(tokens, build(positions + first, mask, 5))[mask] for first in (0, shift))
        assert torch.equal(here, there)


def test_the_order_of_tokens_matters():
    """Without distances, a middle token would not notice that its neighbours are swapped."""
    torch.manual_seed(0)
    attention, tokens = SelfAttention(16, 2, reach=2), torch.randn(1, 3, 16)
    layout = local_layout(torch.arange(3)[None], torch.ones(1, 3, dtype=torch.bool), 2)
    forward, backward = attention(tokens, layout), attention(tokens.flip(1), layout)
    assert (forward[0, 1] - backward[0, 1]).abs().max() > 1e-3


def test_initial_heads_look_back_ahead_near_and_everywhere():
    bias = initial_bias(5, 3)
    distance = torch.arange(-3, 4)
    assert torch.equal(bias[0] == 0, distance <= 0)
    assert torch.equal(bias[1] == 0, distance >= 0)
    assert bias[2].argmax() == 3 and torch.equal(bias[2], bias[2].flip(0))
    assert not bias[3].any()
    assert torch.equal(bias[4], bias[0])


@pytest.mark.parametrize(("width", "heads"), [(16, 3), (10, 4), (6, 7)])
def test_width_must_be_a_multiple_of_the_heads(width, heads):
    with pytest.raises(ValueError, match=rf"model.width {width} .*model.heads {heads}"):
        SelfAttention(width, heads, 3)
