"""Assignment against slow references."""

from itertools import permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.models import Points
from temporalzoom.training.assignment import assign_center, assign_hungarian, assign_points


def slow_center(starts, ends, length, radius, fraction):
    """Position by position, instance by instance."""
    result = []
    for t in range(length):
        best, best_duration = -1, float("inf")
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            centre = (start + end) / 2
            inside = start <= t <= end and abs(t - centre) <= max(radius, fraction * (end - start))
            nearest = min(max(round(centre), 0), length - 1) == t
            if (inside or nearest) and end - start < best_duration:
                best, best_duration = index, end - start
        result.append(best)
    return result


def positives(matches):
    return (matches >= 0).nonzero().squeeze(1).tolist()


eighths = st.integers(-16, 8 * 44).map(lambda n: n / 8)  # exact in every float type, ties and halves included
instances = st.lists(st.tuples(eighths, st.integers(0, 200).map(lambda n: n / 8)), max_size=6)


def columns(rows):
    starts = torch.tensor([start for start, _ in rows], dtype=torch.float32)
    return starts, starts + torch.tensor([duration for _, duration in rows], dtype=torch.float32)


@settings(max_examples=300, deadline=None)
@given(instances, st.integers(1, 40), st.sampled_from([0.25, 0.5, 1.5, 3.0, 100.0]), st.sampled_from([0.0, 0.25, 0.5]))
def test_center_equals_the_slow_reference(rows, length, radius, fraction):
    starts, ends = columns(rows)
    matches = assign_center(starts, ends, length, radius, fraction)
    assert matches.shape == (length,) and matches.dtype == torch.long
    assert matches.tolist() == slow_center(starts.tolist(), ends.tolist(), length, radius, fraction)


def test_the_shortest_instance_wins():
    matches = assign_center(torch.tensor([0.0, 8.0]), torch.tensor([20.0, 12.0]), 21, radius=1.5)
    assert matches.tolist() == [-1] * 9 + [1, 1, 1] + [-1] * 9
    wider = assign_center(torch.tensor([0.0, 8.0]), torch.tensor([20.0, 12.0]), 21, radius=3.0)
    assert wider.tolist() == [-1] * 7 + [0, 1, 1, 1, 1, 1, 0] + [-1] * 7


def test_radius_counts_from_the_centre_and_never_reaches_outside():
    assert positives(assign_center(torch.tensor([10.0]), torch.tensor([30.0]), 40)) == [19, 20, 21]
    assert positives(assign_center(torch.tensor([9.5]), torch.tensor([10.5]), 40)) == [10]


def test_a_fraction_gives_long_instances_more_positions_and_short_ones_no_fewer():
    starts, ends = torch.tensor([10.0]), torch.tensor([30.0])
    assert positives(assign_center(starts, ends, 40, fraction=0.2)) == list(range(16, 25))
    assert positives(assign_center(starts, ends, 40, fraction=0.01)) == [19, 20, 21]
    assert positives(assign_center(starts, ends, 40, fraction=1.0)) == list(range(10, 31))


@pytest.mark.parametrize(("start", "end", "position"), [(3.2, 3.4, 3), (3.6, 3.9, 4), (0.2, 0.3, 0), (9.1, 9.2, 9)])
def test_an_instance_too_short_for_a_position_gets_the_nearest(start, end, position):
    matches = assign_center(torch.tensor([start]), torch.tensor([end]), 10)
    assert positives(matches) == [position]


def test_no_instances_no_matches():
    nothing = torch.zeros(0)
    assert assign_center(nothing, nothing, 5).tolist() == [-1] * 5
    labels = torch.zeros(0, dtype=torch.long)
    predictions, everywhere = (torch.zeros(5, 2), torch.ones(5, 2)), torch.ones(5, dtype=torch.bool)
    assert assign_hungarian(*predictions, everywhere, nothing, nothing, labels).tolist() == [-1] * 5
    one = torch.tensor([1.0])
    assert assign_hungarian(*predictions, ~everywhere, one, one + 2, labels.new_zeros(1)).tolist() == [-1] * 5


def slow_cost(logits, offsets, starts, ends, labels, t, n):
    """Class, L1 relative to the length, GIoU: one pair."""
    a, b = t - float(offsets[t, 0]), t + float(offsets[t, 1])
    start, end = float(starts[n]), float(ends[n])
    overlap, hull = max(min(b, end) - max(a, start), 0.0), max(b, end) - min(a, start)
    union = (b - a) + (end - start) - overlap
    l1 = (abs(a - start) + abs(b - end)) / max(end - start, 1.0)
    return -float(logits[t, labels[n]].sigmoid()) + l1 - (overlap / union - (hull - union) / hull)


