"""docs/add-bdr.md: its diff is small, applies, and makes the boundaries of a foreign detector better."""

import inspect
import re
from pathlib import Path

import numpy as np
import torch

from temporalzoom import bdr
from temporalzoom.models.retrofit import WithDistances

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "add-bdr.md").read_text(encoding="utf-8")
DIFF = re.search(r"```diff\n(.*?)```", PAGE, re.S)[1].splitlines()


def version(signs):
    """The code of the page before (" -") or after (" +") the diff, run."""
    code = "\n".join(line[1:] for line in DIFF if line[:1] in signs)
    names = {}
    exec(compile(code, "docs/add-bdr.md", "exec"), names)
    return names


def recordings(count, random, length=96):
    """Noise, and one instance in it: a higher level in every channel, 10 to 50 positions long."""
    starts = random.uniform(5, 40, count)
    ends = starts + random.uniform(10, 50, count)
    position = np.arange(length)
    inside = (position > starts[:, None]) & (position < ends[:, None])
    signal = inside[:, None] * 1.5 + random.normal(size=(count, 4, length)) * 0.5
    return torch.tensor(signal, dtype=torch.float32), torch.tensor(starts).float(), torch.tensor(ends).float()


def boundary_error(code):
    random = np.random.default_rng(0)
    torch.manual_seed(0)
    model = code["Detector"](4)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(250):
        loss = code["training_loss"](model, *recordings(8, random))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    signals, starts, ends = recordings(60, np.random.default_rng(1))
    found = torch.tensor([code["detect"](model, signal[None]) for signal in signals])
    return float((found - torch.stack((starts, ends), 1)).abs().median())


def test_the_diff_is_at_most_fifty_lines():
    added = [line for line in DIFF if line.startswith("+")]
    assert 0 < len(added) <= 50 and all(line[:1] in {" ", "+", "-"} for line in DIFF if line)


def test_the_diff_makes_the_boundaries_of_a_foreign_detector_better():
    before, after = boundary_error(version(" -")), boundary_error(version(" +"))
    assert after < 0.5 * before and after < 1.0


def test_the_page_shows_the_retrofit_as_it_is():
    source = inspect.getsource(WithDistances)
    assert source.strip() in PAGE
    assert len([line for line in source.splitlines() if line.strip()]) <= 50


def test_names_of_the_page_exist():
    names = re.findall(r"^\| `(\w+)", PAGE, re.M)
    assert len(names) == 5 and all(callable(getattr(bdr, name)) for name in names)
