"""Fixtures shared by all tests."""

import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from temporalzoom.cli import main
from temporalzoom.config import load_config
from temporalzoom.datasets.zoombench import make_zoombench

REPOSITORY = Path(__file__).resolve().parents[1]
# A configuration small enough to train in a second.
TINY = """
data.zoombench.sequences=4 data.zoombench.test_sequences=2 data.zoombench.length=80 data.zoombench.dimension=8
data.zoombench.classes=2 data.zoombench.longest=3 data.zoombench.mean_gap=0.5
model.name=uniform-1 model.width=16 model.heads=2 model.window=4
training.steps=9 training.batch_size=2 training.length=50 training.warmup_steps=2 training.learning_rate=0.003
training.log_every=1
""".split()
torch.set_num_threads(1)  # pytest -n 2 runs one worker per core

# A busy machine is no bug: examples have no deadline.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, beside the checkout; the test is skipped where it is absent."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("real data sets are not beside this checkout (../shared/data)")
    return folder


@pytest.fixture
def tzoom(monkeypatch, capsys):
    """Run `tzoom ARGS`: returns (exit code, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tzoom", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return int(stop.value.code or 0), printed.out, printed.err

    return run


@pytest.fixture(scope="session")
def tiny_overrides():
    return TINY


@pytest.fixture(scope="session")
def tiny_config():
    """`tiny_config("training.steps=3", ...)` -> Config"""
    return lambda *overrides: load_config(None, [*TINY, *overrides])


@pytest.fixture(scope="session")
def tiny_split(tiny_config):
    return make_zoombench(tiny_config().data.zoombench, seed=0)
