"""A configuration and data small enough to train on in a second."""

import pytest

from temporalzoom.config import load_config
from temporalzoom.datasets.zoombench import make_zoombench

TINY = """
data.zoombench.sequences=4 data.zoombench.test_sequences=2 data.zoombench.length=80 data.zoombench.dimension=8
data.zoombench.classes=2 data.zoombench.longest=3 data.zoombench.mean_gap=0.5
model.name=uniform-1 model.width=16 model.heads=2 model.window=4
training.steps=9 training.batch_size=2 training.length=50 training.warmup_steps=2 training.learning_rate=0.003
training.log_every=1
""".split()


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
