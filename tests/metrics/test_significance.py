"""Paired tests, Holm's correction and marks in tables: against scipy, textbook procedures and values by hand."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from temporalzoom.errors import InputError
from temporalzoom.metrics import evaluate_detections
from temporalzoom.metrics.significance import holm, marked, paired_test, recording_scores
from temporalzoom.segments import Segments

hundredths = st.integers(0, 100).map(lambda value: value / 100)
pairs = st.lists(st.tuples(hundredths, hundredths), min_size=2, max_size=30)
p_lists = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0])), max_size=15)


# Paired tests


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 60), st.floats(-1, 1))
def test_paired_test_is_scipys(seed, count, shift):
    a, b = np.random.default_rng(seed).normal(size=(2, count))
    a = a + shift
    result = paired_test(a, b, level=0.9)
    student = stats.ttest_rel(a, b)
    assert result.mean_difference == pytest.approx((a - b).mean())
    assert result.interval == pytest.approx(tuple(student.confidence_interval(0.9)), rel=1e-6, abs=1e-9)
    assert result.p_t == pytest.approx(student.pvalue, rel=1e-6)
    assert result.p_wilcoxon == pytest.approx(stats.wilcoxon(a, b).pvalue)
    assert result.dz == pytest.approx(student.statistic / np.sqrt(count), rel=1e-6, abs=1e-9)


def test_paired_test_by_hand():
    result = paired_test([2, 4, 6], [1, 2, 3])  # differences 1, 2, 3: mean 2, deviation 1
    assert result.mean_difference == pytest.approx(2) and result.dz == pytest.approx(2)
    half = 4.302652729911275 / np.sqrt(3)  # Student's 97.5 % point with 2 degrees of freedom, from a table
    assert result.interval == pytest.approx((2 - half, 2 + half))
    t = 2 * np.sqrt(3)
    assert result.p_t == pytest.approx(1 - t / np.sqrt(2 + t**2))  # the distribution's closed form for 2 degrees
    assert paired_test([1, 2, 3, 4, 5], [0, 0, 0, 0, 0]).p_wilcoxon == pytest.approx(2 / 2**5)


@given(st.lists(hundredths, min_size=2, max_size=20))
def test_equal_pairs_have_p_one(values):
    result = paired_test(values, values)
    assert (result.p_wilcoxon, result.p_t, result.mean_difference, result.dz) == (1, 1, 0, 0)
    assert result.interval == (0, 0)


def test_pairs_without_a_difference_are_left_out_of_the_ranks():
    changed, unchanged = np.array([0.5, 0.6, 0.8, 0.9, 0.7]), np.array([0.3, 0.3])
    base = changed - [0.1, 0.15, 0.21, 0.3, 0.32]
    with_equal = paired_test([*changed, *unchanged], [*base, *unchanged])
    assert with_equal.p_wilcoxon == pytest.approx(paired_test(changed, base).p_wilcoxon) == pytest.approx(2 / 2**5)


def test_rounding_errors_are_no_differences():
    result = paired_test([0.1 + 0.2, 0.7, 0.6], [0.3, 0.7, 0.2 + 0.4])
    assert result.p_t == 1 and result.p_wilcoxon == 1
    # 0.3 - 0.2 and 0.2 - 0.1 differ in the last bit; as differences they are one tie, so no variation is left.
    steady = paired_test([0.3, 0.2, 0.9], [0.2, 0.1, 0.8])
    assert steady.dz == np.inf and steady.p_t == 0 and steady.interval == pytest.approx((0.1, 0.1))
    assert paired_test([0.2, 0.1, 0.8], [0.3, 0.2, 0.9]).dz == -np.inf


@settings(deadline=None, max_examples=30)
@given(pairs)
def test_exchanged_systems_turn_the_sign_only(rows):
    a, b = np.array(rows).T
    assume((a != b).any())
    one, other = paired_test(a, b), paired_test(b, a)
    assert one.mean_difference == pytest.approx(-other.mean_difference) and one.dz == pytest.approx(-other.dz)
    assert one.interval == pytest.approx(tuple(-bound for bound in reversed(other.interval)))
    assert (one.p_t, one.p_wilcoxon) == pytest.approx((other.p_t, other.p_wilcoxon))
    assert 0 <= one.p_t <= 1 and 0 < one.p_wilcoxon <= 1


@settings(deadline=None, max_examples=30)
@given(pairs, st.sampled_from([1e-9, 1e-3, 1e6]))
def test_units_do_not_matter(rows, unit):
    a, b = np.array(rows).T
    plain, scaled = paired_test(a, b), paired_test(a * unit, b * unit)
    assert (scaled.p_t, scaled.p_wilcoxon, scaled.dz) == pytest.approx((plain.p_t, plain.p_wilcoxon, plain.dz))
    assert scaled.mean_difference == pytest.approx(plain.mean_difference * unit, rel=1e-9, abs=1e-12 * unit)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1, 2], [1, 2, 3], r"\(2,\), \(3,\)"),
        ([[1, 2]], [[1, 2]], r"\(1, 2\)"),
        ([1], [2], "at least two pairs, got 1"),
        ([1, np.nan], [1, 2], "not finite"),
    ],
)
def test_paired_test_says_what_is_wrong(a, b, message):
    with pytest.raises(InputError, match=message):
        paired_test(a, b)


# Scores per recording


def test_recording_scores_by_hand():
    truth = {
        "w": Segments([0, 20, 40], [10, 30, 50], ["a", "a", "b"]),
        "background": Segments.empty(),
        "v": Segments([0], [10], ["a"]),
        "missed": Segments([0], [10], ["a"]),
    }
    found = {
        "v": Segments([50, 0], [60, 6], ["a", "a"], [0.9, 0.1]),  # a false one first; then tIoU 0.6
        "w": Segments([0, 90], [10, 95], ["a", "c"], [0.5, 0.9]),  # one of two of a, none of b; w has no c
        "background": Segments([0], [10], ["a"]),
    }
    scores = recording_scores(truth, found, [0.5, 0.7])
    assert list(scores) == ["w", "v", "missed"]
    assert list(scores.values()) == pytest.approx([(1 / 2 + 0) / 2, (1 / 2 + 0) / 2, 0])


def test_the_score_of_a_single_recording_is_its_evaluation():
    truth = {"v": Segments([0, 5], [4, 9], ["a", "b"])}
    found = {"v": Segments([0, 1, 5], [3, 4, 9], ["a", "a", "b"], [0.2, 0.4, 0.3])}
    assert recording_scores(truth, found, [0.3, 0.9]) == {"v": evaluate_detections(truth, found, [0.3, 0.9]).average}


# Holm


def step_down(p_values, alpha):
    """The textbook procedure: smallest first, until one is not rejected."""
    remaining, rejected = list(range(len(p_values))), [False] * len(p_values)
    while remaining:
        smallest = min(remaining, key=lambda i: p_values[i])
        if p_values[smallest] * len(remaining) > alpha:
            break
        rejected[smallest] = True
        remaining.remove(smallest)
    return rejected


@given(p_lists, st.sampled_from([0.01, 0.05, 0.2]))
def test_rejections_are_those_of_the_textbook(p_values, alpha):
    assert holm(p_values, alpha).rejected.tolist() == step_down(p_values, alpha)


@given(p_lists.filter(len), st.randoms(use_true_random=False))
def test_adjusted_is_the_smallest_alpha_that_rejects(p_values, random):
    adjusted = holm(p_values).adjusted
    index = random.randrange(len(p_values))
    assert p_values[index] <= adjusted[index] <= 1
    if 1e-6 < adjusted[index] < 1:
        assert step_down(p_values, adjusted[index] * (1 + 1e-9))[index]
        assert not step_down(p_values, adjusted[index] * (1 - 1e-9))[index]


@settings(deadline=None)  # the first example loads statsmodels
@given(p_lists)
def test_holm_agrees_with_statsmodels(p_values):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    assume(p_values)
    rejected, adjusted, *_ = multitest.multipletests(p_values, 0.05, "holm")
    ours = holm(p_values, 0.05)
    np.testing.assert_allclose(ours.adjusted, adjusted, atol=1e-12)
    clear = np.abs(adjusted - 0.05) > 1e-12
    np.testing.assert_array_equal(ours.rejected[clear], rejected[clear])


def test_holm_by_hand_keeps_the_shape():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, and the last is raised to 0.06.
    result = holm([[0.01, 0.04], [0.03, 0.005]])
    np.testing.assert_allclose(result.adjusted, [[0.03, 0.06], [0.06, 0.02]])
    assert result.rejected.tolist() == [[True, False], [False, True]]
    assert holm([0.6, 0.7]).adjusted.tolist() == [1, 1]
    assert holm([]).adjusted.shape == (0,) and holm(0.04).rejected


@pytest.mark.parametrize(
    ("p_values", "alpha", "message"),
    [([0.1, 1.5], 0.05, "1.5"), ([np.nan], 0.05, "nan"), ([-0.1], 0.05, "-0.1"), ([0.1], 5, "alpha .* got 5")],
)
def test_holm_says_what_is_wrong(p_values, alpha, message):
    with pytest.raises(InputError, match=message):
        holm(p_values, alpha)


# Marks


@pytest.mark.parametrize(
    ("text", "arguments", "options"),
    [
        ("89.7 [88.1, 91.0]", (0.897, 0.881, 0.91), {}),
        ("+4.4 [+1.2, +7.9] *", (0.044, 0.012, 0.079, 0.01), {}),
        ("+4.4 [-1.2, +9.9]", (0.044, -0.012, 0.099, 0.2), {}),
        ("-4.4 [-7.9, +0.0] *", (-0.044, -0.079, -0.0001, 0.05), {}),
        ("+4.4 [+1.2, +7.9]", (0.044, 0.012, 0.079, 0.02), {"alpha": 0.01}),
        ("-0.25 [-0.50, +0.12]", (-0.25, -0.5, 0.123, 0.3), {"scale": 1, "digits": 2}),
    ],
)
def test_marked(text, arguments, options):
    assert marked(*arguments, **options) == text
