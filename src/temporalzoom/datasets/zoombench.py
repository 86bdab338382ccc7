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
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter
from scipy.special import ndtr

from temporalzoom.config import ZoomBenchData
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

PHASES = ("reach", "lift", "turn", "push", "swing", "drop", "step", "kneel", "throw", "catch", "press", "twist")
MAY_BE_ZERO = ("window", "noise", "mean_gap", "back_to_back", "overlap", "flashes_per_minute", "blurs_per_minute")
SHARPNESS_KINDS = ("sharp", "medium", "gradual")
SHARPNESS_SHARES = (0.32, 0.40, 0.28)
SHARPNESS_WIDTHS = ((0.3, 2.0), (2.0, 4.0), (4.0, 9.0))  # kappa in frames


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
        for knob in fields(self):
            value = getattr(self, knob.name)
            if not (np.isfinite(value) and (value > 0 or (value == 0 and knob.name in MAY_BE_ZERO))):
                limit = "not be negative" if knob.name in MAY_BE_ZERO else "be above 0"
                raise InputError(f"zoombench: {knob.name} must {limit}, got {value:g}")
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
        return cls(sequences=data.sequences, test_sequences=data.test_sequences, length=data.length)

    @classmethod
    def parse(cls, knobs: Sequence[str]) -> ZoomBench:
        """From `key=value`, as they are typed."""
        kinds = {knob.name: int if isinstance(knob.default, int) else float for knob in fields(cls)}
        values: dict[str, Any] = {}
        for knob in knobs:
            name, equals, text = knob.partition("=")
            if not equals or name not in kinds:
                raise InputError(f"{knob!r}: expected key=value with one of {', '.join(kinds)}")
            try:
                values[name] = kinds[name](text)
            except ValueError:
                kind = "a whole number" if kinds[name] is int else "a number"
                raise InputError(f"{knob!r}: {name} must be {kind}") from None
        return cls(**values)


def zoombench_grid(bench: ZoomBench) -> TimeGrid:
    return TimeGrid(bench.stride, bench.window, bench.fps)


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
    appearance = np.random.default_rng([seed, 0])
    phases = appearance.normal(size=(bench.classes, bench.dimension))
    phases *= bench.signal / np.linalg.norm(phases, axis=1, keepdims=True)
    scenes = appearance.normal(size=(4, bench.dimension)) / np.sqrt(bench.dimension)
    stream = int.from_bytes(subset.encode(), "little")
    samples = tuple(
        _make_sequence(bench, phases, scenes, np.random.default_rng([seed, stream, index]), f"{subset}_{index:04d}")
        for index in range(bench.sequences if subset == "train" else bench.test_sequences)
    )
    return Split(samples, zoombench_classes(bench))


def sharpness_kind(widths: ArrayLike) -> NDArray[np.intp]:
    """Index into SHARPNESS_KINDS for kappa in frames."""
    return np.asarray(np.searchsorted([2.0, 4.0], np.asarray(widths), side="right"))


def _make_sequence(
    bench: ZoomBench, phases: NDArray, scenes: NDArray, random: np.random.Generator, name: str
) -> ZoomSample:
    grid = zoombench_grid(bench)
    duration = grid.duration(bench.length)
    instances = _draw_instances(bench, duration * bench.fps, random)
    times = grid.to_frames(grid.to_seconds(np.arange(bench.length)))

    features = _background(bench, scenes, random)
    for instance in instances:
        features += _appearance(bench, instance, phases, times, random)
    features = _blur(bench, features, duration, random)
    features += _flashes(bench, times, duration, random)
    features += _noise(bench, random)

    classes = zoombench_classes(bench)
    segments = Segments(
        [i.start / bench.fps for i in instances],
        [i.end / bench.fps for i in instances],
        [classes[i.label] for i in instances],
    )
    widths = np.array([i.widths for i in instances]).reshape(-1, 2)
    return ZoomSample(name, features.astype(np.float32), grid, duration, segments, boundary_widths=widths)


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
        widths = (_draw_width(length, random), _draw_width(length, random))
        instances.append(_Instance(start, start + length, label, widths))
        gap = (0.2 + random.exponential(bench.mean_gap)) * bench.fps
        cursor = max(cursor, start + length) + gap


