"""How long the trainings of `tzoom fit` take, and what fits into a given time."""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path

from temporalzoom.config import Config
from temporalzoom.terminal import Screen

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
    threads, quiet = torch.get_num_threads(), Screen(quiet=True)
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


def affordable(
    each: float, steps: int, members: int | None, seconds: float | None, usual: float, cores: int
) -> tuple[int, int | None]:
    """How many members, and of how many steps (None: as planned).

    Args:
        each: seconds of a step.
        steps: of a training, as planned.
        members: asked for; None: as many as fit.
        seconds: that all trainings may take; None: `usual` decides about the number of members alone.
        usual: what is usually given to it.
        cores: as many trainings run at a time.
    """
    limit = TRAINING_SHARE * (usual if seconds is None else seconds)

    def needed(count: int, of: int) -> float:
        return each * of * math.ceil(count / cores)

    if members is None:
        members = next((count for count in CHOICES if needed(count, steps) <= limit), None)
        if members is None:  # not even one: fewer steps for the smallest number that can be fused
            members = 1 if seconds is not None and needed(1, STEP_LIMITS[0]) > limit else CHOICES[1]
            if seconds is None:
                return members, None
    if seconds is None or needed(members, steps) <= limit:
        return members, None
    return members, max(int(limit / (each * math.ceil(members / cores))), STEP_LIMITS[0])
