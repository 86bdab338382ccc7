"""The grammar of ZoomBench's variant `context`: which sequences of phases are actions, and how they are read.

An action is a *sentence*, the phases of its class in order. All classes share a *trunk* of `shared` phases, forward or
backward, and differ in what comes before and after it (a, b, c: openings and closings; > and <: the trunk):

    a > a     a > b     > c     c <     b < a     b < b

- The label depends on both ends at once, and on the order of the trunk between them. Nothing on one side tells it.
- A boundary depends on the other end: in `a > b` the action starts at `a`, in `a > c` at the trunk, and `a` is none of
  it; in `b < a` it ends with `a`, in `c < a` before it.
- A sentence that breaks off is nothing, nor is one with a phase missing or in another order.
- Between two phases of a sentence there may be one foreign phase: one that its sentence does not have.
- Rests mean nothing, however long they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

PHASES = ("reach", "lift", "turn", "push", "swing", "drop", "step")
ENDS = 3  # a, b, c of above: the first phases of the alphabet, the others are the trunk
FEWEST_SHARED, MOST_SHARED = 2, len(PHASES) - ENDS

Sentence = tuple[int, ...]


class Match(NamedTuple):
    """A sentence in a sequence of phases: the first of its phases, the last, and which sentence it is."""

    first: int
    last: int
    label: int


def sentences(shared: int) -> tuple[Sentence, ...]:
    """The sentence of every class, as indices into `PHASES`."""
    a, b, c = range(ENDS)
    trunk = tuple(range(ENDS, ENDS + shared))
    knurt = trunk[::-1]
    return ((a, *trunk, a), (a, *trunk, b), (*trunk, c), (c, *knurt), (b, *knurt, a), (b, *knurt, b))


def alphabet_size(shared: int) -> int:
    return ENDS + shared


def foreign_phases(sentence: Sentence, shared: int) -> list[int]:
    """Those that may interrupt it."""
    return [phase for phase in range(alphabet_size(shared)) if phase not in sentence]


def read_sentences(phases: Sequence[int], shared: int) -> list[Match]:
    """Every completed sentence in a sequence of phases, in the order of their first phases."""
    found = []
    for first in range(len(phases)):
        for label, sentence in enumerate(sentences(shared)):
            last = _read(phases, first, sentence)
            if last is not None:
                found.append(Match(first, last, label))
    return found


def _read(phases: Sequence[int], first: int, sentence: Sentence) -> int | None:
    """Where a sentence that begins at `first` is completed; None: it is not."""
    at = first - 1
    for number, wanted in enumerate(sentence):
        at += 1
        if number and at < len(phases) and phases[at] not in sentence:
            at += 1  # foreign; a second one breaks it off
        if at >= len(phases) or phases[at] != wanted:
            return None
    return at
