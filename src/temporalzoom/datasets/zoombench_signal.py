"""What the sequences of ZoomBench and of its variant `context` are made of, whatever happens in them: ramps at
boundaries, the drifting background, flashes, blurred stretches, noise.

The order in which random numbers are drawn is part of the benchmark: the same seed gives the same bytes.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter
from scipy.special import ndtr

from temporalzoom.timegrid import TimeGrid

SHARPNESS_KINDS = ("sharp", "medium", "gradual")
SHARPNESS_SHARES = (0.32, 0.40, 0.28)
SHARPNESS_WIDTHS = ((0.3, 2.0), (2.0, 4.0), (4.0, 9.0))  # kappa in frames
SCENES = 4


class SignalKnobs(Protocol):
    """What a generator must know: positions, channels, the time grid, strengths, and how often something disturbs."""

    @property
    def length(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def stride(self) -> float: ...
    @property
    def window(self) -> float: ...
    @property
    def fps(self) -> float: ...
    @property
    def noise(self) -> float: ...
    @property
    def signal(self) -> float: ...
    @property
    def flashes_per_minute(self) -> float: ...
    @property
    def blurs_per_minute(self) -> float: ...


def signal_grid(bench: SignalKnobs) -> TimeGrid:
    return TimeGrid(bench.stride, bench.window, bench.fps)


def draw_appearance(bench: SignalKnobs, phases: int, seed: int) -> tuple[NDArray, NDArray]:
    """How `phases` phases (P, D) and the scenes of the background (4, D) look: the same in all subsets of a seed."""
    random = np.random.default_rng([seed, 0])
    looks = random.normal(size=(phases, bench.dimension))
    looks *= bench.signal / np.linalg.norm(looks, axis=1, keepdims=True)
    return looks, random.normal(size=(SCENES, bench.dimension)) / np.sqrt(bench.dimension)


def subset_stream(subset: str) -> int:
    """What tells the random numbers of one subset from those of another."""
    return int.from_bytes(subset.encode(), "little")


def sharpness_kind(widths: ArrayLike) -> NDArray[np.intp]:
    """Index into SHARPNESS_KINDS for kappa in frames."""
    return np.asarray(np.searchsorted([2.0, 4.0], np.asarray(widths), side="right"))


def draw_width(length: float, random: np.random.Generator) -> float:
    """kappa of one boundary; a gradual one is at most a third of `length`, so that what it bounds exists at all."""
    low, high = SHARPNESS_WIDTHS[random.choice(3, p=SHARPNESS_SHARES)]
    return float(random.uniform(low, max(low + 0.2, min(high, length / 3))))


def draw_style(bench: SignalKnobs, random: np.random.Generator) -> tuple[float, NDArray]:
    """No two performances are alike: a factor on the look, and what (D,) is added to it."""
    strength = random.uniform(0.75, 1.25)
    return strength, random.normal(size=bench.dimension) * 0.15 * bench.signal / np.sqrt(bench.dimension)


def presence(
    bench: SignalKnobs, times: NDArray, start: float, end: float, widths: tuple[float, float]
) -> NDArray[np.float64]:
    """(T,): 0 outside, 1 inside, one half at both boundaries. All in frames."""
    # A window of w frames averages: its box adds a variance of w^2 / 12 to the ramp.
    start_ramp, end_ramp = np.sqrt(np.square(widths) + bench.window**2 / 12)
    return np.asarray(ndtr((times - start) / start_ramp) * ndtr((end - times) / end_ramp))


def background(bench: SignalKnobs, scenes: NDArray, random: np.random.Generator) -> NDArray:
    """(T, D): a slow random walk through a few scene directions, pulled back to zero."""
    steps = random.normal(size=(bench.length, len(scenes))) * 0.3
    return lfilter([1.0], [1.0, -0.97], steps, axis=0) @ scenes


def disturbed(
    bench: SignalKnobs, features: NDArray, times: NDArray, duration: float, random: np.random.Generator
) -> NDArray[np.float32]:
    """Features (T, D) as they are recorded: blurred here and there, with flashes, with noise."""
    features = _blur(bench, features, duration, random)
    features += _flashes(bench, times, duration, random)
    features += _noise(bench, random)
    return features.astype(np.float32)


def _flashes(bench: SignalKnobs, times: NDArray, duration: float, random: np.random.Generator) -> NDArray:
    """(T, D): bursts of 1-3 frames, stronger than any action, in arbitrary directions."""
    flashes = np.zeros((bench.length, bench.dimension))
    for _ in range(random.poisson(bench.flashes_per_minute * duration / 60)):
        at = random.uniform(0, duration) * bench.fps
        width = np.sqrt(random.uniform(1, 3) ** 2 + bench.window**2 / 12)
        direction = random.normal(size=bench.dimension)
        direction *= 1.5 * bench.signal / np.linalg.norm(direction)
        flashes += np.outer(np.exp(-0.5 * ((times - at) / width) ** 2), direction)
    return flashes


def _blur(bench: SignalKnobs, features: NDArray, duration: float, random: np.random.Generator) -> NDArray:
    """Stretches of 1-3 seconds where the signal is smeared over a few positions, faded in and out."""
    blurred = gaussian_filter1d(features, 2.0, axis=0, mode="nearest")
    centre = np.arange(bench.length)
    share = np.zeros(bench.length)
    for _ in range(random.poisson(bench.blurs_per_minute * duration / 60)):
        half = random.uniform(0.5, 1.5) / signal_grid(bench).step_seconds
        at = random.uniform(0, bench.length)
        share = np.maximum(share, np.clip((half - np.abs(centre - at)) / 2.0, 0, 1))
    return features + share[:, None] * (blurred - features)


def _noise(bench: SignalKnobs, random: np.random.Generator, rho: float = 0.4, freedom: float = 3.0) -> NDArray:
    """(T, D): stationary AR(1) driven by Student-t innovations, standard deviation `noise`."""
    innovations = random.standard_t(freedom, size=(bench.length, bench.dimension)) / np.sqrt(freedom / (freedom - 2))
    innovations[1:] *= np.sqrt(1 - rho**2)
    return bench.noise * lfilter([1.0], [1.0, -rho], innovations, axis=0)