def _draw_width(length: float, random: np.random.Generator) -> float:
    """kappa of one boundary; a gradual one is at most a third of the instance, so that the instance exists at all."""
    low, high = SHARPNESS_WIDTHS[random.choice(3, p=SHARPNESS_SHARES)]
    return float(random.uniform(low, max(low + 0.2, min(high, length / 3))))


def _appearance(
    bench: ZoomBench, instance: _Instance, phases: NDArray, times: NDArray, random: np.random.Generator
) -> NDArray:
    """(T, D): first phase, then second, faded in and out around the exact boundaries."""
    # A window of w frames averages: its box adds a variance of w^2 / 12 to the ramp.
    start_ramp, end_ramp = np.sqrt(np.square(instance.widths) + bench.window**2 / 12)
    presence = ndtr((times - instance.start) / start_ramp) * ndtr((instance.end - times) / end_ramp)
    turn = instance.start + random.uniform(0.35, 0.65) * (instance.end - instance.start)
    second = ndtr((times - turn) / (0.08 * (instance.end - instance.start) + 1.0))
    pair = instance.label // 2 * 2
    first_phase, second_phase = (
        (phases[pair], phases[pair + 1]) if instance.label % 2 == 0 else (phases[pair + 1], phases[pair])
    )
    strength = random.uniform(0.75, 1.25)
    style = random.normal(size=bench.dimension) * 0.15 * bench.signal / np.sqrt(bench.dimension)
    look = np.outer(1 - second, first_phase) + np.outer(second, second_phase) + style
    return strength * presence[:, None] * look


def _background(bench: ZoomBench, scenes: NDArray, random: np.random.Generator) -> NDArray:
    """(T, D): a slow random walk through a few scene directions, pulled back to zero."""
    steps = random.normal(size=(bench.length, len(scenes))) * 0.3
    return lfilter([1.0], [1.0, -0.97], steps, axis=0) @ scenes


def _flashes(bench: ZoomBench, times: NDArray, duration: float, random: np.random.Generator) -> NDArray:
    """(T, D): bursts of 1-3 frames, stronger than any action, in arbitrary directions."""
    flashes = np.zeros((bench.length, bench.dimension))
    for _ in range(random.poisson(bench.flashes_per_minute * duration / 60)):
        at = random.uniform(0, duration) * bench.fps
        width = np.sqrt(random.uniform(1, 3) ** 2 + bench.window**2 / 12)
        direction = random.normal(size=bench.dimension)
        direction *= 1.5 * bench.signal / np.linalg.norm(direction)
        flashes += np.outer(np.exp(-0.5 * ((times - at) / width) ** 2), direction)
    return flashes


def _blur(bench: ZoomBench, features: NDArray, duration: float, random: np.random.Generator) -> NDArray:
    """Stretches of 1-3 seconds where the signal is smeared over a few positions, faded in and out."""
    blurred = gaussian_filter1d(features, 2.0, axis=0, mode="nearest")
    centre = np.arange(bench.length)
    share = np.zeros(bench.length)
    for _ in range(random.poisson(bench.blurs_per_minute * duration / 60)):
        half = random.uniform(0.5, 1.5) / zoombench_grid(bench).step_seconds
        at = random.uniform(0, bench.length)
        share = np.maximum(share, np.clip((half - np.abs(centre - at)) / 2.0, 0, 1))
    return features + share[:, None] * (blurred - features)


def _noise(bench: ZoomBench, random: np.random.Generator, rho: float = 0.4, freedom: float = 3.0) -> NDArray:
    """(T, D): stationary AR(1) driven by Student-t innovations, standard deviation `noise`."""
    innovations = random.standard_t(freedom, size=(bench.length, bench.dimension)) / np.sqrt(freedom / (freedom - 2))
    innovations[1:] *= np.sqrt(1 - rho**2)
    return bench.noise * lfilter([1.0], [1.0, -rho], innovations, axis=0)
