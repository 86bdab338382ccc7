"""What a user sees of all that was found: against brute force, and in closed form."""

import time
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.config import InferenceConfig, load_config
from temporalzoom.errors import InputError
from temporalzoom.inference.selection import (
    Selection,
    best_rows,
    drop_low,
    drop_short,
    merge_near,
    select,
    without_overlap,
)
from temporalzoom.segments import Segments


@st.composite
def found(draw, most=9, shortest=0):
    """Segments on a grid of quarter seconds, so that many touch; scores that differ."""
    count = draw(st.integers(0, most))
    starts = np.array(draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)), float) / 4
    lengths = np.array(draw(st.lists(st.integers(shortest, 16), min_size=count, max_size=count)), float) / 4
    labels = draw(st.lists(st.sampled_from(["run", "sit", "eat"]), min_size=count, max_size=count))
    scores = draw(st.lists(st.floats(0.01, 1), min_size=count, max_size=count))
    return Segments(starts, starts + lengths, labels, scores)


def shared(a, b):
    return max(min(a[1], b[1]) - max(a[0], b[0]), 0.0)


def exclude(a, b):
    """They share at least half of the shorter one."""
    return 2 * shared(a, b) >= min(a[1] - a[0], b[1] - b[0])


def best_total(rows):
    """Of all subsets without a pair that excludes each other."""
    subsets = (chosen for size in range(len(rows) + 1) for chosen in combinations(rows, size))
    fitting = (c for c in subsets if not any(exclude(a, b) for a, b in combinations(c, 2)))
    return max(sum((end - start) * score for start, end, _, score in c) for c in fitting)


# Without overlap


@given(found(shortest=1))
def test_the_best_total_of_all_subsets(segments):
    rows = best_rows(segments.starts, segments.ends, segments.scores * segments.durations)
    chosen = list(segments[rows])
    assert not any(exclude(a, b) for a, b in combinations(chosen, 2))
    total = sum((end - start) * score for start, end, _, score in chosen)
    assert total == pytest.approx(best_total(list(segments)), rel=1e-12)


@given(found())
def test_nothing_overlaps_and_little_is_cut(segments):
    kept = without_overlap(segments)
    lasting = kept[kept.durations > 0]
    assert all(b <= c for (_, b, _, _), (c, _, _, _) in pairwise(lasting))
    for start, end, label, score in lasting:
        own = [s for s in segments if s[2:] == (label, score) and s[0] <= start and end <= s[1]]
        assert own and 2 * (end - start) > min(e - s for s, e, _, _ in own)
    instants = segments[segments.durations == 0]
    assert kept[kept.durations == 0] == instants.sort("start")
    assert without_overlap(kept) == kept


def test_a_slight_overlap_is_cut_in_its_middle_and_a_large_one_is_decided():
    slight = Segments([0, 4], [5, 9], ["run", "sit"], [0.9, 0.3])
    assert list(without_overlap(slight)) == [(0, 4.5, "run", 0.9), (4.5, 9, "sit", 0.3)]
    half = Segments([0, 4], [6, 8], ["run", "sit"], [0.9, 0.3])  # 2 of 4 seconds
    assert list(without_overlap(half)) == [(0, 6, "run", 0.9)]
    touching = Segments([0, 5, 5], [5, 9, 5], ["run", "sit", "jump"], [0.1, 0.9, 0.5])
    assert without_overlap(touching) == touching.sort("start")
    # One long segment of a middling score, or two short ones of high scores: what covers more for sure.
    nested = Segments([0, 0, 6], [10, 4, 10], ["run", "sit", "eat"], [0.5, 0.9, 0.9])
    assert without_overlap(nested).labels.tolist() == ["sit", "eat"]
    assert without_overlap(nested[[0, 1]]).labels.tolist() == ["run"]


def test_many_segments_take_no_time():
    random = np.random.default_rng(0)
    starts = random.uniform(0, 1e4, 20_000)
    many = Segments(starts, starts + random.uniform(0.1, 20, len(starts)), ["run"] * len(starts), random.random(20_000))
    began = time.perf_counter()
    kept = without_overlap(many)
    assert time.perf_counter() - began < 10 and (kept.starts[1:] >= kept.ends[:-1]).all() and len(kept) > 500


# Joining, lengths, scores


