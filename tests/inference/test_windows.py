"""Windows tile the sequence, and give what one pass would give."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from temporalzoom.inference.windows import plan_windows, run_network
from temporalzoom.models import Outputs, build_model

FEATURES = 6


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 400), st.integers(1, 60), st.integers(0, 80))
def test_kept_parts_tile_the_sequence_and_margins_are_kept(length, window, margin):
    plan = list(plan_windows(length, window, margin))
    assert [t for _, _, first, last in plan for t in range(first, last)] == list(range(length))
    if length <= window:
        assert plan == [(0, length, 0, length)]
        return
    kept_margin = min(margin, (window - 1) // 2)
    for first, last, keep_first, keep_last in plan:
        assert 0 <= first <= keep_first < keep_last <= last <= length
        assert last - first == window
        assert first == 0 or keep_first - first >= kept_margin
        assert last == length or last - keep_last >= kept_margin
    inner = window - 2 * kept_margin
    assert len(plan) <= -(-length // inner)  # no window is wasted


def test_windows_by_hand():
    assert list(plan_windows(20, 10, 2)) == [(0, 10, 0, 8), (6, 16, 8, 14), (10, 20, 14, 20)]
    assert list(plan_windows(3, 1, 5)) == [(0, 1, 0, 1), (1, 2, 1, 2), (2, 3, 2, 3)]


def make_model(window=3, depth=2, channels=2):
    torch.manual_seed(0)
    model = build_model(
        f"uniform-{depth}", FEATURES, 3, width=16, heads=2, window=window, distance_channels=channels
    ).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def features_of(length, seed=0):
    return np.random.default_rng(seed).normal(size=(length, FEATURES)).astype(np.float32)


def one_pass(model, features):
    with torch.inference_mode():
        return model(torch.from_numpy(features)[None], torch.ones(1, len(features), dtype=torch.bool)).map(
            lambda x: x[0]
        )


def assert_same(first, second):
    for name, tensor in vars(first).items():
        torch.testing.assert_close(
            tensor, getattr(second, name), rtol=1e-5, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}"
        )


MODEL = make_model()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(2 * MODEL.receptive_field + 1, 90), st.integers(0, 1000))
def test_windows_with_the_receptive_field_as_margin_equal_one_pass(length, window, seed):
    features = features_of(length, seed)
    assert_same(run_network(MODEL, features, window), one_pass(MODEL, features))


@pytest.mark.parametrize("length", [1, 2, 3, 20, 21, 22, 100])
def test_windows_narrower_than_the_receptive_field_still_cover_everything(length):
    outputs = run_network(MODEL, features_of(length), window=2 * MODEL.receptive_field)
    assert outputs.logits.shape == (length, 3) and outputs.distances.shape == (length, 2)
    assert all(tensor.isfinite().all() for tensor in vars(outputs).values() if tensor is not None)
    inner = slice(0, 3)  # the first window begins where the sequence does
    expected = one_pass(MODEL, features_of(length)).map(lambda x: x[inner])
    assert_same(outputs.map(lambda x: x[inner]), expected)


@pytest.mark.parametrize("length", [1, 40, 41, 130])
def test_global_attention_runs_in_windows_too(length):
    model, features = make_model(window=None), features_of(length)
    outputs = run_network(model, features, 40)
    assert outputs.offsets.shape == (length, 2)
    if length <= 40:
        assert_same(outputs, one_pass(model, features))


class Spy(nn.Module):
    """Notes how long its inputs are; its outputs say which positions they were."""

    receptive_field = 5

    def __init__(self):
        super().__init__()
        self.lengths = []

    def forward(self, features, mask):
        assert mask.all() and mask.shape == features.shape[:2]
        assert torch.is_inference_mode_enabled()
        self.lengths.append(features.shape[1])
        return Outputs(*[features[..., :1]] * 3)


@pytest.mark.parametrize(("length", "window"), [(5000, 64), (5000, 5000), (4999, 300), (7, 64)])
def test_memory_is_bounded_by_the_window(length, window):
    spy, features = Spy(), np.zeros((length, 2), np.float32)
    features[:, 0] = np.arange(length)
    outputs = run_network(spy, features, window)
    assert max(spy.lengths) == min(length, window)
    assert outputs.logits[:, 0].tolist() == list(range(length))
    assert outputs.distances is None


def test_features_in_any_layout():
    features = features_of(50)
    expected = run_network(MODEL, features, 40)
    for same in (np.asfortranarray(features), np.repeat(features, 2, 0)[::2], features.astype(np.float64)):
        assert_same(run_network(MODEL, same, 40), expected)


class BoundarySpy(nn.Module):
    """Its outputs say which true boundaries it was told of."""

    receptive_field = 5

    def forward(self, features, mask, boundaries):
        assert boundaries.shape == mask.shape == features.shape[:2]
        return Outputs(features[..., :1], boundaries[..., None].float(), features[..., :1])


@pytest.mark.parametrize(("length", "window"), [(500, 64), (64, 64), (7, 64)])
def test_true_boundaries_are_cut_like_the_features(length, window):
    features = np.arange(length, dtype=np.float32)[:, None]
    boundaries = torch.rand(length, generator=torch.Generator().manual_seed(0)) < 0.3
    outputs = run_network(BoundarySpy(), features, window, boundaries)
    assert outputs.logits[:, 0].tolist() == list(range(length))
    assert outputs.offsets[:, 0].bool().tolist() == boundaries.tolist()


@pytest.mark.parametrize("name", ["actionformer", "tridet", "temporalmaxer"])
def test_windows_of_a_pyramid_hold_every_point_of_the_finest_level_once(name):
    torch.manual_seed(0)
    attention = {"heads": 2, "window": 3} if name == "actionformer" else {}
    model = build_model(name, FEATURES, 3, width=16, levels=3, distance_channels=2, **attention).eval()
    features = np.random.default_rng(0).normal(size=(100, FEATURES)).astype(np.float32)
    outputs = run_network(model, features, 40)
    finest = outputs.points.strides == 1
    assert outputs.points.positions[finest].tolist() == list(range(100))
    assert outputs.distances.shape == (100, 2) and len(outputs.logits) == len(outputs.points.positions)
    assert outputs.points.positions.max() < 100
    whole = run_network(model, features, 200)
    assert len(whole.logits) == 100 + 50 + 25
    # far from the seams of windows that begin at even positions, both say the same
    start = slice(0, 8)
    if name != "tridet":  # whose layers look at the whole sequence
        torch.testing.assert_close(outputs.logits[finest][start], whole.logits[start], atol=1e-4, rtol=1e-4)
