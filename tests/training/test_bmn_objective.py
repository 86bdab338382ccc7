"""The objective of BMN: targets against slow loops, losses against the published formulas, and that it learns."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.models.bmn import BMN, cells_inside
from temporalzoom.models.outputs import BoundaryMaps, Outputs
from temporalzoom.training.batches import Batch
from temporalzoom.training.bmn_objective import (
    balanced_loss,
    bmn_terms,
    boundary_regions,
    cell_tiou,
    overlap_loss,
    position_classes,
)

spans = st.lists(st.tuples(st.floats(-1, 20, width=32), st.floats(0.125, 15, width=32)), max_size=4)


def make_batch(rows, lengths, width=8):
    """rows: per sequence a list of (start, end, label)."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    columns = [[torch.tensor([float(i[k]) for i in row]) for row in rows] for k in (0, 1)]
    labels = [torch.tensor([i[2] for i in row], dtype=torch.long) for row in rows]
    return Batch(torch.randn(len(rows), max(lengths), width), mask, *columns, labels)


def random_outputs(batch, classes=2, durations=6):
    size = batch.mask.shape
    maps = BoundaryMaps(torch.randn(size), torch.randn(size), torch.randn(size[0], 2, durations, size[1]))
    return Outputs(torch.randn(*size, classes), torch.zeros(*size, 2), maps=maps)


