"""Raw outputs of one sequence -> segments: candidates, refinement, suppression, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from temporalzoom.bdr import refine_segments
from temporalzoom.config import InferenceConfig
from temporalzoom.inference.nms import suppress
from temporalzoom.inference.voting import vote
from temporalzoom.models import Outputs
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid


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
        None if spread is None else np.exp(spread[row].double().clamp(-8, 8).numpy()),
    )


def refine(candidates: Candidates, outputs: Outputs, options: InferenceConfig) -> Candidates:
    """Starts and ends moved to the zeros of the distance fields; as they are, without BDR."""
    if outputs.distances is None or outputs.distance_log_variance is None or options.refine == "none":
        return candidates
    fields = outputs.distances.double().numpy()
    variances = np.exp(outputs.distance_log_variance.double().clamp(-8, 8).numpy())
    starts, ends = refine_segments(
        candidates.starts,
        candidates.ends,
        fields[:, 0],
        fields[:, -1],  # of a joint field, the same
        mode=options.refine,
        max_move=options.max_move,
        box_variance=candidates.variances,
        start_variance=variances[:, 0],
        end_variance=variances[:, -1],
    )
    return Candidates(starts, ends, candidates.labels, candidates.scores, candidates.variances)


def decode(
    outputs: Outputs, classes: Sequence[str], grid: TimeGrid, duration: float, options: InferenceConfig
) -> Segments:
    """Segments in seconds, highest score first. outputs: tensors of (T, ...)."""
    candidates = refine(find_candidates(outputs, options), outputs, options)
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
    return Segments(voted_starts, voted_ends, names[candidates.labels[kept]], scores)
