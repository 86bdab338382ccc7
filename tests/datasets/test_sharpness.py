"""Sharpness of boundaries: closed forms, a slow count, and what must not matter."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.datasets.sharpness import boundary_changes, entropy, feature_changes, sharpness
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

GRID = TimeGrid(4, 16, 25)


def at(*positions: float) -> Segments:
    """Segments that start at these positions and end far outside."""
    return Segments(GRID.to_seconds(positions), [1e6] * len(positions), ["x"] * len(positions))


def test_changes_are_distances_of_neighbours():
    assert feature_changes([[0, 0], [3, 4], [3, 4], [3, 5]]).tolist() == [5, 0, 1]
    assert len(feature_changes(np.zeros((1, 2)))) == len(feature_changes(np.zeros((0, 2)))) == 0


def test_a_boundary_has_the_change_of_its_step():
    changes = [10.0, 20.0, 30.0]  # of four positions
    assert boundary_changes(changes, at(0.0, 0.9, 1.1, 2.5), GRID).tolist() == [10, 10, 20, 30]
    assert boundary_changes(changes, at(-0.4, 3.0, 3.4), GRID).tolist() == [10, 30, 30]
    assert len(boundary_changes(changes, at(-0.6, 3.6, 100.0), GRID)) == 0  # not shown by any feature
    assert len(boundary_changes([], at(0.0), GRID)) == 0


def test_starts_and_ends_both_count():
    segments = Segments(GRID.to_seconds([0.5]), GRID.to_seconds([2.5]), ["x"])
    assert boundary_changes([1.0, 2.0, 3.0], segments, GRID).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (range(10), math.log2(10)),
        ([0] * 7 + [1] * 7, 1.0),
        ([0, 0, 0, 1], 0.25 * 2 + 0.75 * math.log2(4 / 3)),
        ([3.5] * 9, 0.0),
        ([0, 0.05, 0.099, 1], 0.25 * 2 + 0.75 * math.log2(4 / 3)),  # three in the first of ten bins
    ],
)
def test_entropy(values: list[float], expected: float):
    assert entropy(list(values)) == pytest.approx(expected)


def test_entropy_of_nothing_is_no_number():
    assert math.isnan(entropy([]))


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.integers(2, 12))
def test_entropy_against_counting(values: list[int], bins: int):
    low, width = min(values), (max(values) - min(values)) / bins
    counts: dict[int, int] = {}
    for value in values:
        place = 0
        while place < bins - 1 and value >= np.linspace(low, max(values), bins + 1)[place + 1]:
            place += 1
        counts[place if width else 0] = counts.get(place if width else 0, 0) + 1
    expected = -sum(c / len(values) * math.log2(c / len(values)) for c in counts.values())
    assert entropy(values, bins) == pytest.approx(expected, abs=1e-9)


def recording(seed: int, scale: float = 1.0, shift: float = 0.0):
    random = np.random.default_rng(seed)
    features = (scale * random.normal(size=(40, 3)) + shift).astype(np.float64)
    starts = random.uniform(0, 4, 6)
    return (lambda: features), Segments(starts, starts + 1, ["x"] * 6), GRID


@given(st.floats(0.01, 100), st.floats(-5, 5))
def test_unit_and_origin_of_the_features_do_not_matter(scale: float, shift: float):
    plain = sharpness([recording(0), recording(1)])
    other = sharpness([recording(0, scale, shift), recording(1, scale, shift)])
    assert other.boundaries == plain.boundaries == 24
    assert (other.entropy, other.ratio) == pytest.approx((plain.entropy, plain.ratio))
    assert (other.deviation, other.median) == pytest.approx((scale * plain.deviation, scale * plain.median))


def test_a_subset_is_all_its_recordings_together():
    parts = [recording(seed) for seed in range(3)]
    changes = [feature_changes(read()) for read, _, _ in parts]
    values = np.concatenate([boundary_changes(c, s, g) for c, (_, s, g) in zip(changes, parts, strict=True)])
    found = sharpness(parts)
    assert (found.deviation, found.median) == pytest.approx((np.std(values), np.median(values)))
    assert found.entropy == pytest.approx(entropy(values))
    assert found.overall == pytest.approx(np.median(np.concatenate(changes)))
    assert f"at 36 boundaries: H {found.entropy:.2f} bits" in str(found)


def test_a_step_is_found_where_it_is_annotated():
    features = np.repeat([[0.0], [10.0], [0.0]], 20, axis=0) + 0.1 * np.sin(np.arange(60))[:, None]
    right = Segments(GRID.to_seconds([19.5]), GRID.to_seconds([39.5]), ["x"])
    wrong = Segments(GRID.to_seconds([9.5]), GRID.to_seconds([29.5]), ["x"])
    assert sharpness([(lambda: features, right, GRID)]).ratio > 50
    assert sharpness([(lambda: features, wrong, GRID)]).ratio < 3


def test_what_is_not_finite_is_left_out():
    features = np.ones((10, 2))
    features[4] = np.nan
    found = sharpness([(lambda: features, at(1.0, 4.0, 7.0), GRID)])
    assert found.boundaries == 2 and found.overall == 0 and math.isnan(found.ratio)


def test_no_boundaries():
    for found in (sharpness([]), sharpness([(lambda: np.ones((5, 2)), Segments.empty(), GRID)])):
        assert found.boundaries == 0 and math.isnan(found.entropy) and "no boundary" in str(found)


def test_the_benchmark_is_as_sharp_as_it_is_made():
    """Less noise makes the same boundaries stand out more; they are of many kinds."""

    def of(noise: float):
        bench = ZoomBench(test_sequences=4, noise=noise, flashes_per_minute=0, window=0)
        samples = make_zoombench(bench, 0, "test").samples
        return sharpness(((lambda s=s: s.features), s.segments, s.grid) for s in samples)

    quiet, loud = of(0.05), of(1.0)
    assert quiet.ratio > 2 * loud.ratio > 2
    assert 1 < quiet.entropy < math.log2(10)
