"""Blocked bootstrap: against test sets written out copy by copy, and cases whose distribution is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from temporalzoom.errors import InputError
from temporalzoom.metrics import bootstrap, evaluate_detections
from temporalzoom.metrics.bootstrap import (
    bootstrap_interval,
    bootstrap_map,
    bootstrap_p_value,
    draw_recordings,
    draw_seeds,
    mean_over_seeds,
    paired_difference,
)
from temporalzoom.segments import Segments

THRESHOLDS = (0.3, 0.5, 0.75)
LABELS = ("a", "b", "c")

# Small integers, so that matches, ties of score and recordings without a class or without anything are common.
spans = st.tuples(st.integers(0, 9), st.integers(0, 5)).map(lambda pair: (float(pair[0]), float(sum(pair))))
instances = st.lists(st.tuples(spans, st.sampled_from(LABELS)), max_size=5)
detections = st.lists(st.tuples(spans, st.sampled_from((*LABELS, "never annotated")), st.integers(0, 9)), max_size=10)
truths = st.dictionaries(st.sampled_from("tuvw"), instances, min_size=1).filter(lambda truth: any(truth.values()))


def segments(rows):
    spans_, labels, *scores = zip(*rows, strict=True) if rows else ((), ())
    return Segments([s for s, _ in spans_], [e for _, e in spans_], labels, *scores)


@st.composite
def resampled_sets(draw):
    truth = {name: segments(rows) for name, rows in draw(truths).items()}
    found = {
        name: segments(rows) for name, rows in draw(st.dictionaries(st.sampled_from(list(truth)), detections)).items()
    }
    counts = st.lists(st.integers(0, 3), min_size=len(truth), max_size=len(truth)).filter(any)
    return truth, found, np.array(draw(st.lists(counts, min_size=1, max_size=4)))


def ranked(found):
    """The same ranking without equal scores, so that copies have their place in it beside the original."""
    scores = np.concatenate([s.scores for s in found.values()]) if found else np.empty(0)
    places = np.empty(len(scores))
    places[np.argsort(-scores, kind="stable")] = -np.arange(len(scores))
    parts = np.split(places, np.cumsum([len(s) for s in found.values()])[:-1]) if found else []
    return {
        name: Segments(s.starts, s.ends, s.labels, part) for (name, s), part in zip(found.items(), parts, strict=True)
    }


def written_out(by_recording, names, counts):
    """Each recording as often as it was drawn, every copy a recording of its own."""
    times = dict(zip(names, counts, strict=True))
    return {f"{name} {copy}": s for name, s in by_recording.items() for copy in range(times[name])}


@settings(deadline=None, max_examples=300)
@given(resampled_sets())
def test_resamples_equal_test_sets_written_out(case):
    truth, found, draws = case
    result = bootstrap_map(truth, found, THRESHOLDS, draws=draws)
    for sample, counts in zip(result.samples, draws, strict=True):
        copies = written_out(truth, truth, counts)
        if any(map(len, copies.values())):
            expected = evaluate_detections(copies, written_out(ranked(found), truth, counts), THRESHOLDS).mAP
            np.testing.assert_allclose(sample, list(expected.values()), atol=1e-12)
        else:
            assert np.isnan(sample).all()


@settings(deadline=None, max_examples=200)
@given(resampled_sets())
def test_every_recording_once_is_the_evaluation_itself(case):
    truth, found, _ = case
    result = bootstrap_map(truth, found, THRESHOLDS, draws=np.ones((1, len(truth)), int))
    expected = evaluate_detections(truth, found, THRESHOLDS).mAP
    assert result.thresholds == tuple(expected)
    np.testing.assert_allclose(result.samples[0], list(expected.values()), atol=1e-12)
    np.testing.assert_array_equal(result.point, result.samples[0])


@settings(deadline=None, max_examples=100)
@given(resampled_sets(), st.integers(2, 5))
def test_everything_drawn_equally_often_changes_nothing(case, times):
    truth, found, _ = case
    result = bootstrap_map(truth, found, THRESHOLDS, draws=np.full((1, len(truth)), times))
    np.testing.assert_allclose(result.samples[0], result.point, atol=1e-12)


def recordings(count, found):
    """`count` recordings with one instance each; of the first `found` it is detected exactly. No false positives."""
    truth = {f"v{i}": Segments([i], [i + 10], ["a"]) for i in range(count)}
    return truth, {name: Segments(s.starts, s.ends, s.labels) for name, s in list(truth.items())[:found]}


def test_chunks_do_not_change_the_result(monkeypatch):
    truth, found = recordings(12, 7)
    whole = bootstrap_map(truth, found, THRESHOLDS, resamples=50).samples
    monkeypatch.setattr(bootstrap, "CHUNK", 20)
    np.testing.assert_array_equal(bootstrap_map(truth, found, THRESHOLDS, resamples=50).samples, whole)


def test_interval_of_found_or_not_is_binomial():
    # mAP of a resample is the share of drawn recordings that are among the found ones: Binomial(40, 0.7) / 40.
    result = bootstrap_map(*recordings(40, 28), [0.5])
    assert result.point == pytest.approx([0.7])
    expected = stats.binom.ppf([0.025, 0.975], 40, 0.7) / 40
    assert bootstrap_interval(result.samples[:, 0]) == pytest.approx(expected, abs=1 / 40 + 1e-9)
    assert result.samples.std() == pytest.approx(np.sqrt(0.7 * 0.3 / 40), rel=0.03)


def test_false_positives_of_undrawn_recordings_do_not_count():
    truth = {"v": Segments([0], [10], ["a"]), "background": Segments.empty()}
    found = {"v": Segments([0], [10], ["a"], [0.5]), "background": Segments([0, 20], [10, 30], ["a", "a"], [0.9, 0.6])}
    result = bootstrap_map(truth, found, [0.5], draws=[[1, 0], [1, 1], [1, 3], [2, 1], [0, 2]])
    assert result.samples[:, 0] == pytest.approx([1, 1 / 3, 1 / 7, 2 / 4, np.nan], nan_ok=True)


def test_a_class_that_is_not_drawn_is_left_out_of_the_mean():
    truth = {"v": Segments([0], [10], ["a"]), "w": Segments([0], [10], ["b"])}
    result = bootstrap_map(truth, {"v": truth["v"]}, [0.5], draws=[[1, 1], [2, 0], [0, 2], [3, 1]])
    assert result.samples[:, 0].tolist() == [0.5, 1, 0, 0.5]


def test_draws_are_samples_with_replacement():
    draws = draw_recordings(19, 20_000, seed=3)
    assert draws.shape == (20_000, 19) and (draws.sum(axis=1) == 19).all()
    assert draws.mean(axis=0) == pytest.approx(np.ones(19), abs=0.05)
    assert (draws == 0).mean() == pytest.approx((18 / 19) ** 19, abs=0.005)
    np.testing.assert_array_equal(draws, draw_recordings(19, 20_000, seed=3))
    assert (draws != draw_recordings(19, 20_000, seed=4)).any()


def test_seed_draws_give_the_variance_of_a_mean_without_bias():
    for count in [2, 3, 5]:
        draws = draw_seeds(count, 100_000)
        assert (draws.sum(axis=1) == count - 1).all()
        values = np.arange(count) ** 2.0
        means = draws @ values / (count - 1)
        assert means.mean() == pytest.approx(values.mean(), rel=0.02)
        assert means.var() == pytest.approx(values.var(ddof=1) / count, rel=0.02)


def test_one_model_is_always_drawn():
    assert (draw_seeds(1, 5) == 1).all()


def test_mean_over_seeds():
    truth, _ = recordings(10, 0)
    models = [bootstrap_map(truth, recordings(10, found)[1], [0.5], resamples=200) for found in (2, 10)]
    mean = mean_over_seeds(models)
    assert mean.point == pytest.approx([0.6])
    np.testing.assert_allclose(mean.samples, (models[0].samples + 1) / 2)
    only_second = mean_over_seeds(models, np.tile([0, 2], (200, 1)))
    assert (only_second.samples == 1).all() and only_second.point == pytest.approx([0.6])


def test_equal_systems_differ_by_exactly_nothing():
    truth, found = recordings(11, 5)
    reversed_order = dict(reversed(found.items()))
    for resample_seeds in (True, False):
        result = paired_difference(truth, [found], [reversed_order], THRESHOLDS, 500, resample_seeds=resample_seeds)
        assert result.average is None and list(result.by_threshold) == list(THRESHOLDS)
        for difference in result.by_threshold.values():
            assert (difference.value, difference.low, difference.high, difference.p) == (0, 0, 0, 1)


def test_the_order_of_models_makes_no_difference():
    truth, _ = recordings(11, 0)
    models = [recordings(11, found)[1] for found in (1, 4, 6, 9, 10)]
    difference = paired_difference(truth, models, models[::-1], [0.5], 500, resample_seeds=False).by_threshold[0.5]
    assert (difference.value, difference.low, difference.high, difference.p) == (0, 0, 0, 1)


def test_everything_against_nothing():
    truth, found = recordings(11, 11)
    thresholds = np.arange(0.3, 0.75, 0.1)
    result = paired_difference(truth, [found] * 3, [{}] * 2, thresholds, 999)
    for difference in (*result.by_threshold.values(), result.average):
        assert (difference.value, difference.low, difference.high) == (1, 1, 1)
        assert difference.p == 2 / 1000  # the smallest there is with 999 resamples
    opposite = paired_difference(truth, [{}], [found], thresholds, 999)
    assert opposite.average.value == -1 and opposite.average.p == 2 / 1000


def test_p_value_of_one_recording_more_is_known():
    # The difference is zero where the one recording that b misses is not drawn, and positive elsewhere.
    truth, found = recordings(8, 8)
    difference = paired_difference(truth, [found], [recordings(8, 7)[1]], [0.5]).by_threshold[0.5]
    assert difference.value == pytest.approx(1 / 8) and difference.low == 0
    assert difference.p == pytest.approx(2 * (7 / 8) ** 8, abs=0.03)
    assert difference.high == pytest.approx(stats.binom.ppf(0.975, 8, 1 / 8) / 8)


def test_systems_meet_the_same_recordings():
    # b finds what a finds, and one more of two instances in every recording: paired, that is half a point always.
    truth = {f"v{i}": Segments([0, 50], [10, 60], ["a", "a"]) for i in range(9)}
    some = {name: s[[0, 1] if i % 2 else []] for i, (name, s) in enumerate(truth.items())}
    more = {name: s[[0, 1] if i % 2 else [0]] for i, (name, s) in enumerate(truth.items())}
    draws = draw_recordings(9, 400)
    a, b = (bootstrap_map(truth, found, [0.5], draws=draws).samples[:, 0] for found in (more, some))
    even = draws[:, ::2].sum(axis=1) / 9
    np.testing.assert_allclose(a - b, even / 2, atol=1e-12)


def test_average_is_that_of_the_five_thresholds():
    truth = {f"v{i}": Segments([0], [100], ["a"]) for i in range(6)}
    lengths = dict(zip(truth, (35, 45, 55, 65, 75, 95), strict=True))  # tIoU in percent, and the score
    found = {name: Segments([0], [length], ["a"], [length]) for name, length in lengths.items()}
    thresholds = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9)
    result = paired_difference(truth, [found], [{}], thresholds, 300)
    assert result.average.value == pytest.approx((6 + 5 + 4 + 3 + 2) / 30)
    assert result.by_threshold[0.2].value == 1 and result.by_threshold[0.9].value == pytest.approx(1 / 6)


def test_resampling_seeds_tells_of_other_seeds():
    # Recordings all alike, one model perfect and one useless: only the models vary.
    truth, found = recordings(5, 5)
    fixed = paired_difference(truth, [found, {}], [{}], [0.5], 500, resample_seeds=False).by_threshold[0.5]
    assert (fixed.value, fixed.low, fixed.high) == (0.5, 0.5, 0.5)
    drawn = paired_difference(truth, [found, {}], [{}], [0.5], 500).by_threshold[0.5]
    assert (drawn.value, drawn.low, drawn.high) == (0.5, 0, 1) and drawn.p > 0.5
    # Each system draws its own models: equal lists differ by -1, 0 or 1.
    both = paired_difference(truth, [found, {}], [found, {}], [0.5], 500).by_threshold[0.5]
    assert (both.value, both.low, both.high, both.p) == (0, -1, 1, 1)


def test_interval_and_p_value_by_hand():
    values = np.arange(1, 1002.0)  # quantiles at steps of a thousandth
    assert bootstrap_interval(values, 0.9) == pytest.approx((51, 951))
    assert bootstrap_interval([np.nan, *values], 0.9) == pytest.approx((51, 951))
    assert bootstrap_p_value([1, 2, 3]) == 2 * 1 / 4
    assert bootstrap_p_value([-1, 0, *[1] * 37, np.nan]) == 2 * 3 / 40
    assert bootstrap_p_value([1, -1]) == 1


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=300))
def test_p_value_has_no_side_and_is_never_zero(values):
    p = bootstrap_p_value(values)
    assert 0 < p <= 1 and p == bootstrap_p_value(-np.array(values))
    low, high = bootstrap_interval(values)
    assert min(values) <= low <= high <= max(values)
    if low > 0 or high < 0:
        assert p <= 0.05 + 4 / (1 + len(values))


def test_errors_say_what_is_wrong():
    for call, message in [
        (lambda truth, found: bootstrap_map(truth, {**found, "x": found["v0"]}, [0.5]), "recording 'x'"),
        (lambda truth, found: bootstrap_map(truth, found, [0.5], draws=[[1, 1]]), r"\(resamples, 4\).*\(1, 2\)"),
        (lambda truth, found: bootstrap_map(truth, found, [0.5], draws=[[1, 1, 1, -1]]), "how often"),
        (lambda truth, found: bootstrap_map(truth, found, [0.5], draws=[[1.5, 1, 1, 1]]), "how often"),
        (lambda truth, found: bootstrap_map(truth, found, [0.5], draws=[[0, 0, 0, 0]]), "at least one"),
        (lambda truth, found: bootstrap_map(truth, found, [0.5], resamples=0), "0 resamples"),
        (lambda truth, found: bootstrap_map(truth, found, [0.5], resamples=2).over([0.7]), "0.7"),
        (lambda truth, found: paired_difference(truth, [found], [], [0.5], 5), "at least one trained model"),
        (lambda truth, found: paired_difference(truth, [found], [found], [0.5], 5, level=95), "got 95"),
        (lambda truth, found: bootstrap_interval([np.nan]), "0 numbers"),
    ]:
        with pytest.raises(InputError, match=message):
            call(*recordings(4, 2))


def test_results_of_different_draws_are_not_averaged():
    truth, found = recordings(4, 2)
    results = [bootstrap_map(truth, found, [0.5], resamples=count) for count in (10, 20)]
    with pytest.raises(InputError, match="different"):
        mean_over_seeds(results)
    with pytest.raises(InputError, match="20 draws of seeds for 10"):
        mean_over_seeds(results[:1], draw_seeds(1, 20))
