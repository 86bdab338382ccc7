"""Losses against closed forms."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.training.losses import boundary_loss, focal_loss, gaussian_nll, interval_diou, interval_giou

logits = st.floats(-15, 15)
shares = st.floats(0, 1)


def number(value):
    return torch.tensor(value, dtype=torch.float64)


@settings(deadline=None)
@given(logits, shares)
def test_without_focusing_and_weighting_it_is_cross_entropy(logit, target):
    loss = focal_loss(number(logit), number(target), alpha=-1, gamma=0)
    torch.testing.assert_close(loss, F.binary_cross_entropy_with_logits(number(logit), number(target)))


@settings(deadline=None)
@given(logits, st.booleans(), shares, st.floats(0, 4))
def test_focal_loss_is_the_formula_of_the_paper(logit, positive, alpha, gamma):
    """-alpha_t (1 - p_t)^gamma log(p_t)"""
    probability = 1 / (1 + math.exp(-logit))
    true_probability = probability if positive else 1 - probability
    weight = alpha if positive else 1 - alpha
    expected = -weight * (1 - true_probability) ** gamma * math.log(true_probability)
    assert float(focal_loss(number(logit), number(float(positive)), alpha, gamma)) == pytest.approx(expected, abs=1e-9)


def test_focal_loss_of_an_undecided_logit():
    assert float(focal_loss(number(0.0), number(1.0), 0.25, 2.0)) == pytest.approx(0.25 * 0.25 * math.log(2))
    assert float(focal_loss(number(0.0), number(0.0), 0.25, 2.0)) == pytest.approx(0.75 * 0.25 * math.log(2))


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_focal_loss_stays_finite_at_extreme_logits(gamma):
    extreme = torch.tensor([-1e4, -100.0, 100.0, 1e4], requires_grad=True)
    for target in (torch.zeros(4), torch.ones(4)):
        loss = focal_loss(extreme, target, gamma=gamma)
        (gradient,) = torch.autograd.grad(loss.sum(), extreme)
        assert loss.isfinite().all() and gradient.isfinite().all()


def slow_giou(a, b):
    """Two intervals, case by case."""
    (a_start, a_end), (b_start, b_end) = a, b
    if a_end <= b_start or b_end <= a_start:  # apart: nothing shared, and the gap counts against them
        gap = max(b_start - a_end, a_start - b_end)
        hull = max(a_end, b_end) - min(a_start, b_start)
        return -gap / hull
    edges = sorted([a_start, a_end, b_start, b_end])  # touching: the union is the hull
    return (edges[2] - edges[1]) / (edges[3] - edges[0])


intervals = st.tuples(st.floats(-100, 100), st.floats(0.01, 50)).map(lambda i: (i[0], i[0] + i[1]))


def giou(a, b):
    return float(interval_giou(number(a[0]), number(a[1]), number(b[0]), number(b[1])))


@settings(max_examples=300, deadline=None)
@given(intervals, intervals)
def test_giou_equals_the_slow_reference(a, b):
    assert giou(a, b) == pytest.approx(slow_giou(a, b), abs=1e-9)
    assert -1 < giou(a, b) <= 1
    assert giou(a, b) == giou(b, a)


@settings(deadline=None)
@given(intervals, intervals, st.floats(0.1, 100), st.floats(-100, 100))
def test_giou_does_not_depend_on_unit_and_origin(a, b, scale, shift):
    moved = [tuple(scale * x + shift for x in interval) for interval in (a, b)]
    assert giou(*moved) == pytest.approx(giou(a, b), abs=1e-6)


def test_giou_by_hand():
    assert giou((2.0, 5.0), (2.0, 5.0)) == 1
    assert giou((0.0, 2.0), (1.0, 3.0)) == pytest.approx(1 / 3)
    assert giou((0.0, 1.0), (1.0, 2.0)) == 0
    assert giou((0.0, 1.0), (3.0, 4.0)) == pytest.approx(-2 / 4)
    assert giou((0.0, 4.0), (1.0, 2.0)) == pytest.approx(1 / 4)


def test_giou_of_points_is_finite_and_pulls_distant_intervals_together():
    starts, ends = torch.tensor([5.0, 0.0], requires_grad=True), torch.tensor([5.0, 1.0], requires_grad=True)
    values = interval_giou(starts, ends, torch.tensor([5.0, 10.0]), torch.tensor([5.0, 12.0]))
    assert values.isfinite().all()
    values.sum().backward()
    assert starts.grad.isfinite().all() and ends.grad.isfinite().all()
    assert ends.grad[1] > 0  # though the intervals share nothing


@settings(deadline=None)
@given(st.floats(0.05, 20))
def test_gaussian_nll_is_least_where_the_variance_is_the_squared_error(error):
    best = number(math.log(error**2)).requires_grad_()
    loss = gaussian_nll(number(error), best)
    assert loss.item() == pytest.approx(0.5 * (1 + math.log(error**2)))
    (slope,) = torch.autograd.grad(loss, best)
    assert float(slope) == pytest.approx(0.0, abs=1e-9)
    for step in (-0.3, 0.3):
        assert gaussian_nll(number(error), best + step) > loss


def test_gaussian_nll_is_the_density_without_its_constant():
    error, variance = number(1.7), number(2.3)
    density = torch.distributions.Normal(number(0.0), variance.sqrt()).log_prob(error)
    expected = -density - 0.5 * math.log(2 * math.pi)
    torch.testing.assert_close(gaussian_nll(error, variance.log()), expected)


def test_gaussian_nll_teaches_the_variance_only_and_is_bounded():
    error, log_variance = torch.tensor([3.0], requires_grad=True), torch.tensor([0.5], requires_grad=True)
    gaussian_nll(error, log_variance).sum().backward()
    assert error.grad is None and log_variance.grad.abs() > 0
    assert gaussian_nll(torch.tensor(1e3), torch.tensor(-1e9)).isfinite()
    assert gaussian_nll(torch.tensor(1e3), torch.tensor(-1e9)) == gaussian_nll(torch.tensor(1e3), torch.tensor(-8.0))


@settings(deadline=None)
@given(*[st.floats(-20, 20)] * 2, *[st.floats(0.1, 20)] * 2)
def test_diou_is_iou_less_the_distance_of_the_centres(start, true_start, length, true_length):
    end, true_end = start + length, true_start + true_length
    overlap = max(0.0, min(end, true_end) - max(start, true_start))
    iou = overlap / (length + true_length - overlap)
    apart = ((start + end) / 2 - (true_start + true_end) / 2) / (max(end, true_end) - min(start, true_start))
    found = interval_diou(*(number(x) for x in (start, end, true_start, true_end)))
    assert found.item() == pytest.approx(iou - apart**2, abs=1e-9)


@pytest.mark.parametrize("gamma", [0.0, 2.0])
def test_boundary_loss_is_least_where_the_probability_is_the_gaussian(gamma):
    distances = torch.tensor([[[-8.0], [-1.0], [0.0], [0.5], [8.0]]])
    target = torch.tensor([[[0.0], [math.exp(-0.5)], [1.0], [math.exp(-0.125)], [0.0]]])
    valid = torch.ones(1, 5, 1, dtype=torch.bool)
    logits = torch.logit(target, 1e-7).requires_grad_()
    best = boundary_loss(logits, distances, valid, gamma, 8.0)
    (gradient,) = torch.autograd.grad(best, logits)
    assert gradient.abs().max() < 1e-5
    assert boundary_loss(logits.detach() + 1, distances, valid, gamma, 8.0) > best
    # Only what is valid counts, and per boundary: twice the same costs the same.
    valid[0, 1:4] = False
    assert float(boundary_loss(logits.detach() + 9, distances, valid, gamma, 8.0)) < 0.2
    wrong = torch.zeros(1, 5, 1)
    once = boundary_loss(wrong, distances, torch.ones_like(valid), gamma, 8.0)
    twice = boundary_loss(wrong.repeat(2, 1, 1), distances.repeat(2, 1, 1), torch.ones(2, 5, 1).bool(), gamma, 8.0)
    assert float(once) == pytest.approx(float(twice))


def test_cross_entropy_of_boundaries_by_hand():
    loss = boundary_loss(
        torch.zeros(1, 4, 1), torch.tensor([[[0.0], [9.0], [9.0], [9.0]]]), torch.ones(1, 4, 1), 0, None
    )
    assert float(loss) == pytest.approx(4 * math.log(2))
