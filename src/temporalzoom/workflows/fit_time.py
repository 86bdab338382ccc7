"""How long the trainings of `tzoom fit` take, and what fits into a given time."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from temporalzoom.config import Config
from temporalzoom.console import plain_console

TRIAL_STEPS = 4  # timed
STEP_LIMITS = (200, 1500)
# Of the time, what is left for training: reading, validating, scoring and the report take the rest.
TRAINING_SHARE = 0.8
CHOICES = (5, 3, 1)


def seconds_per_step(config: Config) -> float:
    """Measured: a few steps of this training with one thread, in a folder that goes away."""
    import torch

    from temporalzoom.datasets.sources import load_data
    from temporalzoom.training import TrainingInterrupted, train

    data = load_data(config.data, config.seed, test=False)
    assert data.train is not None
    threads, quiet = torch.get_num_threads(), plain_console(quiet=True)
    torch.set_num_threads(1)
    try:
        times = []
        for steps in (2, 2, 2 + TRIAL_STEPS):  # the first warms up
            short = config.training.model_copy(update={"steps": steps, "warmup_steps": 1})
            with tempfile.TemporaryDirectory() as folder:
                began = time.perf_counter()
                train(config.model_copy(update={"training": short}), data.train, Path(folder), console=quiet)
                times.append(time.perf_counter() - began)
    except TrainingInterrupted:  # what it saved is gone with the folder
        raise KeyboardInterrupt("stopped before training began; the same command goes on") from None
    finally:
        torch.set_num_threads(threads)
    return max((times[2] - times[1]) / TRIAL_STEPS, 1e-3)


@dataclass(frozen=True)
class Affordable:
    """members: how many; steps: of each training, None: as planned; whole: whether there is time to train the networks
    for use on all recordings, after those that leave some out."""

    members: int
    steps: int | None
    whole: bool


def affordable(
    each: float,
    steps: int,
    members: int | None,
    seconds: float | None,
    usual: float,
    cores: int,
    more: int = 0,
    whole: bool = False,
) -> Affordable:
    """What there is time for.

    Args:
        each: seconds of a step.
        steps: of a training, as planned.
        members: asked for; None: as many as fit.
        seconds: that all trainings may take; None: `usual` decides about the number of members alone.
        usual: what is usually given to it.
        cores: as many trainings run at a time.
        more: trainings after the members, one after the other.
        whole: networks for use have to be trained on all recordings, whatever it takes.
    """
    limit = TRAINING_SHARE * (usual if seconds is None else seconds)

    def needed(count: int, of: int, again: bool = whole) -> float:
        return each * of * (math.ceil(count / cores) * (1 + again) + more)

    if members is None:
        members = next((count for count in CHOICES if needed(count, steps) <= limit), None)
        if members is None:  # not even one: fewer steps for the smallest number that can be fused
            members = 1 if seconds is not None and needed(1, STEP_LIMITS[0]) > limit else CHOICES[1]
            if seconds is None:
                return Affordable(members, None, whole)
    if seconds is None or needed(members, steps) <= limit:
        return Affordable(members, None, whole or needed(members, steps, True) <= limit)
    return Affordable(members, max(int(limit / needed(members, 1)), STEP_LIMITS[0]), whole)
