"""ZoomBench, variant `context`: boundaries whose evidence is elsewhere.

In ZoomBench an action looks unlike what surrounds it, so that a few positions around a boundary tell that it is one.
In real recordings the same movement is part of an action or not, depending on what came before and what follows. Here
every phase of an action occurs outside of actions too, looks the same there, and has ramps of the same widths:

- an action is a sentence of six phases, read by the grammar of `zoombench_grammar`: whether its steps count, as what,
  and where they begin and end, is decided by a mark before and a mark after them, with other phases *between*;
- attempts are *aborted*: given up, broken off or in the wrong order, and are no instance;
- actions are *interrupted*, by a rest or by a foreign phase, and go on;
- *stray* phases, alone or a few of a sentence, stand before, between and after all of them.

Rests are drawn alike inside and outside of actions. Background, flashes, blur, noise, the time grid and the widths of
boundaries are those of ZoomBench. The truth is exact: instances are what the grammar reads from the drawn phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import ZoomBenchContextData
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.zoombench import ZoomSample, strided
from temporalzoom.datasets.zoombench_grammar import (
    GIVES_UP,
    KEEPS,
    MARKS,
    OTHERS,
    PHASES,
    SENTENCES,
    SHIFTS,
    STEPS,
    Match,
    read_runs,
    read_sentences,
)
from temporalzoom.datasets.zoombench_knobs import parse_knobs, refuse_impossible
from temporalzoom.datasets.zoombench_signal import (
    background,
    disturbed,
    draw_appearance,
    draw_style,
    draw_width,
    presence,
    signal_grid,
    subset_stream,
)
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments

MAY_BE_ZERO = (
    "window", "noise", "mean_rest", "between", "aborted", "interrupted", "stray", "flashes_per_minute",
    "blurs_per_minute",
)  # fmt: skip
MOST_BETWEEN = 100
SHARES = ("aborted", "interrupted", "stray")
PAUSES = 0.15  # share of the rests outside of actions that are as long as an interruption
PAUSE = (0.8, 2.0)  # seconds of rest that interrupt
TRIES = 200
SPAN = 2 * len(STEPS)  # phases: steps with a foreign phase before each of them


@dataclass(frozen=True)
class ContextBench:
    """Knobs of the generator. Times in seconds; `noise` is the standard deviation of every channel.

    between: how many other phases stand at most between the steps of an action and each of the marks that decide.
    aborted: of all attempts. interrupted: of all actions. stray: of all phases, those that belong to no attempt.
    shortest, longest: of a phase.
    """

    sequences: int = 96
    test_sequences: int = 48
    length: int = 512
    between: int = 4
    aborted: float = 0.35
    interrupted: float = 0.3
    stray: float = 0.15
    dimension: int = 32
    stride: float = 4.0
    window: float = 8.0
    fps: float = 30.0
    noise: float = 1.0
    signal: float = 6.0
    shortest: float = 0.35
    longest: float = 1.4
    mean_rest: float = 0.2
    flashes_per_minute: float = 6.0
    blurs_per_minute: float = 3.0

    def __post_init__(self) -> None:
        refuse_impossible(self, "zoombench_context", MAY_BE_ZERO)
        if self.between > MOST_BETWEEN:
            raise InputError(f"zoombench_context: between must be at most {MOST_BETWEEN} phases, got {self.between}")
        for name in SHARES:
            if getattr(self, name) > 1:
                raise InputError(f"zoombench_context: {name} is a share, at most 1, got {getattr(self, name):g}")
        if self.stray == 1:
            raise InputError("zoombench_context: stray must be below 1: nothing but stray phases is no attempt at all")
        if self.shortest > self.longest:
            raise InputError(
                f"zoombench_context: shortest must be at most longest ({self.longest:g}), got {self.shortest:g}"
            )

    @classmethod
    def of(cls, data: ZoomBenchContextData) -> ContextBench:
        """The benchmark that a configuration asks for."""
        knobs = ("sequences", "test_sequences", "between", *SHARES)
        return cls(**{knob: getattr(data, knob) for knob in knobs}, **strided(data, cls.stride))

    @classmethod
    def parse(cls, knobs: Sequence[str]) -> ContextBench:
        """From `key=value`, as they are typed."""
        return cls(**parse_knobs(cls, knobs))


@dataclass(frozen=True)
class Phase:
    """start, end, widths (kappa of both) in frames; kind: an index into `PHASES`."""

    start: float
    end: float
    kind: int
    widths: tuple[float, float]


@dataclass(frozen=True)
class Timeline:
    """What happens in a sequence, before anything is recorded: phases in time, and the sentences that they complete.

    units: what each run of phases was drawn as, `(what, count)` with what `action`, `aborted` or `stray`. interrupted:
    of the matches, whether something came between their steps.
    """

    phases: tuple[Phase, ...]
    matches: tuple[Match, ...]
    units: tuple[tuple[str, int], ...] = ()
    interrupted: tuple[bool, ...] = ()


def context_classes() -> tuple[str, ...]:
    """Class names are their sentences: `reach-push-swing-drop-step-lift`."""
    return tuple("-".join(PHASES[phase] for phase in sentence) for sentence in SENTENCES)


def make_zoombench_context(bench: ContextBench, seed: int = 0, subset: str = "train") -> Split:
    """One subset. Subsets share the look of the phases (drawn from `seed` alone) and differ in everything else."""
    looks, scenes = draw_appearance(bench, len(PHASES), seed)
    samples = []
    for index in range(bench.sequences if subset == "train" else bench.test_sequences):
        random = sequence_random(seed, subset, index)
        timeline = draw_timeline(bench, random)
        samples.append(record_timeline(bench, timeline, looks, scenes, random, f"{subset}_{index:04d}"))
    return Split(tuple(samples), context_classes())


def sequence_random(seed: int, subset: str, index: int) -> np.random.Generator:
    """The random numbers of one sequence: no other has them."""
    return np.random.default_rng([seed, subset_stream(subset), index])


def record_timeline(
    bench: ContextBench,
    timeline: Timeline,
    looks: NDArray,
    scenes: NDArray,
    random: np.random.Generator,
    name: str,
) -> ZoomSample:
    """The features of a timeline, and its exact instances. looks: (P, D) of the phases; scenes: of the background."""
    grid = signal_grid(bench)
    duration = grid.duration(bench.length)
    times = grid.to_frames(grid.to_seconds(np.arange(bench.length)))
    features = background(bench, scenes, random)
    for phase in timeline.phases:
        strength, style = draw_style(bench, random)
        present = presence(bench, times, phase.start, phase.end, phase.widths)
        features += strength * np.outer(present, looks[phase.kind] + style)
    recorded = disturbed(bench, features, times, duration, random)
    classes, phases = context_classes(), timeline.phases
    segments = Segments(
        [phases[match.first].start / bench.fps for match in timeline.matches],
        [phases[match.last].end / bench.fps for match in timeline.matches],
        [classes[match.label] for match in timeline.matches],
    )
    widths = [(phases[match.first].widths[0], phases[match.last].widths[1]) for match in timeline.matches]
    return ZoomSample(name, recorded, grid, duration, segments, boundary_widths=np.array(widths).reshape(-1, 2))


def draw_timeline(bench: ContextBench, random: np.random.Generator) -> Timeline:
    """Attempts and stray phases one after the other, until the sequence is full."""
    frames = signal_grid(bench).duration(bench.length) * bench.fps
    phases: list[Phase] = []
    units: list[tuple[str, int]] = []
    interrupted: list[bool] = []
    cursor = _rest(bench, random)
    while True:
        what = _draw_unit(bench, random)
        kinds, pauses, broken_up = _draw_kinds(bench, what, [phase.kind for phase in phases], random)
        drawn: list[Phase] = []
        for kind, pause in zip(kinds, pauses, strict=True):
            length = np.exp(random.uniform(np.log(bench.shortest), np.log(bench.longest))) * bench.fps
            start = cursor + pause * bench.fps
            drawn.append(Phase(start, start + length, kind, (draw_width(length, random), draw_width(length, random))))
            cursor = start + length + _rest(bench, random)
        if drawn[-1].end > frames:
            break
        phases += drawn
        units.append((what, len(drawn)))
        if what == "action":
            interrupted.append(broken_up)
        if random.random() < PAUSES:
            cursor += random.uniform(*PAUSE) * bench.fps
    matches = read_sentences([phase.kind for phase in phases])
    return Timeline(tuple(phases), tuple(matches), tuple(units), tuple(interrupted))


def _rest(bench: ContextBench, random: np.random.Generator) -> float:
    """Frames between two phases, wherever they are."""
    return random.exponential(bench.mean_rest) * bench.fps


def _draw_unit(bench: ContextBench, random: np.random.Generator) -> str:
    """What comes next: such that of all phases the share `stray` belongs to no attempt."""
    attempt = 2 + len(STEPS) + bench.between + 0.5 * bench.interrupted * (1 - bench.aborted)
    attempt -= len(STEPS) / 6 * bench.aborted  # a third breaks off, half of its steps early on average
    fragment = 2.0  # one to three
    probability = bench.stray * attempt / (bench.stray * attempt + (1 - bench.stray) * fragment)
    if random.random() < probability:
        return "stray"
    return "aborted" if random.random() < bench.aborted else "action"


def _draw_kinds(
    bench: ContextBench, what: str, before: list[int], random: np.random.Generator
) -> tuple[list[int], list[float], bool]:
    """Phases of a unit, the seconds of rest before each that interrupt it, and whether anything does.

    What would complete steps that nobody meant, together with what came before, is drawn again.
    """
    runs = len(read_runs(before[-SPAN:]))
    for _ in range(TRIES):
        if what == "stray":
            kinds, first, meant = _fragment(random), 0, 0
        else:
            steps, marks = _draw_attempt(what, random)
            opening, closing = [marks[0], *_others(bench, random)], [*_others(bench, random), marks[1]]
            kinds, first, meant = [*opening, *steps, *closing], len(opening), len(read_runs(steps))
        pauses, broken_up = [0.0] * len(kinds), False
        if what == "action" and random.random() < bench.interrupted:
            broken_up, at = True, first + int(random.integers(1, len(STEPS)))
            if random.random() < 0.5:
                kinds.insert(at, int(random.choice(OTHERS)))
                pauses.append(0.0)
            else:
                pauses[at] = random.uniform(*PAUSE)
        if len(read_runs([*before[-SPAN:], *kinds])) == runs + meant:
            return kinds, pauses, broken_up
    raise InputError(f"zoombench_context: no {what} phases fit what came before; other knobs are needed")


def _draw_attempt(what: str, random: np.random.Generator) -> tuple[list[int], tuple[int, int]]:
    """The steps and the two marks of an action, or of an attempt that comes to nothing."""
    steps = list(STEPS if random.random() < 0.5 else STEPS[::-1])
    marks = [int(mark) for mark in random.choice((KEEPS, SHIFTS), 2)]
    if what == "aborted":
        lot = random.integers(3)
        if lot == 0:  # given up, before or after
            marks[random.integers(2)] = GIVES_UP
        elif lot == 1:  # broken off
            steps = steps[: random.integers(1, len(steps))]
        else:  # in the wrong order
            at = int(random.integers(1, len(steps)))
            steps[at - 1], steps[at] = steps[at], steps[at - 1]
    return steps, (marks[0], marks[1])


def _others(bench: ContextBench, random: np.random.Generator) -> list[int]:
    """What stands between the steps and a mark: anything but marks."""
    return [int(kind) for kind in random.choice((*STEPS, *OTHERS), random.integers(bench.between + 1))]


def _fragment(random: np.random.Generator) -> list[int]:
    """One to three phases of any kind."""
    return [int(kind) for kind in random.choice((*MARKS, *STEPS, *OTHERS), random.integers(1, 4))]
