"""ZoomBench, variant `context`: boundaries whose evidence is elsewhere.

In ZoomBench an action looks unlike what surrounds it, so that a few positions around a boundary tell that it is one.
In real recordings the same movement is part of an action or not, depending on what came before and what follows. Here
every phase of an action occurs outside of actions too, looks the same there, and has ramps of the same widths:

- an action is a sentence of three to six phases, read by the grammar of `zoombench_grammar`;
- attempts are *aborted*: they begin like an action and break off, and are no instance;
- actions are *interrupted*, by a rest or by a foreign phase, and go on;
- *stray* phases, alone or as a fragment of a sentence, stand before, between and after all of them.

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
from temporalzoom.datasets.zoombench import ZoomSample
from temporalzoom.datasets.zoombench_grammar import (
    FEWEST_SHARED,
    MOST_SHARED,
    PHASES,
    Match,
    alphabet_size,
    foreign_phases,
    read_sentences,
    sentences,
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
    "window", "noise", "mean_rest", "aborted", "interrupted", "stray", "flashes_per_minute", "blurs_per_minute",
)  # fmt: skip
SHARES = ("aborted", "interrupted", "stray")
PAUSES = 0.15  # share of the rests outside of actions that are as long as an interruption
PAUSE = (0.8, 2.0)  # seconds of rest that interrupt
TRIES = 200


@dataclass(frozen=True)
class ContextBench:
    """Knobs of the generator. Times in seconds; `noise` is the standard deviation of every channel.

    shared: phases that all sentences have in common, between the ones that decide. aborted: of all attempts.
    interrupted: of all actions. stray: of all phases, those that belong to no attempt. shortest, longest: of a phase.
    """

    sequences: int = 96
    test_sequences: int = 48
    length: int = 512
    shared: int = 3
    aborted: float = 0.5
    interrupted: float = 0.3
    stray: float = 0.25
    dimension: int = 32
    stride: float = 4.0
    window: float = 8.0
    fps: float = 30.0
    noise: float = 1.0
    signal: float = 6.0
    shortest: float = 0.27
    longest: float = 4.0
    mean_rest: float = 0.3
    flashes_per_minute: float = 6.0
    blurs_per_minute: float = 3.0

    def __post_init__(self) -> None:
        refuse_impossible(self, "zoombench_context", MAY_BE_ZERO)
        if not FEWEST_SHARED <= self.shared <= MOST_SHARED:
            raise InputError(
                f"zoombench_context: shared must be from {FEWEST_SHARED} to {MOST_SHARED} phases, got {self.shared}"
            )
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
        knobs = ("sequences", "test_sequences", "length", "shared", *SHARES)
        return cls(**{knob: getattr(data, knob) for knob in knobs})

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
    of the matches, whether something came between.
    """

    phases: tuple[Phase, ...]
    matches: tuple[Match, ...]
    units: tuple[tuple[str, int], ...] = ()
    interrupted: tuple[bool, ...] = ()


def context_classes(bench: ContextBench) -> tuple[str, ...]:
    """Class names are their sentences: `reach-push-swing-drop-lift`."""
    return tuple("-".join(PHASES[phase] for phase in sentence) for sentence in sentences(bench.shared))


def make_zoombench_context(bench: ContextBench, seed: int = 0, subset: str = "train") -> Split:
    """One subset. Subsets share the look of the phases (drawn from `seed` alone) and differ in everything else."""
    looks, scenes = draw_appearance(bench, alphabet_size(bench.shared), seed)
    samples = []
    for index in range(bench.sequences if subset == "train" else bench.test_sequences):
        random = sequence_random(seed, subset, index)
        timeline = draw_timeline(bench, random)
        samples.append(record_timeline(bench, timeline, looks, scenes, random, f"{subset}_{index:04d}"))
    return Split(tuple(samples), context_classes(bench))


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
    classes, phases = context_classes(bench), timeline.phases
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
    matches: list[Match] = []
    units: list[tuple[str, int]] = []
    interrupted: list[bool] = []
    cursor = _rest(bench, random)
    while True:
        what = _draw_unit(bench, random)
        kinds, label, rests = _draw_kinds(bench, what, [phase.kind for phase in phases], random)
        drawn: list[Phase] = []
        for rest, kind in zip(rests, kinds, strict=True):
            length = np.exp(random.uniform(np.log(bench.shortest), np.log(bench.longest))) * bench.fps
            start = cursor + rest * bench.fps
            drawn.append(Phase(start, start + length, kind, (draw_width(length, random), draw_width(length, random))))
            cursor = start + length + _rest(bench, random)
        if drawn[-1].end > frames:
            return Timeline(tuple(phases), tuple(matches), tuple(units), tuple(interrupted))
        if label is not None:
            matches.append(Match(len(phases), len(phases) + len(drawn) - 1, label))
            interrupted.append(any(rests[1:]) or len(drawn) > len(sentences(bench.shared)[label]))
        phases += drawn
        units.append((what, len(drawn)))
        if random.random() < PAUSES:
            cursor += random.uniform(*PAUSE) * bench.fps


