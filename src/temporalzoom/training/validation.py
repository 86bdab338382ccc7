"""When a training is validated, which of its states was the best, and when it is not worth going on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import nn

from temporalzoom.atomic import replacing
from temporalzoom.json_tree import parse_json
from temporalzoom.runs.description import ModelDescription

FILE = "validation.json"
TIMES = 8  # per training
FROM = 0.4  # of the steps; before, the learning rate is high and the score says little
# Without a new best for this share of the steps, training ends: five validations in a row were no better.
PATIENCE = 0.4

CURVE_FILE = "curve.json"
POINTS = 20  # of a curve

Score = Callable[[nn.Module, ModelDescription], float]


class Validation:
    """Asks for the score of the averaged network and remembers what it was, in the run's folder.

    Args:
        run: the folder.
        score: from the network and its description to a number, higher is better. It must leave the network as it is.
        steps: of the whole training.
        step: from which it goes on; what was found after it, before an interruption, is forgotten.
    """

    file, first, times = FILE, FROM, TIMES

    def __init__(self, run: Path, score: Score, steps: int, step: int = 0) -> None:
        self.run, self.score, self.steps = run, score, steps
        self.scores = {s: v for s, v in read_scores(run / self.file).items() if s <= step} if step else {}

    def is_due(self, step: int) -> bool:
        first = int(self.first * self.steps)
        every = max((self.steps - first) // self.times, 1)
        return step == self.steps or (step >= first and (self.steps - step) % every == 0)

    def ask(self, network: nn.Module, description: ModelDescription) -> float:
        step = description.step
        self.scores[step] = self.score(network, description)
        with replacing(self.run / self.file) as file:
            json.dump({str(key): value for key, value in self.scores.items()}, file)
        return self.scores[step]

    def is_best(self, step: int) -> bool:
        """Of equal ones the later, which has learned more."""
        return self.scores.get(step, float("-inf")) >= max(self.scores.values(), default=float("inf"))

    def is_hopeless(self, step: int) -> bool:
        if not self.scores:
            return False
        best = max(self.scores, key=lambda at: (self.scores[at], at))
        return step - best > PATIENCE * self.steps


class Curve(Validation):
    """How a training comes along, from its first steps on. It chooses no state and ends nothing."""

    file, first, times = CURVE_FILE, 0.0, POINTS


def steps_to(scores: Mapping[int, float], share: float = 0.9) -> int | None:
    """The first step from which on the score stays at `share` of the last one or above; None where that is zero."""
    steps = sorted(scores)
    if not steps or scores[steps[-1]] <= 0:
        return None
    below = [step for step in steps if scores[step] < share * scores[steps[-1]]]
    return steps[steps.index(below[-1]) + 1] if below else steps[0]


def read_scores(file: Path) -> dict[int, float]:
    try:
        return {int(step): float(score) for step, score in parse_json(file.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError):
        return {}
