"""Fixtures shared by all tests."""

import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from temporalzoom.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]
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