@given(found(), st.sampled_from([0.25, 0.5, 1.0]))
def test_merging_leaves_gaps_and_loses_no_time(segments, gap):
    merged = merge_near(segments, gap)
    for label in set(segments.labels.tolist()):
        before, after = (s.filter(labels=label).sort("start") for s in (segments, merged))
        assert all(c - b > gap for (_, b, _, _), (c, _, _, _) in pairwise(after))
        for start, end, _, score in before:
            assert any(a <= start and end <= b and score <= high for a, b, _, high in after)
        for start, end, _, score in after:  # nothing but gaps of at most that length is added
            inside = before.filter(between=(start, np.nextafter(end, np.inf)))
            assert (start, end, score) == (inside.starts.min(), inside.ends.max(), inside.scores.max())
            reached = np.maximum.accumulate(inside.ends)
            assert (inside.starts[1:] - reached[:-1] <= gap).all()
    assert merge_near(merged, gap) == merged


def test_without_a_gap_nothing_is_merged_and_each_class_has_its_own():
    segments = Segments([0, 1, 1.3], [1, 3, 2], ["run", "run", "run"], [0.3, 0.2, 0.1])
    assert merge_near(segments, 0.0) == segments
    both = Segments([0, 1.3, 0, 1.3], [1, 2, 1, 2], ["run", "run", "sit", "sit"], [0.4, 0.3, 0.2, 0.1])
    merged = merge_near(both, {"default": 0.0, "sit": 0.3})  # 1.3 - 1.0 > 0.3 in floating point
    assert list(merged) == [(0, 1, "run", 0.4), (1.3, 2, "run", 0.3), (0, 2, "sit", 0.2)]


def test_thresholds_and_lengths_of_classes():
    segments = Segments([0, 1, 1.1], [1, 2, 1.4], ["run", "sit", "run"], [0.5, 0.4, 0.3])
    assert drop_low(segments, {"default": 0.45, "sit": 0.4}).labels.tolist() == ["run", "sit"]
    assert drop_short(segments, {"default": 0.0, "run": 0.3}) == segments
    assert drop_short(segments, 0.31).labels.tolist() == ["run", "sit"]


@given(found(), st.floats(0, 1), st.sampled_from([0, 0.3]), st.sampled_from([0, 0.6, 2]), st.booleans())
def test_all_at_once(segments, threshold, merge_gap, min_length, no_overlap):
    wanted = Selection(threshold, merge_gap, min_length, no_overlap)
    shown = select(segments, wanted)
    assert (shown.scores >= threshold).all() and (shown.durations >= min_length - 1e-9).all()
    assert (np.diff(shown.scores) <= 0).all() and select(segments, wanted, 2) == shown[:2]
    if not (merge_gap or min_length or no_overlap):
        assert shown == segments.filter(min_score=threshold).sort("score")


def test_short_neighbours_are_merged_before_they_are_measured():
    segments = Segments([0, 0.5], [0.4, 0.9], ["run", "run"], [0.9, 0.8])
    assert list(select(segments, Selection(merge_gap=0.1, min_length=0.9))) == [(0, 0.9, "run", 0.9)]
    assert not len(select(segments, Selection(min_length=0.9)))


# The settings


def test_settings_of_classes_are_layered(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("inference: {threshold: 0.35, min_length: {run: 0.5}, merge_gap: 1e-1}")
    options = load_config(file, ["inference.threshold={sit: 0.5}", "inference.min_length={sit: 2}"]).inference
    assert options.threshold == {"default": 0.35, "sit": 0.5}
    assert options.min_length == {"default": 0.0, "run": 0.5, "sit": 2.0} and options.merge_gap == 0.1
    assert load_config(file, ["inference.min_length=1"]).inference.min_length == 1.0
    assert load_config(None, ["inference.threshold={sit: 0.5}"]).inference.threshold == {"default": 0.2, "sit": 0.5}
    wanted = Selection.of(options).changed(threshold=0.1, min_length={"run": 3.0})
    assert wanted.threshold == 0.1 and wanted.min_length == {"default": 0.0, "run": 3.0, "sit": 2.0}
    assert Selection.of(InferenceConfig()) == Selection(threshold=0.2)


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("threshold=1.5", r"threshold: must be a number from 0 to 1, or \{default: NUMBER, CLASS: NUMBER\}, got 1.5"),
        ("threshold=[1]", "threshold: must be a number"),
        ("threshold=true", "got True"),
        ("threshold={run: 2}", "threshold: 'run' must be a number from 0 to 1, got 2"),
        ("min_length=-1", "min_length: must be a number from 0 on"),
        ("min_length={on: 1}", "min_length: names of classes must be text, got True"),
        ("merge_gap=.inf", "merge_gap: must be a number"),
        ("no_overlap=maybe", "no_overlap: must be true or false"),
    ],
)
def test_what_no_setting_is(override, complaint):
    with pytest.raises(InputError, match=complaint):
        load_config(None, [f"inference.{override}"])
