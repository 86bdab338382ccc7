"""Fixtures shared by all tests."""

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

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
