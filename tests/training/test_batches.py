"""Crops: what a training step sees, and that it depends on (seed, step) only."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.bdr import distance_targets, distance_weights
from temporalzoom.config import BDRConfig
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training.batches import FAR_WEIGHT, MIN_VISIBLE, Batch, collate, training_batch
from temporalzoom.training.crops import plain_crop

CLASSES = ("jump", "run")
GRID = TimeGrid(stride=4, window=8, fps=25)
WITHOUT_BDR = BDRConfig(enabled=False)


def make_sample(length, starts=(), ends=(), labels=None, name="a", width=3, mark=0.0):
    """A sample whose features say where they come from: channel 0 the position, channel 1 the mark."""
    features = np.zeros((length, width), np.float32)
    features[:, 0], features[:, 1] = np.arange(length), mark
    labels = ["jump"] * len(starts) if labels is None else labels
    segments = Segments(GRID.to_seconds(starts), GRID.to_seconds(ends), labels)
    return Sample(name, features, GRID, GRID.duration(length), segments)


def make_batch(samples, first, length, bdr, reach=None) -> Batch:
    """`length` positions of each sample from its `first` on."""
    crops = [plain_crop(sample, start, length) for sample, start in zip(samples, first, strict=True)]
    return collate(crops, CLASSES, bdr, reach)


def marked_split(count, length=12):
    return Split(tuple(make_sample(length, [1.0], [5.0], mark=i, name=str(i)) for i in range(count)), CLASSES)


def assert_same(first, second):
    for name, value in vars(first).items():
        other = getattr(second, name)
        pairs = zip(value, other, strict=True) if isinstance(value, list) else [(value, other)]
        assert all(a is b is None or torch.equal(a, b) for a, b in pairs), name


@given(st.integers(0, 2**40), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_a_batch_depends_on_seed_and_step_only(seed, step):
    split = marked_split(7)
    batch = training_batch(split, seed, step, 3, 8, BDRConfig())
    for other in range(3):  # what was asked for in between makes no difference
        training_batch(split, seed + 1, other, 3, 8, BDRConfig())
    assert_same(batch, training_batch(split, seed, step, 3, 8, BDRConfig()))


def test_other_seeds_and_steps_give_other_batches():
    split = marked_split(50, length=100)
    features = [training_batch(split, seed, step, 4, 8, WITHOUT_BDR).features for seed in (0, 1) for step in (0, 1)]
    assert all(not torch.equal(a, b) for i, a in enumerate(features) for b in features[:i])


@pytest.mark.parametrize(("count", "batch_size"), [(7, 3), (6, 2), (2, 5), (1, 4)])
def test_every_sample_once_per_epoch(count, batch_size):
    epochs = 6
    steps = epochs * count // batch_size + 1
    seen = [
        int(mark)
        for step in range(steps)
        for mark in training_batch(marked_split(count), 3, step, batch_size, 8, WITHOUT_BDR).features[:, 0, 1]
    ]
    orders = [seen[e * count : (e + 1) * count] for e in range(epochs)]
    assert all(sorted(order) == list(range(count)) for order in orders)
    assert len({tuple(order) for order in orders}) > 1 or count < 3


def test_crops_start_everywhere_and_show_the_features_from_there():
    split = Split((make_sample(10),), CLASSES)
    crops = [training_batch(split, 0, step, 1, 8, WITHOUT_BDR).features[0, :, 0].tolist() for step in range(60)]
    assert {crop[0] for crop in crops} == {0, 1, 2}
    assert all(crop == [crop[0] + i for i in range(8)] for crop in crops)


def slow_instances(starts, ends, low, high, first):
    """Instances shown between positions low and high, relative to `first`: (index, start, end)."""
    shown = []
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        inside = min(end, high) - max(start, low)
        if inside >= 0 and inside >= MIN_VISIBLE * (end - start):
            shown.append((index, max(start, low) - first, min(end, high) - first))
    return shown


instances = st.lists(st.tuples(st.floats(-5, 65), st.floats(0.1, 30)), max_size=6)


@settings(max_examples=150, deadline=None)
@given(instances, st.integers(1, 60), st.integers(0, 59), st.integers(1, 80))
def test_instances_are_clipped_and_kept_by_their_visible_share(rows, length, first, crop):
    first = min(first, length - 1)
    starts = np.array([start for start, _ in rows])
    ends = starts + np.array([duration for _, duration in rows])
    labels = [CLASSES[i % 2] for i in range(len(rows))]
    sample = make_sample(length, starts, ends, labels)
    batch = make_batch([sample], [first], crop, WITHOUT_BDR)
    last = min(first + crop, length) - 1
    # What lies beyond the recording's own edges was not cut off by the crop.
    low, high = first if first > 0 else -np.inf, last if last < length - 1 else np.inf
    expected = slow_instances(*map(GRID.to_grid, (sample.segments.starts, sample.segments.ends)), low, high, first)
    assert batch.labels[0].tolist() == [index % 2 for index, _, _ in expected]
    np.testing.assert_allclose(batch.starts[0], [start for _, start, _ in expected], atol=1e-4)
    np.testing.assert_allclose(batch.ends[0], [end for _, _, end in expected], atol=1e-4)


def test_half_visible_is_enough_and_less_is_not():
    sample = make_sample(40, [10.0, 12.0, 30.0], [20.0, 18.0, 39.0])
    batch = make_batch([sample], [15], 11, WITHOUT_BDR)  # positions 15 .. 25
    assert batch.starts[0].tolist() == pytest.approx([0.0, 0.0]) and batch.ends[0].tolist() == pytest.approx([5.0, 3.0])
    assert len(make_batch([sample], [16], 11, WITHOUT_BDR).starts[0]) == 0


boundaries = st.lists(st.tuples(st.floats(-30, 130), st.floats(0.5, 40)), min_size=0, max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    boundaries,
    st.integers(0, 60),
    st.integers(1, 40),
    st.sampled_from([(1.0, 0.0), (5.0, 0.0), (5.0, 0.6), (16.0, 2.0), (None, 0.0), (None, 2.0)]),
    st.sampled_from(["start_end", "joint"]),
)
def test_a_crop_sees_the_field_of_the_whole_recording(rows, first, crop, radius_and_smoothing, channels):
    radius, smoothing = radius_and_smoothing
    starts = np.array([start for start, _ in rows])
    ends = starts + np.array([duration for _, duration in rows])
    sample = make_sample(100, starts, ends)
    smoothing = smoothing if radius is None else min(smoothing, (radius - 1) / 6)
    bdr = BDRConfig(radius=radius, channels=channels, smoothing=smoothing)
    batch = make_batch([sample], [first], crop, bdr)
    starts, ends = GRID.to_grid(sample.segments.starts), GRID.to_grid(sample.segments.ends)
    whole = distance_targets(starts, ends, 100, radius=radius, channels=channels, smoothing=smoothing)
    none = whole == -100.0  # no boundary and no radius: any number of weight zero
    field, weights = batch.distances[0], batch.distance_weights[0]
    whole, none = whole[first : first + crop], none[first : first + crop]
    torch.testing.assert_close(field[~none], whole[~none], rtol=0, atol=1e-4)
    assert (weights[none] == 0).all()


def can_be_measured(boundaries, t, low, high, radius):
    """Whether the crop shows the boundary nearest to t, or t is so far from all that only "far" is asked for."""
    if len(boundaries) == 0:
        return radius is not None
    nearest = min(boundaries, key=lambda b: (abs(t - b), -b))
    return (radius is not None and abs(t - nearest) > radius) or low <= nearest <= high


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-80, 500), st.integers(2, 160)), max_size=5),
    st.integers(0, 60),
    st.integers(1, 40),
    st.sampled_from([(4.9, 0.0), (4.9, 0.6), (15.9, 2.0), (None, 0.0), (None, 2.0)]),
    st.sampled_from(["start_end", "joint"]),
)
def test_no_weight_where_the_nearest_boundary_is_outside_the_crop(rows, first, crop, radius_and_smoothing, channels):
    radius, smoothing = radius_and_smoothing
    # fifths plus a bit: never on a position, never midway
    starts = np.array([start / 5 + 0.03 for start, _ in rows])
    ends = np.array([(start + duration) / 5 + 0.04 for start, duration in rows])
    sample = make_sample(100, starts, ends)
    smoothing = smoothing if radius is None else min(smoothing, (radius - 1) / 6)
    bdr = BDRConfig(radius=radius, channels=channels, smoothing=smoothing)
    weights = make_batch([sample], [first], crop, bdr).distance_weights[0]
    last = min(first + crop, 100) - 1
    fields = [starts, ends] if channels == "start_end" else [np.concatenate((starts, ends))]
    low, high = first if first > 0 else -np.inf, last if last < 99 else np.inf  # the recording's edges cut nothing off
    measurable = [[can_be_measured(f, t, low, high, radius) for f in fields] for t in range(first, last + 1)]
    whole = distance_weights(starts, ends, 100, channels=channels, radius=radius, far_weight=FAR_WEIGHT)
    torch.testing.assert_close(weights, whole[first : last + 1] * torch.tensor(measurable))


def test_features_that_may_not_be_written_to():
    sample = make_sample(20, [3.0], [9.0])
    sample.features.setflags(write=False)  # as of a memory-mapped file
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_batch([sample], [3], 10, BDRConfig()).features.add_(1.0)
    assert sample.features[3, 0] == 3


def test_padding():
    samples = [make_sample(30, [3.0], [9.0], mark=1), make_sample(5, mark=2), make_sample(1, mark=3)]
    batch = make_batch(samples, [4, 0, 0], 20, BDRConfig())
    assert batch.features.shape == (3, 20, 3) and batch.mask.shape == (3, 20)
    assert batch.mask.sum(1).tolist() == [20, 5, 1]
    assert batch.features[~batch.mask].abs().max() == 0
    assert (batch.features[batch.mask][:, 1] > 0).all()
    assert batch.distances.shape == batch.distance_weights.shape == (3, 20, 2)
    assert batch.distances.isfinite().all()
    assert [len(s) for s in batch.starts] == [1, 0, 0]


def test_padded_to_the_longest_crop_and_no_further():
    assert make_batch([make_sample(5), make_sample(3)], [0, 0], 100, WITHOUT_BDR).mask.shape == (2, 5)


@pytest.mark.parametrize(("channels", "count"), [("start_end", 2), ("joint", 1)])
def test_fields_exist_with_bdr_only(channels, count):
    sample = make_sample(20, [3.0], [9.0])
    assert make_batch([sample], [0], 20, BDRConfig(channels=channels)).distances.shape == (1, 20, count)
    batch = make_batch([sample], [0], 20, WITHOUT_BDR)
    assert batch.distances is None and batch.distance_weights is None


def test_true_boundaries_of_the_recording_not_of_the_crop():
    # Cut in the middle of [2, 30]; [24.2, 60] is hardly shown and not asked for, but its start is there.
    sample = make_sample(70, [2.0, 24.2], [30.0, 60.0])
    batch = make_batch([sample, make_sample(8)], [10, 0], 20, WITHOUT_BDR, reach=1)
    assert batch.starts[0].tolist() == [0.0]
    assert batch.boundaries.dtype == torch.bool and batch.boundaries.shape == batch.mask.shape == (2, 20)
    assert (10 + batch.boundaries[0].nonzero().flatten()).tolist() == [24, 25, 29]
    assert not batch.boundaries[1].any()


def test_without_a_reach_a_batch_says_nothing_about_true_boundaries():
    assert make_batch([make_sample(20, [3.0], [9.0])], [0], 20, BDRConfig()).boundaries is None
