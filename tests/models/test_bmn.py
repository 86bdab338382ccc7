"""BMN: its layer against the published dense form, its size against a closed form, its candidates one by one."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from temporalzoom.models.bmn import (
    BMN,
    BoundaryMatching,
    build_bmn,
    candidate_segments,
    cells_inside,
    peaks,
    sampling_kernel,
)
from temporalzoom.models.outputs import BoundaryMaps


def small(classes=3, **options):
    torch.manual_seed(0)
    return BMN(8, classes, **({"width": 8, "durations": 6, "samples": 4} | options))


def everything(batch, length):
    return torch.ones(batch, length, dtype=torch.bool)


def dense_sampling(length, durations, samples, widened):
    """(T, N, D, T), cell by cell and point by point, as published: three points to a sample, linear interpolation."""
    matrix = torch.zeros(length, samples, durations, length, dtype=torch.float64)
    for d in range(durations):
        for s in range(length):
            start, end = s, s + d + 1
            margin = (end - start + 1) * widened
            low, high = start - margin, end + margin
            for i in range(3 * samples):
                point = low + (high - low) * i / (3 * samples - 1)
                for t in (math.floor(point), math.floor(point) + 1):
                    if 0 <= t < length:
                        matrix[t, i // 3, d, s] += (1 - abs(point - t)) / 3
    return matrix


@pytest.mark.parametrize(
    ("length", "durations", "samples", "widened"), [(36, 4, 3, 0.5), (7, 9, 4, 0.25), (1, 3, 2, 0.5), (33, 4, 1, 0.0)]
)
def test_matching_is_the_published_product_with_a_dense_matrix(length, durations, samples, widened):
    torch.manual_seed(1)
    layer = BoundaryMatching(6, 10, durations, samples, widened).double()
    tokens = torch.randn(2, 6, length, dtype=torch.float64, requires_grad=True)
    sampling = dense_sampling(length, durations, samples, widened)
    sampled = torch.einsum("bct,tnds->bcnds", tokens, sampling)
    expected = layer.convolution(sampled).squeeze(2)
    result = layer(tokens)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-6)  # its weights are stored in single precision

    upstream = torch.randn_like(result)
    inputs = (tokens, layer.convolution.weight, layer.convolution.bias)
    for ours, theirs in zip(
        torch.autograd.grad((result * upstream).sum(), inputs),
        torch.autograd.grad((expected * upstream).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


def test_flops_of_the_matching_are_counted():
    layer, tokens = BoundaryMatching(6, 10, 3, 2, 0.5), torch.randn(1, 6, 40)
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        layer(tokens)
    kernel, _ = sampling_kernel(3, 2, 0.5)
    padded, tiled = 2 * 32 + kernel.shape[2] - 1, 2 * 32
    assert counter.get_total_flops() == 2 * (padded * 6 * 2 * 10 + tiled * int((kernel != 0).sum()) * 10)


def test_size_is_that_of_the_published_network():
    """256 channels along time in 4 groups, 512 out of 32 samples, 128 in the map, for features of 400 channels."""
    base = (100 * 3 * 256 + 256) + (64 * 3 * 256 + 256)
    boundary = (64 * 3 * 256 + 256) + (256 + 1)
    proposal = (256 * 3 * 256 + 256) + (256 * 32 * 512 + 512)
    proposal += (512 * 128 + 128) + 2 * (128 * 9 * 128 + 128) + (128 * 2 + 2)
    model = BMN(400, 1, width=256, durations=100, samples=32)
    assert sum(p.numel() for p in model.parameters()) == base + 2 * boundary + proposal


def test_added_heads_leave_the_rest_alone():
    plain, retrofitted = small(), small(distance_channels=2)
    assert all(torch.equal(v, retrofitted.state_dict()[k]) for k, v in plain.state_dict().items())
    features, mask = torch.randn(2, 9, 8), everything(2, 9)
    for model in (retrofitted.train(), retrofitted.eval()):
        outputs = model(features, mask)
        assert outputs.distances.shape == outputs.distance_log_variance.shape == (2, 9, 2)
    torch.testing.assert_close(
        retrofitted.train()(features, mask).maps.confidence, plain(features, mask).maps.confidence
    )


@pytest.mark.parametrize(("length", "durations"), [(1, 4), (2, 4), (5, 30), (50, 3)])
@pytest.mark.parametrize("classes", [1, 3])
def test_shapes_at_any_length(length, durations, classes):
    model = small(classes, durations=durations)
    features, mask = torch.randn(2, length, 8), everything(2, length)
    mask[1, 1:] = False  # a single position: no segment
    outputs = model(features, mask)
    assert outputs.maps.starts.shape == outputs.maps.ends.shape == (2, length)
    assert outputs.maps.confidence.shape == (2, 2, durations, length)
    assert outputs.logits.shape == (2, length, classes) and outputs.offsets.shape == (2, length, 2)
    outputs = model.eval()(features, mask)
    count = len(outputs.points.positions)
    assert outputs.maps is None and outputs.logits.shape == (2, count, classes)
    assert outputs.offsets.shape == (2, count, 2) and outputs.points.valid.shape == (2, count)
    assert outputs.logits.isfinite().all() and not outputs.points.valid[1].any()
    assert (count == 0) == (length == 1)
    assert len(outputs.part(0, length, 0).logits) == int(outputs.points.valid[0].sum())


def test_padding_and_company_change_nothing():
    model = small(stem=(2,), standardize=True)
    features, mask = torch.randn(3, 40, 8), everything(3, 40)
    mask[0, 23:] = False
    alone = model(features[:1, :23], mask[:1, :23])
    outputs = model(features, mask)
    inside = cells_inside(mask[:1, :23], 6)
    for ours, theirs in (
        (outputs.maps.starts[:1, :23], alone.maps.starts),
        (outputs.logits[:1, :23], alone.logits),
        (outputs.maps.confidence[:1, :, :, :23] * inside[:, None], alone.maps.confidence * inside[:, None]),
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    together, single = model.eval()(features, mask), model(features[:1, :23], mask[:1, :23])
    valid = together.points.valid[0]
    torch.testing.assert_close(together.points.positions[valid], single.points.positions)
    torch.testing.assert_close(together.logits[0, valid], single.logits[0], rtol=0, atol=1e-4)


def test_cells_are_inside_where_both_ends_are():
    mask = torch.arange(7) < torch.tensor([[7], [3], [0]])
    inside = cells_inside(mask, 9)
    for b, length in enumerate((7, 3, 0)):
        for d in range(9):
            assert inside[b, d].tolist() == [s + d + 1 <= length - 1 for s in range(7)]


def test_peaks():
    probability = torch.tensor([[0.2, 0.1, 0.3, 0.9, 0.8, 0.1, 0.1, 0.4, 0.99]])
    mask = torch.arange(9)[None] < 8
    assert peaks(probability, mask)[0].nonzero().flatten().tolist() == [0, 3, 4, 7]  # 0.5 * 0.9 is above 0.4: a peak


@pytest.mark.parametrize("classes", [1, 2])
def test_candidates_one_by_one(classes):
    torch.manual_seed(3)
    maps = BoundaryMaps(torch.randn(2, 12), torch.randn(2, 12), torch.randn(2, 2, 5, 12))
    mask = torch.arange(12) < torch.tensor([[12], [8]])
    position_classes = torch.randn(2, 12, 2) if classes == 2 else None
    outputs = candidate_segments(maps, position_classes, mask)
    points, half = outputs.points, outputs.offsets
    found = [{}, {}]
    for b in range(2):
        start, end = (points.positions - half[b, :, 0]).tolist(), (points.positions + half[b, :, 1]).tolist()
        for n, key in enumerate(zip(start, end, strict=True)):
            if points.valid[b, n]:
                found[b][key] = torch.sigmoid(outputs.logits[b, n])
    for b, length in enumerate((12, 8)):
        first, last = (peaks(torch.sigmoid(x), mask)[b] for x in (maps.starts, maps.ends))
        expected = {}
        for s in range(length):
            for d in range(5):
                e = s + d + 1
                if e < length and first[s] and last[e]:
                    score = torch.sigmoid(
                        torch.stack((maps.starts[b, s], maps.ends[b, e], *maps.confidence[b, :, d, s]))
                    )
                    share = torch.ones(1) if classes == 1 else torch.sigmoid(position_classes[b, s : e + 1]).mean(0)
                    expected[s, e] = score.prod() * share
        assert found[b].keys() == expected.keys() and expected
        for key, score in expected.items():
            torch.testing.assert_close(found[b][key], score)


def test_extreme_scores_stay_finite():
    for value in (-200.0, 200.0):
        full = torch.full((1, 4), value)
        outputs = candidate_segments(BoundaryMaps(full, full, torch.full((1, 2, 2, 4), value)), None, everything(1, 4))
        assert outputs.logits.isfinite().all()


def test_builder():
    model = build_bmn(None, 8, 2, width=8, durations=3, samples=2, dropout=0.5)
    assert isinstance(model, BMN) and model.dropout.p == 0.5
    with pytest.raises(ValueError, match="bmn has no number of layers"):
        build_bmn(3, 8, 2)


def test_inputs_that_four_groups_do_not_divide():
    model = BMN(6, 2, width=8, durations=3, samples=2)
    assert [c.groups for c in model.base if isinstance(c, nn.Conv1d)] == [2, 4]
    assert F.relu(model(torch.randn(1, 5, 6), everything(1, 5)).logits).isfinite().all()