@given(spans, st.integers(1, 5), st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_cell_tiou_equals_a_double_loop(instances, durations, length):
    starts, lengths = torch.tensor(instances).reshape(-1, 2).unbind(1)
    overlap = cell_tiou(starts, starts + lengths, durations, length)
    for d in range(durations):
        for s in range(length):
            best = 0.0
            for start, end in zip(starts.tolist(), (starts + lengths).tolist(), strict=True):
                shared = max(0.0, min(s + d + 1, end) - max(s, start))
                best = max(best, shared / (max(s + d + 1, end) - min(s, start)) if shared else 0.0)
            assert overlap[d, s].item() == pytest.approx(best, abs=1e-5)


def test_boundary_regions():
    """At least three positions wide; a tenth of an instance of 60."""

    def region(point, duration):
        regions = boundary_regions(torch.tensor([point]), torch.tensor([duration]), 20)
        return regions.nonzero().flatten().tolist()

    assert region(10.0, 5.0) == [9, 10, 11]
    assert region(10.4, 5.0) == [9, 10, 11]
    assert region(10.0, 60.0) == [8, 9, 10, 11, 12]  # 7 and 13 share exactly half
    assert region(0.0, 5.0) == [0, 1]
    assert not boundary_regions(torch.zeros(0), torch.zeros(0), 20).any()


def test_balanced_loss_is_the_published_one():
    torch.manual_seed(0)
    logits, positive, valid = torch.randn(4, 30), torch.rand(4, 30) < 0.2, torch.rand(4, 30) < 0.8
    p, label = torch.sigmoid(logits[valid]), positive[valid].float()
    ratio = len(p) / label.sum()
    published = 0.5 * ratio * label * p.log() + 0.5 * ratio / (ratio - 1) * (1 - label) * (1 - p).log()
    torch.testing.assert_close(balanced_loss(logits, positive, valid), -published.mean())
    one_sided = balanced_loss(torch.zeros(3), torch.zeros(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool))
    assert one_sided.item() == pytest.approx(0.5 * math.log(2))


def test_overlap_loss_samples_in_equal_numbers_and_by_seed():
    overlap = torch.cat((torch.full((50,), 0.8), torch.full((4000,), 0.5), torch.full((4000,), 0.1), torch.zeros(500)))
    overlap, inside = overlap.reshape(1, 1, -1), torch.ones(1, 1, 8550, dtype=torch.bool)
    logits = torch.zeros_like(overlap, requires_grad=True)

    def loss(seed, **changed):
        torch.manual_seed(seed)
        return overlap_loss(*({"logits": logits, "overlap": overlap, "inside": inside} | changed).values())

    # A sampled cell is one with a gradient: the medium ones are exactly right at 0.5 and show none.
    (gradient,) = torch.autograd.grad(loss(0), logits)
    touched = (gradient != 0)[0, 0]
    assert touched[:50].all() and not touched[8050:].any()
    assert 20 < int(touched[4050:8050].sum()) < 90
    assert loss(0).item() == loss(0).item() != loss(1).item()
    # About a third of the cells each: 0.3, 0 and 0.4 off
    assert loss(0).item() == pytest.approx(0.5 * (0.09 + 0.16) / 3, rel=0.25)
    assert loss(0, inside=~inside).item() == 0.0


def test_position_classes():
    batch = make_batch([[(1.0, 3.2, 0), (2.5, 4.0, 2), (6.3, 6.4, 1)], []], [8, 8])
    targets = position_classes(batch, torch.zeros(2, 8, 3))
    assert targets[0, :, 0].nonzero().flatten().tolist() == [1, 2, 3]
    assert targets[0, :, 2].nonzero().flatten().tolist() == [3, 4]
    assert targets[0, :, 1].nonzero().flatten().tolist() == [6]
    assert not targets[1].any()


def test_terms_are_weighted_and_deaf_to_what_is_outside():
    torch.manual_seed(0)
    batch = make_batch([[(2.0, 7.0, 0)], [(1.0, 4.0, 1)], []], [20, 9, 12])
    outputs = random_outputs(batch)
    weights = {"boundary_weight": 3.0, "overlap_weight": 20.0, "proposal_weight": 5.0, "class_weight": 7.0}

    def terms(outputs, **options):
        torch.manual_seed(5)
        return {k: v.item() for k, v in bmn_terms(outputs, batch, **options).items()}

    plain = terms(outputs)
    factors = {"boundary": 3.0, "overlap": 2.0, "proposal": 5.0, "class": 7.0}
    assert terms(outputs, **weights) == pytest.approx({k: plain[k] * factors[k] for k in factors})

    outside = ~cells_inside(batch.mask, 6)[:, None]
    moved = outputs.map(torch.clone)
    moved.maps.confidence += 9 * outside
    moved.maps.starts += 9 * ~batch.mask
    moved.maps.ends += 9 * ~batch.mask
    moved.logits += 9 * ~batch.mask[:, :, None]
    assert terms(moved) == plain
    agnostic = Outputs(outputs.logits[..., :1], outputs.offsets, maps=outputs.maps)
    assert terms(agnostic) == {k: v for k, v in plain.items() if k != "class"}


def test_perfect_maps_cost_next_to_nothing():
    batch = make_batch([[(4.0, 9.0, 0)]], [16])
    overlap = cell_tiou(batch.starts[0], batch.ends[0], 6, 16)

    def certain(true):
        return 40.0 * (2.0 * true.float() - 1.0)

    point = [boundary_regions(column, torch.tensor([5.0]), 16) for column in (batch.starts[0], batch.ends[0])]
    confidence = torch.stack((certain(overlap > 0.9), torch.logit(overlap, eps=1e-6)))[None]
    maps = BoundaryMaps(certain(point[0])[None], certain(point[1])[None], confidence)
    logits = certain(position_classes(batch, torch.zeros(1, 16, 2)))
    for name, value in bmn_terms(Outputs(logits, torch.zeros(1, 16, 2), maps=maps), batch).items():
        assert value.item() < 1e-6, name


def test_learns_a_sequence_by_heart():
    torch.manual_seed(0)
    instances = [(3.0, 9.0, 0), (12.0, 24.0, 1), (26.0, 30.0, 0)]
    batch = make_batch([instances], [32])
    model = BMN(8, 2, width=16, durations=16, samples=8)
    optimizer = torch.optim.Adam(model.parameters(), 0.005)
    for _ in range(150):
        optimizer.zero_grad()
        sum(bmn_terms(model(batch.features, batch.mask), batch).values()).backward()
        optimizer.step()
    with torch.no_grad():
        outputs = model.eval()(batch.features, batch.mask)
    starts = outputs.points.positions - outputs.offsets[0, :, 0]
    ends = outputs.points.positions + outputs.offsets[0, :, 1]
    for start, end, label in instances:
        shared = (ends.clamp(max=end) - starts.clamp(min=start)).clamp(min=0)
        tiou = shared / (ends - starts + end - start - shared)
        best = outputs.logits[0, :, label].masked_fill(tiou == 0, -math.inf).argmax()
        assert tiou[best] > 0.7
        assert outputs.logits[0, best].argmax() == label
