"""Crops, plain and varied: the times of a crop stay those of its features, whatever is done to both."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.config import AugmentConfig, BDRConfig, FolderData
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.signals.preparation import Framing
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training.batches import collate, training_batch
from temporalzoom.training.crops import Augmentation, Crop, channel_statistics, plain_crop, resample, rotation

FPS = 50.0
framings = st.builds(Framing, window=st.integers(1, 12), stride=st.integers(1, 8))


def make_sample(signal: np.ndarray, framing: Framing | None, starts: Any = (), ends: Any = ()) -> Sample:
    """starts, ends: in rows, of which row n is the time from n to n + 1."""
    grid = TimeGrid(1, 1, FPS) if framing is None else TimeGrid(framing.stride, framing.window, FPS)
    segments = Segments(np.asarray(starts) / FPS, np.asarray(ends) / FPS, ["walk"] * len(starts))
    return Sample("a", signal.astype(np.float32), grid, len(signal) / FPS, segments, framing)


def variations(**options: Any) -> AugmentConfig:
    """These alone: no channel is dropped by default."""
    return AugmentConfig(**{"drop": 0, **options})


def count_up(rows: int, channels: int = 1) -> np.ndarray:
    return np.repeat(np.arange(rows, dtype=np.float32)[:, None], channels, axis=1)


def rows_of(crop: Crop, framing: Framing, channels: int = 1) -> np.ndarray:
    """The rows that overlapping windows were cut from, each taken from the last window that has it. (N, C)"""
    rows = np.full((framing.rows(len(crop.features)), channels), np.nan, np.float32)
    for index, window in enumerate(crop.features):
        rows[index * framing.stride :][: framing.window] = window.reshape(framing.window, channels)
    return rows


def assert_same_crop(one: Crop, other: Crop) -> None:
    for name in ("features", "starts", "ends"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-6, err_msg=name)
    assert (one.low, one.high) == (other.low, other.high) and list(one.labels) == list(other.labels)


# Plain crops


@given(framings, st.integers(1, 90), st.integers(0, 40), st.integers(1, 20))
def test_a_plain_crop_is_a_slice_of_the_features(framing: Framing, rows: int, first: int, length: int):
    sample = make_sample(count_up(rows, 2), framing, [0.25 * rows], [0.75 * rows])
    first = min(first, len(sample) - 1)
    crop = plain_crop(sample, first, length)
    np.testing.assert_array_equal(crop.features, sample.features[first : first + length])
    # The middle of window `first` is position 0 of the crop.
    middle = first * framing.stride + framing.window / 2
    assert crop.starts[0] * framing.stride + middle == pytest.approx(0.25 * rows)
    assert crop.ends[0] * framing.stride + middle == pytest.approx(0.75 * rows)
    last = first + len(crop.features) == len(sample)
    assert (crop.low, crop.high) == (-np.inf if first == 0 else 0, np.inf if last else len(crop.features) - 1)


@given(framings, st.integers(1, 90), st.integers(1, 20), st.integers(0, 99), st.booleans())
def test_with_every_variation_off_a_crop_is_a_plain_one(framing, rows, length, seed, is_raw):
    sample = make_sample(count_up(rows), framing if is_raw else None, [3.0], [8.0])
    augmentation = Augmentation(variations(), [sample])
    crop = augmentation.crop(sample, length, np.random.default_rng(seed))
    first = int(crop.features[0, 0]) // (framing.stride if is_raw else 1)
    assert_same_crop(crop, plain_crop(sample, first, length))


@pytest.mark.parametrize(("framing", "begins"), [(None, range(10)), (Framing(6, 3), (0, 3, 6, 9))])
def test_varied_crops_start_wherever_plain_ones_do(framing: Framing | None, begins: Any):
    sample = make_sample(count_up(20), framing)
    length = 11 if framing is None else 2
    augmentation = Augmentation(variations(noise=1e-6), [sample])
    seen = {round(float(augmentation.crop(sample, length, np.random.default_rng(i)).features[0, 0])) for i in range(99)}
    expected = set(range(len(sample) - length + 1)) if framing is None else {3 * i for i in range(len(sample) - 1)}
    assert set(begins) <= seen == expected


def test_shift_starts_at_every_row_and_blends_none():
    sample = make_sample(count_up(20), Framing(6, 3))
    augmentation = Augmentation(variations(shift=True), [sample])
    begins = [float(augmentation.crop(sample, 2, np.random.default_rng(i)).features[0, 0]) for i in range(300)]
    assert set(begins) == set(range(20 - 9 + 1))


# Time


@settings(max_examples=200)
@given(
    framings,
    st.floats(0, 0.9),
    st.booleans(),
    st.integers(0, 10**6),
    st.integers(30, 150),
    st.integers(1, 30),
    st.data(),
)
def test_a_step_stays_where_the_annotation_says(framing, warp, shift, seed, rows, length, data):
    """The signal jumps from 0 to 1 at the start of an instance: the crop must say so too, to half a row."""
    framing = Framing(max(framing.window, framing.stride), framing.stride)  # windows that leave no row out
    start = data.draw(st.integers(1, rows - 1))
    signal = (np.arange(rows) >= start).astype(np.float32)[:, None]
    sample = make_sample(signal, framing, [start], [rows])
    crop = Augmentation(variations(warp=warp, shift=shift), [sample]).crop(sample, length, np.random.default_rng(seed))
    shown = rows_of(crop, framing)[:, 0]
    stated = crop.starts[0] * framing.stride + framing.window / 2  # in rows of the crop, of which 0.5 is the first
    jump = int((shown < 0.5).sum())  # between the middles of rows jump - 1 and jump
    if 0 < jump < len(shown):
        assert jump - 0.5 - 1e-4 <= stated <= jump + 0.5 + 1e-4
    elif jump == 0:
        assert stated <= 0.5 + 1e-4
    else:
        assert stated >= len(shown) - 0.5 - 1e-4


@settings(max_examples=100)
@given(st.floats(0.01, 0.9), st.integers(0, 10**6), st.integers(20, 100), st.integers(2, 40), st.booleans())
def test_warp_divides_durations_by_the_speed(warp: float, seed: int, rows: int, length: int, is_raw: bool):
    framing = Framing(2, 2) if is_raw else None
    sample = make_sample(count_up(rows), framing, [3.0], [13.0])
    crop = Augmentation(variations(warp=warp), [sample]).crop(sample, length, np.random.default_rng(seed))
    shown = crop.features[:, 0] if framing is None else rows_of(crop, framing)[:, 0]
    assert shown.min() >= 0 and shown.max() <= rows - 1
    stride = 1 if framing is None else framing.stride
    speed = 10 / (stride * (crop.ends[0] - crop.starts[0]))
    assert 1 - warp - 1e-6 <= speed <= 1 + warp + 1e-6
    # The signal counts rows, so that its slope is the speed.
    np.testing.assert_allclose(np.diff(shown), speed, rtol=1e-3, atol=1e-4)


def test_warp_makes_time_both_slower_and_faster():
    sample = make_sample(count_up(400), None, [0.0], [100.0])
    augmentation = Augmentation(variations(warp=0.2), [sample])
    crops = [augmentation.crop(sample, 50, np.random.default_rng(seed)) for seed in range(200)]
    speeds = np.array([100 / (crop.ends[0] - crop.starts[0]) for crop in crops])
    assert speeds.min() < 0.82 and speeds.max() > 1.18 and abs(speeds.mean() - 1) < 0.03


@settings(max_examples=200)
@given(framings, st.floats(0, 0.9), st.booleans(), st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 30))
def test_nothing_is_cut_off_where_no_further_position_fits(framing, warp, shift, seed, rows, length):
    sample = make_sample(count_up(rows), framing, [0.0], [10.0])
    crop = Augmentation(variations(warp=warp, shift=shift), [sample]).crop(sample, length, np.random.default_rng(seed))
    count = len(crop.features)
    assert 1 <= count <= length and crop.features.shape[1] == framing.window
    speed = 10 / (framing.stride * (crop.ends[0] - crop.starts[0]))
    begin, step = float(crop.features[0, 0]), framing.stride * speed
    left = rows - 1 - begin - (framing.rows(count) - 1) * speed
    if abs(begin - step) > 1e-3:
        assert crop.low == (0 if begin > step else -np.inf)
    if abs(left - step) > 1e-3:
        assert crop.high == (count - 1 if left > step else np.inf)


def test_an_action_at_the_end_of_a_short_recording_keeps_its_end():
    """As it does in a plain crop: the last window shows it, though its middle lies before."""
    sample = make_sample(count_up(40), Framing(10, 5), [10.0], [39.0])
    for options in (variations(noise=1e-6), variations(warp=0.001)):
        crop = Augmentation(options, [sample]).crop(sample, 100, np.random.default_rng(0))
        batch = collate([crop], ["walk"], BDRConfig(enabled=False))
        assert batch.ends[0].tolist() == pytest.approx(crop.ends.tolist())
        assert crop.ends[0] == pytest.approx((39 - 5) / 5, abs=0.2)
        assert crop.ends[0] > len(crop.features) - 1


# Resampling


@given(st.integers(1, 30), st.floats(0, 1), st.floats(0.2, 2), st.integers(1, 40))
def test_resample_is_linear_interpolation(rows: int, share: float, speed: float, wanted: int):
    signal = np.random.default_rng(rows).normal(size=(rows, 2)).astype(np.float32)
    wanted = min(wanted, int((rows - 1) / speed) + 1)
    begin = share * max(rows - 1 - (wanted - 1) * speed, 0)
    places = begin + speed * np.arange(wanted)
    expected = np.stack([np.interp(places, np.arange(rows), signal[:, c]) for c in range(2)], axis=1)
    found = resample(signal, begin, speed, wanted)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert found.dtype == np.float32


# Values


@given(st.integers(0, 10**6), st.floats(0, np.pi))
def test_rotations(seed: int, largest: float):
    matrix = rotation(np.random.default_rng(seed), largest).astype(np.float64)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-6)
    assert np.linalg.det(matrix) == pytest.approx(1, abs=1e-6)
    # The trace of a rotation is 1 + 2 cos(angle).
    assert (np.trace(matrix) - 1) / 2 >= np.cos(largest) - 1e-6


def test_rotations_go_up_to_the_largest():
    angles = [
        np.degrees(np.arccos(np.clip((np.trace(rotation(np.random.default_rng(i), np.radians(30))) - 1) / 2, -1, 1)))
        for i in range(300)
    ]
    assert 28 < max(angles) <= 30.01 and 13 < np.mean(angles) < 17


def random_sample(channels: int = 6, rows: int = 80, framing: Framing | None = Framing(6, 3)) -> Sample:
    random = np.random.default_rng(1)
    signal = random.normal(size=(rows, channels)) * np.arange(1, channels + 1) + 5
    return make_sample(signal, framing, [10.0, 40.0], [30.0, 55.0])


def varied(sample: Sample, seed: int = 0, **options: Any) -> np.ndarray:
    """The whole signal, varied."""
    return Augmentation(variations(**options), [sample]).vary(sample.signal, np.random.default_rng(seed))


@given(st.integers(0, 10**6), st.floats(1, 180))
def test_a_turned_sensor_keeps_lengths_and_all_triples_turn_together(seed: int, degrees: float):
    sample = random_sample()
    triples = sample.signal.reshape(-1, 2, 3)
    turned = varied(sample, seed, rotate=degrees).reshape(-1, 2, 3)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=2), np.linalg.norm(triples, axis=2), rtol=1e-5)
    between = np.einsum("nc,nc->n", triples[:, 0], triples[:, 1])
    np.testing.assert_allclose(np.einsum("nc,nc->n", turned[:, 0], turned[:, 1]), between, rtol=1e-3, atol=1e-2)
    matrix, *_ = np.linalg.lstsq(triples.reshape(-1, 3), turned.reshape(-1, 3), rcond=None)
    np.testing.assert_allclose(triples @ matrix, turned, atol=1e-3)  # one rotation for all rows
    assert not np.allclose(turned, triples) or np.trace(matrix) > 2.999


def test_noise_is_in_units_of_each_channel():
    sample = random_sample(rows=20_000)
    added = varied(sample, noise=0.5) - sample.signal
    np.testing.assert_allclose(added.std(axis=0), 0.5 * sample.signal.std(axis=0), rtol=0.05)
    assert np.abs(np.corrcoef(added.T) - np.eye(6)).max() < 0.05


def test_drop_silences_whole_channels():
    """At their mean, which standardization makes zero: the zero of a coordinate may be far outside of its values."""
    sample = random_sample()
    sample.signal[:, 1] += 500
    mean = sample.signal.mean(axis=0, dtype=np.float64).astype(np.float32)
    silent = np.array([(varied(sample, seed, drop=0.25) == mean) for seed in range(200)])
    assert (silent.all(axis=1) == silent.any(axis=1)).all()
    assert silent[:, 0].mean() == pytest.approx(0.25, abs=0.04)


def test_flags_of_missing_values_stay_flags():
    values = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    flags = (np.random.default_rng(1).random((60, 3)) < 0.3).astype(np.float32)
    sample = make_sample(np.concatenate([values, flags], axis=1), Framing(6, 6))
    options, filled = variations(rotate=40, noise=0.2), FolderData(missing="interpolate")
    rows = Augmentation(options, [sample], filled).vary(sample.signal, np.random.default_rng(2))
    np.testing.assert_array_equal(rows[:, 3:], flags)
    assert (rows[:, :3] != values).all()
    silent = Augmentation(variations(drop=1), [sample], filled).vary(sample.signal, np.random.default_rng(3))
    np.testing.assert_allclose(silent[:, :3], np.repeat(values.mean(axis=0)[None], 60, axis=0), atol=1e-6)
    assert (silent[:, 3:] == 1).all()  # silent is missing, and says so
    with pytest.raises(InputError, match="here are 2 channels"):
        Augmentation(options, [make_sample(np.zeros((9, 4)), Framing(3, 3))], filled)


def test_flags_of_keypoints_belong_to_no_single_channel():
    signal = np.concatenate([np.ones((60, 9)), np.zeros((60, 3))], axis=1, dtype=np.float32)  # three points
    poses = FolderData.model_validate({"missing": "interpolate", "keypoints": "xyc", "raw": True, "source": "folder"})
    sample = make_sample(signal, Framing(6, 6))
    silent = Augmentation(variations(drop=1), [sample], poses).vary(signal, np.random.default_rng(3))
    np.testing.assert_allclose(silent, signal)  # constant channels are at their mean
    with pytest.raises(InputError, match=r"augment\.rotate: .*data\.keypoints"):
        Augmentation(variations(rotate=10), [sample], poses)


def test_a_row_is_the_same_in_all_windows_that_show_it():
    """Signals are varied, then cut: noise drawn window by window would contradict itself."""
    framing = Framing(6, 2)
    sample = random_sample(framing=framing)
    options = variations(noise=1, rotate=30, warp=0.2, drop=0.2)
    features = Augmentation(options, [sample]).crop(sample, 12, np.random.default_rng(3)).features
    np.testing.assert_array_equal(features[:-1, 2 * 6 :], features[1:, : 4 * 6])
    assert not np.allclose(features, sample.features[: len(features)])


def test_the_sample_stays_as_it_was():
    sample = random_sample()
    before = sample.signal.copy()
    options = variations(noise=1, rotate=30, drop=0.5, shift=True)
    crop = Augmentation(options, [sample]).crop(sample, 12, np.random.default_rng(3))
    crop.features[:] = 0
    np.testing.assert_array_equal(sample.signal, before)


@given(st.integers(0, 2**31), st.integers(0, 10**6))
@settings(max_examples=20)
def test_a_varied_batch_depends_on_seed_and_step_only(seed: int, step: int):
    split = Split((random_sample(), random_sample(rows=50), random_sample(rows=9)), ("walk",))
    augmentation = Augmentation(variations(shift=True, warp=0.2, rotate=20, noise=0.1), split.samples)

    def batch(step: int) -> Any:
        return training_batch(split, seed, step, 3, 10, BDRConfig(), augmentation=augmentation)

    first = batch(step)
    other = batch(step + 1)
    again = batch(step)
    assert torch.equal(first.features, again.features) and torch.equal(first.distances, again.distances)
    assert all(torch.equal(a, b) for a, b in zip(first.starts + first.ends, again.starts + again.ends, strict=True))
    assert first.features.shape != other.features.shape or not torch.equal(first.features, other.features)


# Statistics


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.floats(-7, 4))
def test_statistics_are_those_of_all_rows(lengths: list[int], exponent: float):
    random = np.random.default_rng(sum(lengths))
    unit = 10**exponent  # volts or counts: a channel is no less alive for its unit
    signals = [(random.normal(size=(n, 2)) * unit * [1, 3] + unit).astype(np.float32) for n in lengths]
    mean, deviation = channel_statistics([make_sample(signal, None) for signal in signals])
    rows = np.concatenate(signals).astype(np.float64)
    np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-5, atol=1e-6 * unit)
    expected = rows.std(axis=0) if len(rows) > 1 else [1, 1]
    np.testing.assert_allclose(deviation, expected, rtol=1e-4)


def test_a_constant_channel_has_deviation_one():
    signal = np.tile(np.array([0, 0.1, 12345.678], np.float32), (50, 1))
    mean, deviation = channel_statistics([make_sample(signal, None)])
    np.testing.assert_array_equal(deviation, [1, 1, 1])
    np.testing.assert_allclose(mean, signal[0])


# What does not fit


def test_variations_that_need_a_raw_signal():
    features = replace(random_sample(), framing=None)
    with pytest.raises(InputError, match=r"augment.rotate: needs a raw signal of three-axis.*6 channels of features"):
        Augmentation(variations(rotate=10), [features])
    with pytest.raises(InputError, match=r"augment.shift: needs a raw signal"):
        Augmentation(variations(shift=True), [features])
    with pytest.raises(InputError, match=r"augment.rotate: .*, here are 4 channels$"):
        Augmentation(variations(rotate=10), [random_sample(channels=4)])


def test_noise_and_warp_take_features_too():
    sample = make_sample(count_up(40, 2), None, [10.0], [20.0])
    crop = Augmentation(variations(noise=0.1, warp=0.1, drop=0.1), [sample]).crop(sample, 16, np.random.default_rng(0))
    assert crop.features.shape == (16, 2)
