"""ZoomBench: a seeded generator of untrimmed feature sequences whose boundaries are known exactly.

Real annotations are good to perhaps half a second, so precision beyond that cannot be measured on them. Here the truth
is a real number. What makes the task hard on real recordings is in it, piece by piece:

- boundaries are sharp, medium or gradual (a Gaussian ramp of width kappa < 2, 2-4, > 4 frames; 32 / 40 / 28 %);
- durations from under a second to over ten, log-uniform;
- noise is AR(1)-correlated and heavy-tailed (rho 0.4, Student-t with 3 degrees of freedom);
- flashes, a strong short change that is no boundary; blurred stretches; a drifting background;
- back-to-back and overlapping instances;
- classes come in pairs made of the same two phases in opposite order: no single position can tell them apart, context
  must. The change of phase inside an instance is not a boundary either.

It ships as code only; the same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from temporalzoom.config import ZoomBenchData
from temporalzoom.datasets.samples import Sample, Split
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

PHASES = ("reach", "lift", "turn", "push", "swing", "drop", "step", "kneel", "throw", "catch", "press", "twist")
MAY_BE_ZERO = ("window", "noise", "mean_gap", "back_to_back", "overlap", "flashes_per_minute", "blurs_per_minute")


@dataclass(frozen=True)
class ZoomBench:
    """Knobs of the generator. Times in seconds; `noise` is the standard deviation of every channel."""

    sequences: int = 96
    test_sequences: int = 48
    length: int = 512
    dimension: int = 32
    classes: int = 6
    stride: float = 4.0
    window: float = 8.0
    fps: float = 30.0
    noise: float = 1.0
    signal: float = 6.0
    shortest: float = 0.5
    longest: float = 14.0
    mean_gap: float = 2.0
    back_to_back: float = 0.15
    overlap: float = 0.10
    flashes_per_minute: float = 6.0
    blurs_per_minute: float = 3.0

    def __post_init__(self) -> None:
        refuse_impossible(self, "zoombench", MAY_BE_ZERO)
        if self.classes % 2:
            raise InputError(f"zoombench: classes come in pairs: an even number is needed, got {self.classes}")
        if self.shortest > self.longest:
            raise InputError(f"zoombench: shortest must be at most longest ({self.longest:g}), got {self.shortest:g}")
        if self.back_to_back + self.overlap > 1:
            raise InputError(
                "zoombench: back_to_back and overlap must be at most 1 together, "
                f"got {self.back_to_back:g} and {self.overlap:g}"
            )

    @classmethod
    def of(cls, data: ZoomBenchData) -> ZoomBench:
        """The benchmark that a configuration asks for."""
        return cls(sequences=data.sequences, test_sequences=data.test_sequences, **strided(data, cls.stride))

    @classmethod
    def parse(cls, knobs: Sequence[str]) -> ZoomBench:
        """From `key=value`, as they are typed."""
        return cls(**parse_knobs(cls, knobs))


def strided(data: ZoomBenchData, stride: float) -> dict[str, Any]:
    """Knobs for the stride of a configuration; sequences keep their duration in seconds whatever the stride."""
    wanted = stride if data.stride is None else data.stride
    return {"stride": wanted, "length": int((data.length - 1) * stride / wanted + 1e-9) + 1}


def zoombench_classes(bench: ZoomBench) -> tuple[str, ...]:
    """Class names, in pairs of opposite order: `reach-lift`, `lift-reach`, ..."""
    names = [PHASES[i] if i < len(PHASES) else f"phase{i}" for i in range(bench.classes)]
    pairs = [(names[i], names[i + 1]) for i in range(0, bench.classes, 2)]
    return tuple(name for a, b in pairs for name in (f"{a}-{b}", f"{b}-{a}"))


@dataclass(frozen=True, eq=False)
class ZoomSample(Sample):
    """boundary_widths: (N, 2) kappa in frames of every start and end."""

    boundary_widths: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 2)))


@dataclass
class _Instance:
    start: float  # frames
    end: float
    label: int
    widths: tuple[float, float]


def make_zoombench(bench: ZoomBench, seed: int = 0, subset: str = "train") -> Split:
    """One subset. Subsets share the class appearance (drawn from `seed` alone) and differ in everything else."""
    phases, scenes = draw_appearance(bench, bench.classes, seed)
    stream = subset_stream(subset)
    samples = tuple(
        _make_sequence(bench, phases, scenes, np.random.default_rng([seed, stream, index]), f"{subset}_{index:04d}")
        for index in range(bench.sequences if subset == "train" else bench.test_sequences)
    )
    return Split(samples, zoombench_classes(bench))


def _make_sequence(
    bench: ZoomBench, phases: NDArray, scenes: NDArray, random: np.random.Generator, name: str
) -> ZoomSample:
    grid = signal_grid(bench)
    duration = grid.duration(bench.length)
    instances = _draw_instances(bench, duration * bench.fps, random)
    times = grid.to_frames(grid.to_seconds(np.arange(bench.length)))

    features = background(bench, scenes, random)
    for instance in instances:
        features += _appearance(bench, instance, phases, times, random)
    recorded = disturbed(bench, features, times, duration, random)

    classes = zoombench_classes(bench)
    segments = Segments(
        [i.start / bench.fps for i in instances],
        [i.end / bench.fps for i in instances],
        [classes[i.label] for i in instances],
    )
    widths = np.array([i.widths for i in instances]).reshape(-1, 2)
    return ZoomSample(name, recorded, grid, duration, segments, boundary_widths=widths)


def _draw_instances(bench: ZoomBench, frames: float, random: np.random.Generator) -> list[_Instance]:
    """A walk through time: gap, instance, gap, ... with some gaps zero and some negative (overlap)."""
    instances: list[_Instance] = []
    cursor = random.exponential(bench.mean_gap) * bench.fps
    while True:
        length = np.exp(random.uniform(np.log(bench.shortest), np.log(bench.longest))) * bench.fps
        label = int(random.integers(bench.classes))
        start = cursor
        if instances:
            last = instances[-1]
            lot = random.random()
            if lot < bench.back_to_back + bench.overlap and label // 2 == last.label // 2 and bench.classes > 2:
                # The end of a-b and the start of b-a look the same: touching each other, they would leave no trace.
                label = (label + 2) % bench.classes
            if lot < bench.back_to_back:
                start = last.end
            elif lot < bench.back_to_back + bench.overlap:
                start = last.end - random.uniform(0.2, 0.6) * min(length, last.end - last.start)
        if start + length > frames:
            return instances
        widths = (draw_width(length, random), draw_width(length, random))
        instances.append(_Instance(start, start + length, label, widths))
        gap = (0.2 + random.exponential(bench.mean_gap)) * bench.fps
        cursor = max(cursor, start + length) + gap


def _appearance(
    bench: ZoomBench, instance: _Instance, phases: NDArray, times: NDArray, random: np.random.Generator
) -> NDArray:
    """(T, D): first phase, then second, faded in and out around the exact boundaries."""
    present = presence(bench, times, instance.start, instance.end, instance.widths)
    turn = instance.start + random.uniform(0.35, 0.65) * (instance.end - instance.start)
    second = ndtr((times - turn) / (0.08 * (instance.end - instance.start) + 1.0))
    pair = instance.label // 2 * 2
    first_phase, second_phase = (
        (phases[pair], phases[pair + 1]) if instance.label % 2 == 0 else (phases[pair + 1], phases[pair])
    )
    strength, style = draw_style(bench, random)
    look = np.outer(1 - second, first_phase) + np.outer(second, second_phase) + style
    return strength * present[:, None] * look
