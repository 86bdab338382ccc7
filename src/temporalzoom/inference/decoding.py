"""Raw outputs of one sequence -> segments: candidates, refinement, suppression, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from temporalzoom.bdr import assumed_box_variance, refine_segments
from temporalzoom.config import InferenceConfig
from temporalzoom.inference.nms import suppress, vote
from temporalzoom.models import Outputs
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

# Where the first order says nothing any more: of segments shorter than this many positions, and of hopeless ones.
SHORTEST, LEAST_OVERLAP = 0.5, 0.05


@dataclass(frozen=True)
class Candidates:
    """Unsuppressed segments in grid units, best first: (N,) each; variances (N, 2) of start and end, None if the
    network predicts none."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    labels: NDArray[np.intp]
    scores: NDArray[np.float64]
    variances: NDArray[np.float64] | None


def find_candidates(outputs: Outputs, options: InferenceConfig) -> Candidates:
    """The highest class scores and the boxes of their positions. outputs: tensors of (N, ...)."""
    scores = torch.sigmoid(outputs.logits.float())
    count = min(options.candidates, scores.numel())
    best, index = torch.sort(scores.flatten(), descending=True, stable=True)
    best, index = best[:count], index[:count]
    index, best = index[best >= options.min_score], best[best >= options.min_score]
    row, label = index // scores.shape[1], index % scores.shape[1]
    position = row if outputs.points is None else outputs.points.positions[row].double()
    offsets = outputs.offsets[row] if outputs.offsets.ndim == 2 else outputs.offsets[row, label]
    offsets = offsets.double()
    spread = outputs.offset_log_variance
    return Candidates(
        (position - offsets[:, 0]).numpy(),
        (position + offsets[:, 1]).numpy(),
        label.numpy(),
        best.double().numpy(),
        None if spread is None else _variance(spread[row]),
    )


def _variance(logarithm: torch.Tensor) -> NDArray[np.float64]:
    """Between e^-8 and e^8; NaN, where features are so large that a network overflows, is as uncertain as can be."""
    return np.exp(logarithm.double().nan_to_num(8.0).clamp(-8, 8).numpy())


def refine(candidates: Candidates, outputs: Outputs, options: InferenceConfig) -> Candidates:
    """Starts and ends moved to the zeros of the distance fields; as they are, without BDR.

    An end that is moved has the variance of the field, fused with that of its box in mode `fuse`; an end for which no
    zero was found keeps that of its box.
    """
    if outputs.distances is None or outputs.distance_log_variance is None or options.refine == "none":
        return candidates
    fields = outputs.distances.double().numpy()
    variances = _variance(outputs.distance_log_variance)[:, [0, -1]]
    box = candidates.variances
    if box is None:
        box = assumed_box_variance(candidates.starts, candidates.ends, options.max_move)[:, None].repeat(2, 1)
    starts, ends, taken = refine_segments(
        candidates.starts,
        candidates.ends,
        fields[:, 0],
        fields[:, -1],  # of a joint field, the same
        mode=options.refine,
        max_move=options.max_move,
        min_slope=options.min_slope,
        window=options.boundary_window,
        box_variance=box,
        start_variance=variances[:, 0],
        end_variance=variances[:, 1],
        return_taken=True,
    )
    positions = np.arange(len(variances))
    known = np.stack([np.interp(at, positions, variances[:, side]) for side, at in enumerate((starts, ends))], 1)
    if options.refine == "fuse":
        known = 1 / (1 / known + 1 / box)
    known = np.where(taken, known, box)
    return replace(candidates, starts=starts, ends=ends, variances=known)


def weigh_by_certainty(candidates: Candidates, power: float) -> Candidates:
    """Scores times the expected tIoU to a power, best first again; as they are where no variances are predicted."""
    if not power or candidates.variances is None:
        return candidates
    deviations = np.sqrt(candidates.variances)
    scores = candidates.scores * expected_tiou(candidates.ends - candidates.starts, deviations) ** power
    order = np.argsort(-scores, kind="stable")
    starts, ends, labels = candidates.starts[order], candidates.ends[order], candidates.labels[order]
    return Candidates(starts, ends, labels, scores[order], candidates.variances[order])


def expected_tiou(lengths: NDArray[np.float64], deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """What is left of the overlap of segments whose ends are off by Gaussian errors, to first order.

    lengths: (N,), deviations: (N, 2) of start and end -> (N,). The mean size of a Gaussian error is sqrt(2 / pi) of its
    deviation.
    """
    lost = np.sqrt(2 / np.pi) * deviations.sum(axis=1)
    return np.clip(1 - lost / np.maximum(lengths, SHORTEST), LEAST_OVERLAP, 1.0)


def decode(
    outputs: Outputs, classes: Sequence[str], grid: TimeGrid, duration: float, options: InferenceConfig
) -> Segments:
    """Segments in seconds, highest score first. outputs: tensors of (T, ...)."""
    candidates = refine(find_candidates(outputs, options), outputs, options)
    candidates = weigh_by_certainty(candidates, options.certainty)
    starts, ends = grid.to_seconds(candidates.starts, duration), grid.to_seconds(candidates.ends, duration)
    real = np.flatnonzero(ends > starts)  # a box wholly outside the recording is clipped to nothing
    kept, scores = suppress(
        starts[real],
        ends[real],
        candidates.scores[real],
        candidates.labels[real],
        method=options.suppression,
        sigma=options.sigma,
        tiou_threshold=options.tiou_threshold,
        min_score=options.min_score,
        max_segments=options.max_segments,
        duration=duration,
    )
    kept = real[kept]
    if options.voting is not None:
        columns = (starts[real], ends[real], candidates.scores[real], candidates.labels[real])
        voted_starts, voted_ends = vote(*columns, np.searchsorted(real, kept), options.voting)
    else:
        voted_starts, voted_ends = starts[kept], ends[kept]
    names = np.asarray(classes, dtype=np.str_)
    return Segments(voted_starts, voted_ends, names[candidates.labels[kept]], scores, classes=classes)
