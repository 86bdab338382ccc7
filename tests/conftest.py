"""Fixtures shared by all tests."""

import signal
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from temporalzoom.cli import main
from temporalzoom.config import changed, load_config
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from tiny import TINY

REPOSITORY = Path(__file__).resolve().parents[1]
# Tests compare bits, which a GPU would change: `auto` is the processor here.
torch.cuda.is_available = lambda: False
torch.backends.mps.is_available = lambda: False
torch.set_num_threads(1)  # pytest -n 2 runs one worker per core
# In the background of a script SIGINT is ignored, which processes that tests start and interrupt would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
    tiny = load_config(None, TINY)
    return lambda *overrides: changed(tiny, overrides)


@pytest.fixture(scope="session")
def tiny_split():
    """Sequences of 80 positions and 8 channels, two classes, instances of up to 3 seconds."""
    return make_zoombench(ZoomBench(sequences=4, length=80, dimension=8, classes=2, longest=3.0, mean_gap=0.5))
