"""The BDR loss: identities, gradients, padding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalzoom.bdr import DistanceHead, distance_loss, distance_loss_terms, distance_nll, distance_targets, jump_mask


def slow_loss(predicted, target, mask, alpha, weights):
    """The formula term by term."""
    batch, length, channels = predicted.shape
    total = weight_sum = slope = 0.0
    steps = 0
    for b in range(batch):
        for k in range(channels):
            for t in range(length):
                if mask[b, t]:
                    total += float(weights[b, t, k] * abs(predicted[b, t, k] - target[b, t, k]))
                    weight_sum += float(weights[b, t, k])
                if t + 1 < length and mask[b, t] and mask[b, t + 1]:
                    steps += 1
                    if target[b, t + 1, k] >= target[b, t, k]:
                        slope += max(0.0, abs(float(predicted[b, t + 1, k] - predicted[b, t, k])) - 1) ** 2
    return (total / weight_sum if weight_sum else 0.0) + alpha * (slope / steps if steps else 0.0)


def random_problem(seed, batch=3, length=17, channels=2):
    generator = torch.Generator().manual_seed(seed)
    predicted = 4 * torch.randn(batch, length, channels, generator=generator, dtype=torch.float64)
    target = torch.stack([distance_targets([2.3, 9.1], [5.0 + b], length, dtype=torch.float64) for b in range(batch)])
    lengths = torch.randint(0, length + 1, (batch, 1), generator=generator)
    weights = torch.rand(batch, length, channels, generator=generator, dtype=torch.float64)
    holes = torch.rand(batch, length, generator=generator) < 0.15  # a mask may be false anywhere, not only at the end
    return predicted, target[..., :channels], (torch.arange(length) < lengths) & ~holes, weights


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 2.0]), st.integers(1, 17))
def test_equals_the_formula(seed, alpha, length):
    predicted, target, mask, weights = (x[:, :length] for x in random_problem(seed))
    loss = distance_loss(predicted, target, mask, alpha=alpha, weights=weights)
    assert float(loss) == pytest.approx(slow_loss(predicted, target, mask, alpha, weights), abs=1e-9)


def test_one_sequence_by_hand():
    target = torch.tensor([[-1.0, 0.0, 1.0, 2.0]]).unsqueeze(-1)
    predicted = torch.tensor([[-1.0, 2.0, 2.0, 2.0]]).unsqueeze(-1)
    terms = distance_loss_terms(predicted, target)
    assert float(terms.regression) == pytest.approx(3 / 4)
    assert float(terms.slope) == pytest.approx((3 - 1) ** 2 / 3)
    assert float(distance_loss(predicted, target)) == pytest.approx(3 / 4 + 0.1 * 4 / 3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 50), min_size=1, max_size=5), st.sampled_from([None, 16.0]), st.floats(-1, 1))
def test_zero_exactly_on_the_target(boundaries, radius, error):
    target = distance_targets(boundaries, boundaries, 50, radius=radius, dtype=torch.float64)[None]
    assert float(distance_loss(target, target)) == pytest.approx(0.0, abs=1e-20)
    predicted = target.clone()
    predicted[0, 20, 1] += error
    if abs(error) > 1e-9:
        assert float(distance_loss(predicted, target)) > 0


def test_slope_is_free_only_where_the_target_jumps():
    target = distance_targets([5.0, 25.0], [], 31, radius=None)[None, :, :1]
    assert jump_mask(target).sum() == 1
    assert float(distance_loss_terms(target, target).slope) == 0.0
    none_allowed = torch.zeros_like(jump_mask(target))
    assert float(distance_loss_terms(target, target, target_jumps=none_allowed).slope) == pytest.approx(18**2 / 30)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_padding_has_no_influence(seed):
    predicted, target, mask, weights = random_problem(seed)
    predicted.requires_grad_()
    loss = distance_loss(predicted, target, mask, weights=weights)
    (gradient,) = torch.autograd.grad(loss, predicted)
    spoiled = [x.detach().masked_fill(~mask[..., None], float("nan")) for x in (predicted, target, weights)]
    again = spoiled[0].requires_grad_()
    loss_again = distance_loss(again, spoiled[1], mask, weights=spoiled[2])
    (gradient_again,) = torch.autograd.grad(loss_again, again)
    torch.testing.assert_close(loss_again, loss)
    torch.testing.assert_close(gradient_again, gradient)
    assert (gradient[~mask] == 0).all()


def test_gradient_against_finite_differences():
    predicted, target, _, weights = random_problem(3)
    mask = torch.arange(17).expand(3, 17) < torch.tensor([[17], [9], [0]])
    predicted.requires_grad_()
    assert torch.autograd.gradcheck(lambda p: distance_loss(p, target, mask, alpha=1.0, weights=weights), predicted)


def test_degenerate_batches_are_finite_with_a_gradient():
    for shape, valid in [((2, 1, 2), True), ((2, 9, 2), False), ((2, 1, 1), False), ((2, 0, 2), True)]:
        predicted = torch.ones(shape, requires_grad=True)
        target, mask = torch.ones(shape), torch.full(shape[:2], valid)
        loss = distance_loss(predicted, target, mask)
        assert loss.item() == 0.0
        for term in (loss, distance_nll(predicted, predicted, target, mask)):
            term.backward()
            assert torch.isfinite(term) and torch.isfinite(predicted.grad).all()


def test_zero_weights_everywhere():
    predicted = torch.ones(1, 4, 1, requires_grad=True)
    loss = distance_loss(predicted, torch.zeros(1, 4, 1), weights=torch.zeros(1, 4, 1))
    loss.backward()
    assert loss.item() == 0.0


def test_half_precision_is_compared_in_single():
    predicted = torch.full((1, 40, 1), 0.3, dtype=torch.bfloat16)
    assert distance_loss(predicted, torch.zeros(1, 40, 1)).dtype == torch.float32


def test_shapes_are_checked():
    field = torch.zeros(2, 5, 1)
    with pytest.raises(ValueError, match="shape"):
        distance_loss(field, torch.zeros(2, 5, 2))
    with pytest.raises(ValueError, match="mask"):
        distance_loss(field, field, torch.ones(2, 5))


def test_nll_is_least_at_the_true_variance():
    target = torch.zeros(1, 2000, 1, dtype=torch.float64)
    predicted = 3 * torch.randn(1, 2000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    best = predicted.square().mean().log()
    losses = [float(distance_nll(predicted, (best + x).expand(1, 2000, 1), target)) for x in (-0.2, 0.0, 0.2)]
    assert losses[1] < min(losses[0], losses[2])
    normal = torch.distributions.Normal(predicted, (0.5 * best).exp())
    constant = 0.5 * torch.log(torch.tensor(2 * torch.pi, dtype=torch.float64))
    assert losses[1] == pytest.approx(float(-normal.log_prob(target).mean() - constant))


def test_nll_may_leave_the_mean_alone():
    predicted = torch.ones(1, 4, 1, requires_grad=True)
    log_variance = torch.zeros(1, 4, 1, requires_grad=True)
    distance_nll(predicted, log_variance, torch.zeros(1, 4, 1), detach_mean=True).backward()
    assert predicted.grad is None and (log_variance.grad == 0).all()  # error 1, variance 1: already the optimum


def test_head_shapes_and_small_start():
    for layers in [1, 3]:
        hidden = torch.randn(2, 7, 24)
        output = DistanceHead(24, channels=1, hidden=10, layers=layers)(hidden)
        assert output.shape == (2, 7, 1) and output.abs().max() < 0.5
        distances, log_variances = DistanceHead(24, variance=True, layers=layers)(hidden)
        assert distances.shape == log_variances.shape == (2, 7, 2)
        with pytest.raises(ValueError, match="layer"):
            DistanceHead(24, layers=0)
