"""The variance of gradients over steps, against numpy; it survives an interruption."""

import numpy as np
import torch
from torch import nn

from temporalzoom.training.gradients import GradientVariance
from temporalzoom.training.validation import steps_to


def test_variance_over_steps_is_that_of_numpy():
    torch.manual_seed(0)
    module = nn.Linear(3, 2)
    record, seen = GradientVariance(module.parameters()), []
    assert record.summary() == {}
    for step in range(7):
        for parameter in module.parameters():
            parameter.grad = torch.randn_like(parameter) + 100
        if step == 3:  # too large for float16: nothing was learned
            module.bias.grad[0] = float("inf")
        else:
            seen.append(torch.cat([p.grad.flatten() for p in module.parameters()]).numpy())
        record.add()
        if step == 4:
            resumed = GradientVariance(module.parameters())
            resumed.restore({name: value.clone() for name, value in record.state.items()})
            record = resumed
    expected = np.var(seen, axis=0, ddof=1).mean()
    found = record.summary()
    np.testing.assert_allclose(found["depth_gradient_variance"], expected, rtol=1e-4)
    share = expected / (expected + np.square(np.mean(seen, axis=0)).mean())
    np.testing.assert_allclose(found["depth_gradient_noise"], share, rtol=1e-4)


def test_nothing_to_watch():
    record = GradientVariance([])
    record.add() if record.parameters else None
    assert record.summary() == {} and record.state == {}


def test_steps_to_nine_tenths_of_the_last_score():
    assert steps_to({100: 0.1, 200: 0.5, 300: 0.46, 400: 0.5}) == 200
    assert steps_to({100: 0.1, 200: 0.5, 300: 0.3, 400: 0.5}) == 400
    assert steps_to({100: 0.5}) == 100 and steps_to({}) is None and steps_to({100: 0.4, 200: 0.0}) is None
