"""The room as users lift it out: the retrofit example of its docstring. (What it imports: `test_house_rules`.)"""

import textwrap

import numpy as np
import torch
from torch import nn

from temporalzoom import bdr


def test_exports_exist():
    assert all(hasattr(bdr, name) for name in bdr.__all__)


def example() -> dict:
    """The names that the docstring's example defines."""
    code = textwrap.dedent(bdr.__doc__[bdr.__doc__.index("    import torch") :])
    assert len(code.splitlines()) < 50
    names: dict = {}
    exec(code, names)
    return names


def test_the_retrofit_example_trains_and_refines():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    batch, length = 8, 64
    instances, features = [], torch.zeros(batch, length, 2)
    for index in range(batch):
        starts = np.array([rng.uniform(6, 14), rng.uniform(36, 42)])
        ends = starts + rng.uniform(10, 16, 2)
        inside = (np.arange(length)[:, None] >= starts) & (np.arange(length)[:, None] <= ends)
        features[index, :, 0] = torch.tensor(inside.any(1))
        instances.append((starts, ends))
    features[..., 1] = 0.1 * torch.randn(batch, length)
    mask = torch.ones(batch, length, dtype=torch.bool)
    mask[0, 60:] = False

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv1d(2, 48, 31, padding=15)

        def forward(self, x):
            return torch.relu(self.convolution(x.transpose(1, 2))).transpose(1, 2)

    names = example()
    model = names["WithDistances"](Encoder(), 48)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(150):
        loss = names["added_loss"](model(features)[1], instances, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.25 * losses[0]

    before, after = [], []
    for (starts, ends), distances in zip(instances, model(features)[1], strict=True):
        rough = starts + rng.uniform(-2.5, 2.5, 2), ends + rng.uniform(-2.5, 2.5, 2)
        refined = names["refined"](distances, *rough)
        before.append(np.abs(np.array(rough) - (starts, ends)).mean())
        after.append(np.abs(np.array(refined) - (starts, ends)).mean())
        assert len(names["boundaries"](distances)) == 2
    assert np.mean(after) < 0.7 * np.mean(before)
