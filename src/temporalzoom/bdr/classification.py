"""What BDR is compared and combined with: a classifier of boundaries, and where its probability peaks."""

from __future__ import annotations

import numpy as np

from .extraction import combine_with_probabilities, extract_boundaries, suppress
from .targets import Floats, Numbers, as_float64, distance_targets

LABEL_VARIANCE = 1.0  # of the Gaussian around a boundary that a classifier is trained on, in squared positions
LEAST_VARIANCE = 1 / 12  # of a boundary that may lie anywhere within a position
LARGEST_VARIANCE = 64.0
MIN_PROBABILITY = 0.1  # a peak of less is none


def extract_peaks(
    probability: Numbers, *, min_probability: float = MIN_PROBABILITY, window: float = 5.0
) -> tuple[Floats, Floats, Floats]:
    """Positions (N,), ascending, heights (N,) and variances (N,) of the peaks of one curve (T,) of probabilities.

    A parabola through the logarithms of a local maximum and its neighbours gives its position between the samples, and
    its width; on the Gaussian labels of training the position is exact. What of the width is not that of the labels is
    the variance of the position. Of peaks closer than `window / 2` the highest stays.
    """
    values = as_float64(probability)
    if values.ndim != 1:
        raise ValueError(f"one curve (T,) at a time, got shape {values.shape}")
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    at = np.flatnonzero((values > padded[:-2]) & (values >= padded[2:]) & (values >= min_probability))
    if not len(at):
        return np.empty(0), np.empty(0), np.empty(0)
    logs = np.log(np.clip(values, 1e-12, None))
    inside = (at > 0) & (at < len(values) - 1)
    left, right = logs[np.maximum(at - 1, 0)], logs[np.minimum(at + 1, len(values) - 1)]
    curvature = np.where(inside, 2 * logs[at] - left - right, 0.0)
    bent = np.maximum(curvature, 1e-6)
    positions = at + np.where(curvature > 1e-6, 0.5 * (right - left) / bent, 0.0).clip(-0.5, 0.5)
    variances = np.clip(1 / bent - LABEL_VARIANCE, LEAST_VARIANCE, LARGEST_VARIANCE)
    keep = suppress(positions, values[at], window)
    return positions[keep], values[at][keep], variances[keep]


def peak_field(probability: Numbers) -> tuple[Floats, Floats]:
    """The peaks of a curve (T,) in the form in which BDR finds boundaries: signed distances to the nearest one, (T,),
    and the logarithm of its variance, (T,). Without a peak the field has no zero."""
    values = as_float64(probability)
    positions, _, variances = extract_peaks(values)
    return _field_of(positions, len(values)), np.log(_at_nearest(positions, variances, len(values)))


def hybrid_field(distances: Numbers, probability: Numbers) -> Floats:
    """Signed distances (T,) to the nearest boundary of both a field (T,) and a classifier (T,): its crossings, and
    peaks where none is near (see `combine_with_probabilities`)."""
    crossings, strengths = extract_boundaries(distances, margin=1.0)
    positions, _ = combine_with_probabilities(crossings, strengths, probability)
    return _field_of(positions, len(as_float64(probability)))


def _field_of(boundaries: Floats, length: int) -> Floats:
    return as_float64(distance_targets(boundaries, [], length, channels="joint", radius=None)[:, 0].double())


def _at_nearest(boundaries: Floats, values: Floats, length: int) -> Floats:
    """The values (N,) of the boundaries (N,), ascending, that are nearest to each of `length` positions."""
    if not len(boundaries):
        return np.full(length, LARGEST_VARIANCE)
    middles = (boundaries[1:] + boundaries[:-1]) / 2
    return values[np.searchsorted(middles, np.arange(length), side="right")]