def random_problem(seed, length, count):
    generator = torch.Generator().manual_seed(seed)
    starts = length * torch.rand(count, generator=generator)
    return (
        3 * torch.randn(length, 3, generator=generator),
        4 * torch.rand(length, 2, generator=generator) + 0.1,
        torch.rand(length, generator=generator) < 0.8,
        starts,
        starts + 4 * torch.rand(count, generator=generator) + 0.1,
        torch.randint(3, (count,), generator=generator),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 3))
def test_hungarian_equals_the_best_of_all_permutations(seed, length, count):
    logits, offsets, mask, starts, ends, labels = random_problem(seed, length, count)
    matches = assign_hungarian(logits, offsets, mask, starts, ends, labels)
    valid = mask.nonzero().squeeze(1).tolist()
    pairs = [(t, n) for t, n in enumerate(matches.tolist()) if n >= 0]
    assert all(mask[t] for t, _ in pairs)
    assert len({n for _, n in pairs}) == len(pairs) == min(len(valid), count)

    def cost(pairs):
        return sum(slow_cost(logits, offsets, starts, ends, labels, t, n) for t, n in pairs)

    if len(valid) >= count:
        choices = (list(zip(chosen, range(count), strict=True)) for chosen in permutations(valid, count))
    else:
        choices = (list(zip(valid, chosen, strict=True)) for chosen in permutations(range(count), len(valid)))
    assert cost(pairs) == pytest.approx(min(map(cost, choices)), abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 12))
def test_hungarian_is_one_to_one_and_never_matches_padding(seed, length, count):
    logits, offsets, _, starts, ends, labels = random_problem(seed, length, count)
    valid = seed % length + 1
    matches = assign_hungarian(logits, offsets, torch.arange(length) < valid, starts, ends, labels)
    assert (matches[valid:] == -1).all()
    assert sorted(matches[matches >= 0].tolist()) == sorted(set(matches[matches >= 0].tolist()))
    assert int((matches >= 0).sum()) == min(valid, count)


def test_hungarian_prefers_the_position_whose_prediction_fits():
    logits, offsets = torch.zeros(10, 2), torch.ones(10, 2)
    offsets[7] = torch.tensor([5.0, 1.0])  # 2 .. 8
    logits[3, 1] = 5.0
    starts, ends = torch.tensor([2.0, 2.0]), torch.tensor([8.0, 4.0])
    matches = assign_hungarian(logits, offsets, torch.ones(10, dtype=torch.bool), starts, ends, torch.tensor([0, 1]))
    assert matches[7] == 0 and matches[3] == 1 and int((matches >= 0).sum()) == 2


def test_hungarian_survives_predictions_that_are_not_finite():
    logits, offsets = torch.zeros(6, 2), torch.ones(6, 2)
    logits[1], offsets[2], offsets[3] = torch.nan, torch.inf, torch.nan
    matches = assign_hungarian(
        logits, offsets, torch.ones(6, dtype=torch.bool), torch.tensor([1.0]), torch.tensor([4.0]), torch.tensor([0])
    )
    assert int((matches >= 0).sum()) == 1


def pyramid_points(length, levels, finest=4.0):
    rows = []
    for level in range(levels):
        low = 0.0 if level == 0 else finest * 2 ** (level - 1)
        high = 1e4 if level == levels - 1 else finest * 2**level
        rows += [(float(place), 2.0**level, low, high) for place in range(0, length, 2**level)]
    columns = torch.tensor(rows).T
    return Points(*columns, valid=torch.ones(1, len(rows), dtype=torch.bool))


@settings(max_examples=200, deadline=None)
@given(instances, st.integers(1, 40), st.integers(1, 5), st.sampled_from([0.5, 1.5, 3.0]))
def test_points_equal_the_slow_reference(rows, length, levels, radius):
    starts, ends = columns(rows)
    points = pyramid_points(length, levels)
    expected = []
    for place, stride, low, high in zip(points.positions, points.strides, points.shortest, points.longest, strict=True):
        best, best_duration = -1, float("inf")
        for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            near = abs(place - (start + end) / 2) < radius * stride
            answers = start < place < end and near and low <= max(place - start, end - place) <= high
            if answers and end - start < best_duration:
                best, best_duration = index, end - start
        expected.append(best)
    assert assign_points(starts, ends, points, radius).tolist() == expected


def test_a_long_instance_belongs_to_a_coarse_level():
    points = pyramid_points(64, 6)
    matches = assign_points(torch.tensor([2.0, 50.0]), torch.tensor([42.0, 53.0]), points)
    assert set(points.strides[matches == 0].tolist()) == {8.0}  # its farther end is 20 to 32 away
    assert set(points.strides[matches == 1].tolist()) == {1.0}