def _rest(bench: ContextBench, random: np.random.Generator) -> float:
    """Frames between two phases, wherever they are."""
    return random.exponential(bench.mean_rest) * bench.fps


def _draw_unit(bench: ContextBench, random: np.random.Generator) -> str:
    """What comes next: such that of all phases the share `stray` belongs to no attempt."""
    lengths = [len(sentence) for sentence in sentences(bench.shared)]
    action = np.mean(lengths) + 0.5 * bench.interrupted  # half of the interruptions are phases
    nothing = 0.5 * np.mean(lengths) / 2 + 0.5 * np.mean(lengths)  # breaks off after 1 to n - 1 phases, or goes on
    attempt = (1 - bench.aborted) * action + bench.aborted * nothing
    fragment = 1.5  # one or two
    probability = bench.stray * attempt / (bench.stray * attempt + (1 - bench.stray) * fragment)
    if random.random() < probability:
        return "stray"
    return "aborted" if random.random() < bench.aborted else "action"


def _draw_kinds(
    bench: ContextBench, what: str, before: list[int], random: np.random.Generator
) -> tuple[list[int], int | None, list[float]]:
    """Phases of a unit, the label if it is an action, and the rests in seconds that interrupt it.

    What would complete a sentence that nobody meant, together with what came before, is drawn again.
    """
    for _ in range(TRIES):
        label = int(random.integers(len(sentences(bench.shared))))
        sentence = list(sentences(bench.shared)[label])
        rests = [0.0] * len(sentence)
        if what == "action":
            kinds, rests = _interrupted(bench, sentence, random)
        elif what == "aborted":
            kinds = _aborted(sentence, random)
        else:
            count = int(random.integers(1, 3))
            first = random.integers(len(sentence) - count + 1)
            kinds = sentence[first : first + count]
        if _as_meant([*before, *kinds], len(before), label if what == "action" else None, bench.shared):
            return kinds, label if what == "action" else None, rests[: len(kinds)]
    raise InputError(f"zoombench_context: no {what} phases fit what came before; other knobs are needed")


def _as_meant(phases: list[int], new: int, label: int | None, shared: int) -> bool:
    """Whether the phases from `new` on complete the sentence that they are meant to be, or none, and nothing else."""
    reach = 2 * (shared + 2)  # the longest sentence, with a foreign phase before each of its phases
    tail = max(0, new - reach)
    found = [m for m in read_sentences(phases[tail:], shared) if m.last >= new - tail]
    return found == ([] if label is None else [Match(new - tail, len(phases) - tail - 1, label)])


def _aborted(sentence: list[int], random: np.random.Generator) -> list[int]:
    """An attempt that comes to nothing: it breaks off, or two of its phases come in the wrong order."""
    if random.random() < 0.5:
        return sentence[: random.integers(1, len(sentence))]
    at = int(random.integers(1, len(sentence)))
    return [*sentence[: at - 1], sentence[at], sentence[at - 1], *sentence[at + 1 :]]


def _interrupted(
    bench: ContextBench, sentence: list[int], random: np.random.Generator
) -> tuple[list[int], list[float]]:
    """A sentence, in a share of cases with one interruption: a foreign phase or a rest."""
    kinds, rests = list(sentence), [0.0] * len(sentence)
    if random.random() < bench.interrupted:
        at = int(random.integers(1, len(sentence)))
        if random.random() < 0.5:
            kinds.insert(at, int(random.choice(foreign_phases(tuple(sentence), bench.shared))))
            rests.append(0.0)
        else:
            rests[at] = random.uniform(*PAUSE)
    return kinds, rests
