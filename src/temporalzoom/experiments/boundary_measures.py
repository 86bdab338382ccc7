"""Boundaries of a system beside the true ones: how sharp they are, and how far they are off, by recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.datasets.samples import Sample
from temporalzoom.experiments.measures import Bench, Predictions
from temporalzoom.experiments.per_recording import summarized
from temporalzoom.experiments.rereading import Read, Way, read_again, ways_compared
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics import boundary_chamfer, peak_sharpness
from temporalzoom.models import Outputs

COLUMNS = {"sharpness": ("peak sharpness, %", 1), "bcd": ("BCD, frames", 2)}
VOTES = 4.0  # positions; from farther away, distances say little about where a boundary is
LIMIT = 60.0  # frames; a boundary that is farther from all others is missed, by how much does not matter
MEANINGS = {
    "sharpness": "Sharpness: one minus the mean of the boundary curve 2 to 4 positions beside its peak, in units of "
    "the peak, mean over true boundaries. The curve: the probability; of distances, how many of the positions around "
    "say that the boundary is here; of boxes, the scores of those that end here.",
    "bcd": f"BCD: Chamfer distance of found and true starts and ends, of as many segments as there are instances, at "
    f"most {LIMIT:g} frames.",
}


def notes(columns: Iterable[str]) -> list[str]:
    """What these measures are."""
    return [MEANINGS[name] for name in columns]


def frame_rate(localizer: Localizer, sample: Sample, outputs: Outputs) -> dict[str, float]:
    """Frames per second of one recording."""
    return {"fps": sample.grid.fps}


def chamfer_of(truth: Predictions, read: Read) -> NDArray[np.float64]:
    """Of networks that were read again, with their frame rates."""
    return chamfer(truth, read.predictions, read)


def chamfer(truth: Predictions, seeds: Sequence[Predictions], read: Read) -> NDArray[np.float64]:
    """(S, V), in frames."""
    rates = dict(zip(truth, read.observed["fps"][0].tolist(), strict=True))
    return np.stack([boundary_chamfer(truth, found, rates, LIMIT) for found in seeds])


def sharpness(localizer: Localizer, sample: Sample, outputs: Outputs) -> dict[str, float]:
    """Of one recording, in percent, the mean over its boundaries; and its frames per second."""
    curves = boundary_curves(outputs, len(sample))
    times = (sample.segments.starts, sample.segments.ends)
    found = [peak_sharpness(curve, sample.grid.to_grid(at)) for curve, at in zip(curves.T, times, strict=True)]
    values = np.concatenate(found)
    return {"sharpness": 100 * float(values.mean()) if len(values) else np.nan, "fps": sample.grid.fps}


def boundary_curves(outputs: Outputs, length: int) -> NDArray[np.float64]:
    """How much speaks for a start and for an end at each position, (T, 2). outputs: tensors of (T, ...)."""
    if outputs.boundary_logits is not None:
        return outputs.boundary_logits.double().sigmoid().numpy()[:, [0, -1]]
    if outputs.distances is not None:
        distances = outputs.distances.double().numpy()[:, [0, -1]]
        near = np.abs(distances) <= VOTES
        at = np.arange(length)[:, None] - distances
        return np.stack([votes(at[:, side], near[:, side].astype(float), length) for side in (0, 1)], 1)
    scores = outputs.logits.double().sigmoid().amax(-1).numpy()
    positions = np.arange(length) if outputs.points is None else outputs.points.positions.double().numpy()
    offsets = outputs.offsets.double().numpy()
    ends = (positions - offsets[:, 0], positions + offsets[:, 1])
    return np.stack([votes(at, scores, length) for at in ends], 1)


def votes(at: NDArray[np.float64], weights: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Weights (N,) of real-valued positions (N,), summed at the two positions around each: (T,)."""
    at = np.where(np.isfinite(at), at, -10.0).clip(-10.0, length + 10.0)
    lower = np.floor(at).astype(np.intp)
    share = at - lower
    curve = np.zeros(length + 22)
    np.add.at(curve, lower + 10, weights * (1 - share))
    np.add.at(curve, lower + 11, weights * share)
    return curve[10 : length + 10]


def ways_and_boundaries(
    bench: Bench, ways: Mapping[str, Way], comparisons: Sequence[tuple[str, str]], baseline: str
) -> dict[str, Any]:
    """What a table of ways to place boundaries stores: what `ways_compared` has, and `boundaries`, BCD of each."""
    read = read_again(bench, ways, frame_rate)
    models = {name: way.system for name, way in ways.items()}
    bcd = {"bcd": {name: chamfer_of(bench.truth, found) for name, found in read.items()}}
    return {
        **ways_compared(bench, ways, comparisons, baseline, read),
        "boundaries": summarized(bcd, comparisons, bench.resamples, models),
    }
