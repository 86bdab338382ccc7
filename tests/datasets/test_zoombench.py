"""ZoomBench: the same bytes for the same seed, the statistics it promises, and boundaries where it says they are."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.statistics import overlapping_instances
from temporalzoom.datasets.zoombench import (
    MAY_BE_ZERO,
    ZoomBench,
    ZoomSample,
    make_zoombench,
    zoombench_classes,
)
from temporalzoom.datasets.zoombench_signal import SHARPNESS_KINDS, sharpness_kind, signal_grid
from temporalzoom.errors import InputError

SMALL = {"sequences": 3, "test_sequences": 2, "length": 96, "dimension": 4}
# Many instances at little cost, for statistics of the annotations.
MANY = ZoomBench(sequences=200, length=512, dimension=2)
# Long, isolated instances and nothing else: the signal dwarfs the background, whose strength is fixed.
CLEAN = {
    "sequences": 4, "length": 2048, "dimension": 8, "noise": 0, "signal": 1e6, "flashes_per_minute": 0,
    "blurs_per_minute": 0, "back_to_back": 0, "overlap": 0, "shortest": 20, "longest": 40, "mean_gap": 5,
}  # fmt: skip


def digest(split: Split) -> str:
    total = hashlib.sha256(repr(split.classes).encode())
    for sample in split.samples:
        assert isinstance(sample, ZoomSample)
        total.update(repr((sample.name, sample.duration, sample.grid, list(sample.segments))).encode())
        total.update(sample.features.tobytes() + sample.boundary_widths.tobytes())
    return total.hexdigest()


def knob(**changes: object) -> ZoomBench:
    return ZoomBench(**{**SMALL, **changes})


@pytest.fixture(scope="module")
def many() -> Split:
    return make_zoombench(MANY)


@pytest.fixture(scope="module")
def clean() -> Split:
    return make_zoombench(ZoomBench(**CLEAN))


# Seeds


def test_the_same_seed_gives_the_same_bytes():
    assert digest(make_zoombench(knob(), seed=5)) == digest(make_zoombench(knob(), seed=5))


@pytest.mark.parametrize("subset", ["train", "test"])
def test_the_same_seed_gives_the_same_bytes_in_another_process(subset: str):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_zoombench import digest, knob, make_zoombench\n"
        "print(digest(make_zoombench(knob(), 5, sys.argv[2])))"
    )
    command = [sys.executable, "-c", code, os.path.dirname(__file__), subset]
    environment = {**os.environ, "PYTHONHASHSEED": "123"}  # an order of a set would show
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == digest(make_zoombench(knob(), 5, subset))


def test_the_sequences_are_those_of_every_earlier_version():
    """Stored values: tables of different versions are about the same sequences."""
    bench = ZoomBench(sequences=2, test_sequences=2, length=128, dimension=6)
    sums = {"train": (617.199406163767, 49.19270604560188), "test": (-137.95659330720082, -132.28256046868046)}
    splits = {subset: make_zoombench(bench, 3, subset) for subset in sums}
    for subset, expected in sums.items():
        found = [sample.features.astype(np.float64).sum() for sample in splits[subset].samples]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    second = splits["train"].samples[1]
    assert second.segments.labels.tolist() == ["drop-swing", "lift-reach", "swing-drop"]
    np.testing.assert_allclose(second.segments.starts, [3.4484921486625466, 8.83477365552518, 11.146787621553788])
    np.testing.assert_allclose(second.segments.ends, [5.964058055832902, 9.560005828191963, 11.972004480044877])
    assert isinstance(second, ZoomSample)
    np.testing.assert_allclose(second.boundary_widths[0], [3.341696415104782, 2.867661853430552])
    expected = [2.3775410652160645, -2.5355043411254883, 1.5868746042251587, 0.02429317682981491]
    np.testing.assert_allclose(second.features[77, :4], expected, atol=1e-5)


def test_seeds_subsets_and_sequences_differ():
    splits = [make_zoombench(knob(test_sequences=3), seed, subset) for seed in (0, 1) for subset in ("train", "test")]
    assert len({digest(split) for split in splits}) == 4
    arrays = [sample.features.tobytes() for split in splits for sample in split.samples]
    assert len(set(arrays)) == len(arrays) == 12
    assert len({sample.name for split in splits[:2] for sample in split.samples}) == 6


def test_more_sequences_leave_the_first_ones_as_they_are():
    few, more = (make_zoombench(knob(sequences=count)) for count in (2, 5))
    assert digest(few) == digest(Split(more.samples[:2], more.classes))


# Knobs


def test_every_knob_has_an_effect():
    changes: dict[str, float] = {
        "sequences": 4, "length": 97, "dimension": 5, "classes": 4, "stride": 5, "window": 9, "fps": 25,
        "noise": 0.5, "signal": 5, "shortest": 0.4, "longest": 13, "mean_gap": 1, "back_to_back": 0.5,
        "overlap": 0.5, "flashes_per_minute": 60, "blurs_per_minute": 60,
    }  # fmt: skip
    assert set(changes) == {field.name for field in fields(ZoomBench)} - {"test_sequences"}
    plain = digest(make_zoombench(knob()))
    for name, value in changes.items():
        assert digest(make_zoombench(knob(**{name: value}))) != plain, name


def test_knobs_that_cannot_be_are_refused_by_name():
    for field in fields(ZoomBench):
        for value in (-1, float("nan"), float("inf"), *(() if field.name in MAY_BE_ZERO else (0,))):
            with pytest.raises(InputError, match=rf"zoombench: {field.name} must"):
                knob(**{field.name: value})
    for count in (3, 7):
        with pytest.raises(InputError, match=rf"classes come in pairs: an even number is needed, got {count}"):
            knob(classes=count)
    with pytest.raises(InputError, match=r"shortest must be at most longest \(2\), got 3"):
        knob(shortest=3.0, longest=2.0)
    with pytest.raises(InputError, match=r"back_to_back and overlap must be at most 1 together, got 0.6 and 0.5"):
        knob(back_to_back=0.6, overlap=0.5)


def test_knobs_as_they_are_typed():
    assert ZoomBench.parse(["sequences=4", "noise=0.5"]) == ZoomBench(sequences=4, noise=0.5)
    for typed, words in (
        ("sequences=2.5", "a whole number"),
        ("noise=loud", "a number"),
        ("nois=1", "one of sequences"),
    ):
        with pytest.raises(InputError, match=words):
            ZoomBench.parse([typed])


def test_counts_shapes_and_times_are_what_was_asked_for():
    bench = knob(stride=2, window=16, fps=25)
    for subset, count in (("train", 3), ("test", 2)):
        split = make_zoombench(bench, subset=subset)
        assert len(split.samples) == count and split.input_width == 4 and len(split.classes) == 6
        for sample in split.samples:
            assert sample.features.shape == (96, 4) and sample.features.dtype == np.float32
            assert sample.duration == pytest.approx((95 * 2 + 16) / 25)
            assert sample.grid == signal_grid(bench)
            assert isinstance(sample, ZoomSample) and sample.boundary_widths.shape == (len(sample.segments), 2)


def total_variation(split: Split) -> float:
    return float(np.mean([np.abs(np.diff(sample.features, axis=0)).mean() for sample in split.samples]))


def test_flashes_are_strong_and_blurs_smooth():
    quiet = {"noise": 0, "flashes_per_minute": 0, "blurs_per_minute": 0, "length": 512}
    plain, flashes, blurs = (
        make_zoombench(knob(**{**quiet, **change}))
        for change in ({}, {"flashes_per_minute": 30}, {"blurs_per_minute": 60})
    )
    norms = [max(np.linalg.norm(s.features, axis=1).max() for s in split.samples) for split in (plain, flashes)]
    assert norms[1] > norms[0] + 3
    assert total_variation(flashes) > 1.1 * total_variation(plain)
    assert total_variation(blurs) < 0.9 * total_variation(plain)
    # Neither is an action: the annotations stay.
    assert plain.truth() == flashes.truth() == blurs.truth()


@pytest.mark.parametrize("settings", [{}, {"window": 0}, {"fps": 0.1}])
def test_a_single_position_is_enough(settings: dict):
    split = make_zoombench(knob(length=1, **settings))
    assert [sample.features.shape for sample in split.samples] == [(1, 4)] * 3
    assert all(np.isfinite(sample.features).all() for sample in split.samples)


# Annotations


def test_every_instance_lies_within_its_recording(many: Split):
    assert sum(len(sample.segments) for sample in many.samples) > 2000
    for sample in many.samples:
        assert (sample.segments.starts >= 0).all() and (sample.segments.ends <= sample.duration).all()
        assert (sample.segments.durations >= MANY.shortest - 1e-9).all()
        assert (sample.segments.durations <= MANY.longest + 1e-9).all()


def test_durations_go_from_under_a_second_to_over_ten(many: Split):
    durations = np.concatenate([sample.segments.durations for sample in many.samples])
    assert np.mean(durations < 1) > 0.1 and np.mean(durations > 10) > 0.05
    # Log-uniform, but for long ones that find no room at the end: medians near the geometric mean.
    assert np.median(durations) == pytest.approx(np.sqrt(MANY.shortest * MANY.longest), rel=0.1)


def test_boundaries_are_sharp_medium_and_gradual_in_the_promised_shares(many: Split):
    widths = np.concatenate([sample.boundary_widths for sample in many.samples if isinstance(sample, ZoomSample)])
    for column in widths.T:  # starts, ends
        shares = np.bincount(sharpness_kind(column), minlength=3) / len(column)
        np.testing.assert_allclose(shares, (0.32, 0.40, 0.28), atol=0.03)
    assert widths.min() > 0 and widths.max() <= 9


def test_kinds_of_sharpness():
    kinds = sharpness_kind(np.array([0.3, 1.99, 2.0, 3.99, 4.0, 9.0]))
    assert [SHARPNESS_KINDS[kind] for kind in kinds] == ["sharp", "sharp", "medium", "medium", "gradual", "gradual"]


def test_some_instances_touch_and_some_overlap(many: Split):
    pairs = [(a, b) for sample in many.samples for a, b in pairwise(sample.segments)]
    touching = np.mean([b[0] == a[1] for a, b in pairs])
    overlapping = np.mean([b[0] < a[1] for a, b in pairs])
    assert touching == pytest.approx(MANY.back_to_back, abs=0.03)
    assert overlapping == pytest.approx(MANY.overlap, abs=0.03)
    for (_, end, label, _), (start, _, following, _) in pairs:
        if start <= end:  # the end of a-b and the start of b-a look the same
            assert not set(label.split("-")) & set(following.split("-"))


def test_touching_and_overlapping_can_be_switched_off():
    split = make_zoombench(knob(length=512, back_to_back=0, overlap=0))
    assert sum(overlapping_instances(sample.segments) for sample in split.samples) == 0
    assert all(b[0] > a[1] for sample in split.samples for a, b in pairwise(sample.segments))


def test_every_class_occurs_about_as_often(many: Split):
    labels = np.concatenate([sample.segments.labels for sample in many.samples])
    names, counts = np.unique(labels, return_counts=True)
    assert set(names) == set(many.classes)
    np.testing.assert_allclose(counts / counts.sum(), 1 / len(names), atol=0.03)


@pytest.mark.parametrize("count", [2, 6, 12, 30])
def test_classes_come_in_pairs_of_opposite_order(count: int):
    classes = zoombench_classes(ZoomBench(classes=count))
    assert len(set(classes)) == count
    for one, other in zip(classes[::2], classes[1::2], strict=True):
        assert one.split("-") == other.split("-")[::-1]


# Noise


@pytest.fixture(scope="module")
def noise() -> NDArray[np.float64]:
    """(S, T, D) of noise so strong that nothing else is left."""
    bench = ZoomBench(sequences=20, length=512, dimension=16, noise=1e3, signal=1e-6)
    return np.stack([sample.features for sample in make_zoombench(bench).samples]).astype(np.float64)


def test_noise_has_the_strength_of_its_knob(noise: NDArray[np.float64]):
    assert noise.std() == pytest.approx(1e3, rel=0.05)
    assert noise.mean() == pytest.approx(0, abs=20)


def test_noise_is_correlated_in_time_like_an_ar1_process(noise: NDArray[np.float64]):
    for lag in (1, 2, 3):
        assert np.corrcoef(noise[:, lag:].ravel(), noise[:, :-lag].ravel())[0, 1] == pytest.approx(0.4**lag, abs=0.02)


def test_channels_and_sequences_are_independent(noise: NDArray[np.float64]):
    across = np.corrcoef(noise.reshape(-1, noise.shape[2]).T) - np.eye(noise.shape[2])
    assert np.abs(across).max() < 0.06
    assert abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.05


def test_noise_has_heavy_tails(noise: NDArray[np.float64]):
    assert stats.kurtosis(noise.ravel()) > 5  # 0 for Gaussian noise
    innovations = (noise[:, 1:] - 0.4 * noise[:, :-1]).ravel() / (1e3 * np.sqrt((1 - 0.4**2) / 3))
    levels = [0.001, 0.01, 0.1, 0.25, 0.75, 0.9, 0.99, 0.999]  # a t3's moments do not settle, its quantiles do
    np.testing.assert_allclose(np.quantile(innovations, levels), stats.t(3).ppf(levels), rtol=0.08)


def test_noise_is_as_strong_at_the_first_position():
    bench = ZoomBench(sequences=400, length=2, dimension=32, noise=1e3, signal=1e-6)
    first = np.abs([sample.features[0] for sample in make_zoombench(bench).samples]) / 1e3
    assert np.median(first) == pytest.approx(stats.t(3).ppf(0.75) / np.sqrt(3), rel=0.04)


# Boundaries


def crossing(sample: ZoomSample, row: int, side: int) -> tuple[float, float]:
    """Where the features pass half height at a start (side 0) or an end (1), in seconds; the ramp's width in frames.

    The height is measured along the look of the phase next to the boundary: the features a tenth into the instance,
    where the ramp is over and the change of phase has not begun.
    """
    start, end = sample.segments.starts[row], sample.segments.ends[row]
    boundary, inside = (start, 0.9 * start + 0.1 * end) if side == 0 else (end, 0.1 * start + 0.9 * end)
    features = sample.features.astype(np.float64)
    look = features[round(float(sample.grid.to_grid(inside)))]
    height = features @ look / (look @ look)
    near = np.arange(*np.round(sample.grid.to_grid([boundary - 1.5, boundary + 1.5])).astype(int))
    (at,) = near[(height[near] < 0.5) != (height[near + 1] < 0.5)]
    assert (height[at + 1] > height[at]) == (side == 0)
    position = at + (0.5 - height[at]) / (height[at + 1] - height[at])
    low, high = sorted(stats.norm.ppf(height[at : at + 2]))
    return float(sample.grid.to_seconds(position)), float(sample.grid.stride / (high - low))


def isolated(split: Split) -> Iterator[tuple[ZoomSample, int, int]]:
    """Boundaries `(sample, row, side)` with two seconds of background on their outer side."""
    for sample in split.samples:
        assert isinstance(sample, ZoomSample)
        gaps = np.append(sample.segments.starts, sample.duration) - np.append(0.0, sample.segments.ends)
        for row in range(len(sample.segments)):
            yield from ((sample, row, side) for side in (0, 1) if gaps[row + side] > 2)


@pytest.mark.parametrize("settings", [{}, {"stride": 2, "window": 16, "fps": 25}, {"stride": 8, "window": 32}])
def test_features_cross_half_height_exactly_at_the_annotated_time(settings: dict):
    split = make_zoombench(ZoomBench(**{**CLEAN, **settings}))
    errors: dict[int, list[float]] = {0: [], 1: []}
    for sample, row, side in isolated(split):
        if sample.boundary_widths[row, side] < 2:
            annotated = (sample.segments.starts, sample.segments.ends)[side][row]
            errors[side].append((crossing(sample, row, side)[0] - annotated) / sample.grid.step_seconds)
    for side in (0, 1):
        assert len(errors[side]) >= 4
        assert np.abs(errors[side]).max() < 0.1, "in strides"
        assert abs(np.mean(errors[side])) < 0.05, "no bias to either side"


def test_ramps_have_the_width_that_is_told(clean: Split):
    measured, told = [], []
    for sample, row, side in isolated(clean):
        measured.append(crossing(sample, row, side)[1])
        told.append(np.sqrt(sample.boundary_widths[row, side] ** 2 + sample.grid.window**2 / 12))
    assert len(told) > 20 and max(told) > 6
    np.testing.assert_allclose(measured, told, rtol=0.02)


def looks(split: Split, share: float) -> dict[str, NDArray[np.float64]]:
    """Mean direction of each class's features at a share of its instances' durations."""
    sums: dict[str, NDArray[np.float64]] = {}
    for sample in split.samples:
        for start, end, label, _ in sample.segments:
            at = round(float(sample.grid.to_grid(start + share * (end - start))))
            sums[label] = sums.get(label, np.zeros(split.input_width)) + sample.features[at]
    return {label: total / np.linalg.norm(total) for label, total in sums.items()}


def test_paired_classes_are_the_same_two_phases_in_opposite_order(clean: Split):
    early, late = looks(clean, 0.15), looks(clean, 0.85)
    pairs = [(a, b) for a, b in zip(clean.classes[::2], clean.classes[1::2], strict=True) if {a, b} <= set(early)]
    assert pairs
    for one, other in pairs:
        assert early[one] @ late[other] > 0.95 and late[one] @ early[other] > 0.95
        assert early[one] @ late[one] < 0.9


def test_subsets_show_the_same_classes(clean: Split):
    train, test = looks(clean, 0.15), looks(make_zoombench(ZoomBench(**CLEAN), 0, "test"), 0.15)
    shared = set(train) & set(test)
    assert len(shared) >= 4
    assert all(train[label] @ test[label] > 0.95 for label in shared)


def test_samples_are_values():
    sample = make_zoombench(knob()).samples[0]
    assert {field.name for field in fields(ZoomSample)} >= {"signal", "segments", "boundary_widths"}
    with pytest.raises(AttributeError):
        sample.name = "other"  # type: ignore[misc]
