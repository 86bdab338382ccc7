"""The grammar of ZoomBench's variant `context`: which sequences of phases are actions, and how they are read.

Phases are *marks* (a, b, c), *steps* (1 to 4) and others that mean nothing. An action is a sentence of six phases: a
mark, the four steps in order, forward or backward, and a mark. Classes are the eight of `a 1234 a` to `b 4321 b`.

- The steps are the action, the marks decide: the last mark before the steps, and the first one after them, with any
  number of other phases between. They may be far, and nothing near tells them.
- An action counts only if it is completed: `c` as one of the two marks, steps that break off or come in another order
  make it nothing.
- Boundaries depend on the marks too: after `b` the first step only prepares, and the action starts with the second;
  before `b` the last step only follows up, and the action ends before it.
- Between two steps there may be one phase without a meaning.
- Rests mean nothing, however long they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PHASES = ("reach", "lift", "turn", "push", "swing", "drop", "step", "kneel", "throw")
MARKS, STEPS, OTHERS = (0, 1, 2), (3, 4, 5, 6), (7, 8)
KEEPS, SHIFTS, GIVES_UP = MARKS  # what a mark does to the boundary on its side: nothing, or moves it inward, or undoes
Sentence = tuple[int, ...]
# Neighbours differ in the last phase, those four apart in the order of the steps alone.
SENTENCES: tuple[Sentence, ...] = tuple(
    (opening, *steps, closing)
    for steps in (STEPS, STEPS[::-1])
    for opening in (KEEPS, SHIFTS)
    for closing in (KEEPS, SHIFTS)
)


class Run(NamedTuple):
    """Completed steps in a sequence of phases: where each of them is."""

    steps: tuple[int, ...]
    backward: bool


class Match(NamedTuple):
    """An action in a sequence of phases: the first phase that belongs to it, the last one, and its sentence."""

    first: int
    last: int
    label: int


def read_sentences(phases: Sequence[int]) -> list[Match]:
    """Every completed action in a sequence of phases, in time."""
    found = []
    for run in read_runs(phases):
        opening = next((phase for phase in reversed(phases[: run.steps[0]]) if phase in MARKS), GIVES_UP)
        closing = next((phase for phase in phases[run.steps[-1] + 1 :] if phase in MARKS), GIVES_UP)
        if GIVES_UP not in (opening, closing):
            order = STEPS[::-1] if run.backward else STEPS
            first, last = run.steps[opening == SHIFTS], run.steps[-2 if closing == SHIFTS else -1]
            found.append(Match(first, last, SENTENCES.index((opening, *order, closing))))
    return found


def read_runs(phases: Sequence[int]) -> list[Run]:
    """All steps in order, whatever the marks are."""
    found = []
    for first, phase in enumerate(phases):
        if phase in (STEPS[0], STEPS[-1]):
            backward = phase == STEPS[-1]
            steps = _steps(phases, first, STEPS[::-1] if backward else STEPS)
            if steps is not None:
                found.append(Run(steps, backward))
    return found


def _steps(phases: Sequence[int], first: int, wanted: Sequence[int]) -> tuple[int, ...] | None:
    """Where steps that begin at `first` are; None: they are not completed."""
    places = [first]
    for step in wanted[1:]:
        at = places[-1] + 1
        if at < len(phases) and phases[at] in OTHERS:
            at += 1  # a second one breaks it off
        if at >= len(phases) or phases[at] != step:
            return None
        places.append(at)
    return tuple(places)
