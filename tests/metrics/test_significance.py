"""Holm's correction and marks in tables: against the textbook procedure and values by hand."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.metrics.significance import holm, marked

p_lists = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0])), max_size=15)


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


@pytest.mark.slow  # it loads statsmodels
@settings(deadline=None)
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


def test_holm_says_what_is_wrong():
    for p_values, alpha, message in [
        ([0.1, 1.5], 0.05, "1.5"),
        ([np.nan], 0.05, "nan"),
        ([-0.1], 0.05, "-0.1"),
        ([0.1], 5, "alpha .* got 5"),
    ]:
        with pytest.raises(InputError, match=message):
            holm(p_values, alpha)


# Marks


def test_marked():
    for text, arguments, options in [
        ("89.7 [88.1, 91.0]", (0.897, 0.881, 0.91), {}),
        ("+4.4 [+1.2, +7.9] *", (0.044, 0.012, 0.079, 0.01), {}),
        ("+4.4 [-1.2, +9.9]", (0.044, -0.012, 0.099, 0.2), {}),
        ("-4.4 [-7.9, +0.0] *", (-0.044, -0.079, -0.0001, 0.05), {}),
        ("+4.4 [+1.2, +7.9]", (0.044, 0.012, 0.079, 0.02), {"alpha": 0.01}),
        ("-0.25 [-0.50, +0.12]", (-0.25, -0.5, 0.123, 0.3), {"scale": 1, "digits": 2}),
    ]:
        assert marked(*arguments, **options) == text
