"""How far mAP would move with other test recordings: blocked bootstrap, and paired differences of two systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.errors import InputError
from temporalzoom.metrics.lengths import length_bins
from temporalzoom.metrics.matching import Matching, match_detections
from temporalzoom.metrics.pairs import Booleans, Floats, Integers
from temporalzoom.segments import Segments

RESAMPLES = 10_000
AVERAGED = (0.3, 0.4, 0.5, 0.6, 0.7)  # the thresholds of the field's "average mAP"
CHUNK = 2**17  # detections x resamples in one array: about a megabyte, however many resamples


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """mAP (0 to 1) at K tIoU thresholds: `point` (K,) of the recordings as they are, `samples` (R, K) of R resamples.

    A row of `samples` is NaN where only recordings without any instance were drawn.
    """

    thresholds: tuple[float, ...]
    point: Floats
    samples: Floats

    def over(self, thresholds: Sequence[float]) -> tuple[float, Floats]:
        """Mean over some of the thresholds: the point and the samples (R,)."""
        if not thresholds:
            raise InputError("no tIoU threshold given")
        for threshold in thresholds:
            if threshold not in self.thresholds:
                raise InputError(f"tIoU threshold {threshold} is not one of those evaluated, {self.thresholds}")
        columns = [self.thresholds.index(threshold) for threshold in thresholds]
        return float(self.point[columns].mean()), self.samples[:, columns].mean(axis=1)


@dataclass(frozen=True)
class Difference:
    """Mean of one system minus mean of another, its bootstrap interval and two-sided p-value."""

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class PairedDifference:
    """mAP of system a minus that of system b at each threshold, and their `average` over 0.3, 0.4, ..., 0.7.

    `average` is None unless all five thresholds were evaluated.
    """

    by_threshold: dict[float, Difference]
    average: Difference | None


def draw_recordings(count: int, resamples: int = RESAMPLES, seed: int = 0) -> Integers:
    """How often each of `count` recordings is drawn when as many are drawn with replacement: (resamples, count).

    Equal arguments give equal draws. Give one array to all systems compared, so that differences are paired.
    """
    return _draw(count, count, resamples, np.random.default_rng(seed))


def draw_seeds(count: int, resamples: int = RESAMPLES, seed: int = 0) -> Integers:
    """How often each of `count` trained models of a system is drawn: (resamples, count); rows sum to `count` - 1.

    One draw fewer than there are models: with S draws the mean of S models would vary by (S - 1)/S times its
    variance, which is much too little for three models; with S - 1 draws it varies by s²/S, without bias. A single
    model is always drawn: nothing is then known of how seeds vary.
    """
    return _draw(count, max(count - 1, 1), resamples, np.random.default_rng([seed, 1]))


def bootstrap_map(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    thresholds: Sequence[float],
    resamples: int = RESAMPLES,
    seed: int = 0,
    draws: ArrayLike | None = None,
) -> BootstrapResult:
    """mAP (ActivityNet protocol) of resampled test sets; recordings are the blocks that are drawn.

    A recording drawn n times counts n times: its instances, and its detections at their place in the ranking. Among
    equal scores the order is that of the whole set. A class without any instance in a resample is left out of its mean.
    Copies of a recording support each other in the ranking, so that with few recordings resampled mAP lies on average
    a little above `point`, and its interval with it; in the difference of two systems this largely cancels.

    draws: (R, V) how often each recording of `truth`, in its order, is drawn; `draw_recordings(V, resamples, seed)`
    if not given.
    """
    unknown = [recording for recording in predictions if recording not in truth]
    if unknown:
        raise InputError(
            f"predictions for recording {unknown[0]!r}, which the ground truth does not name: leave it out, or add it "
            "to the ground truth without instances if it is background"
        )
    drawn = _checked_draws(draw_recordings(len(truth), resamples, seed) if draws is None else draws, len(truth))
    # Matching inside a recording does not depend on the other recordings: once is enough.
    matching = match_detections(truth, predictions, thresholds)
    rankings = [_ranking(matching, label, len(truth)) for label in range(len(matching.classes))]
    size = max(1, CHUNK // max(1, *(len(ranking.recordings) for ranking in rankings)))
    samples = [_map_of_draws(rankings, drawn[first : first + size]) for first in range(0, len(drawn), size)]
    point = _map_of_draws(rankings, np.ones((1, len(truth)), np.intp))[0]
    return BootstrapResult(matching.thresholds, point, np.concatenate(samples))


def bootstrap_map_by_length(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    threshold: float,
    edges: Sequence[float],
    draws: ArrayLike,
) -> list[BootstrapResult]:
    """The same of each length bin, as `evaluate_by_length` has it: its own instances are the positives, detections of
    the others do not count. NaN where a resample has no instance of the bin. draws: (R, V)."""
    drawn = _checked_draws(draws, len(truth))
    matching = match_detections(truth, predictions, [threshold])
    bins = length_bins(matching.truth.ends - matching.truth.starts, edges)
    found = matching.found[0]
    of_detection = np.where(found >= 0, bins[found], -1)
    results = []
    for index in range(len(edges) - 1):
        counted, inside = (found < 0) | (of_detection == index), bins == index
        part = replace(matching, truth=matching.truth[inside], detections=matching.detections[counted])
        part = replace(part, found=np.where(found[counted] >= 0, 0, -1)[None], ignored=matching.ignored[:, counted])
        rankings = [_ranking(part, label, len(truth)) for label in range(len(matching.classes))]
        samples = _map_of_draws(rankings, drawn)
        point = _map_of_draws(rankings, np.ones((1, len(truth)), np.intp))[0]
        results.append(BootstrapResult(matching.thresholds, point, samples))
    return results


def mean_over_seeds(results: Sequence[BootstrapResult], seed_draws: ArrayLike | None = None) -> BootstrapResult:
    """The mean of a system's S trained models, in every resample of recordings.

    Its intervals tell how other recordings would change the result of these very models. With `seed_draws` (R, S),
    see `draw_seeds`, each resample has its own mixture of models, and the intervals also tell of other seeds.
    All results must come from the same draws of recordings.
    """
    if not results:
        raise InputError("no result to average: a system needs at least one trained model")
    first = results[0]
    for result in results:
        if result.thresholds != first.thresholds or result.samples.shape != first.samples.shape:
            raise InputError("results with different thresholds or numbers of resamples cannot be averaged")
    samples = np.stack([result.samples for result in results])
    weights = np.ones((len(first.samples), len(results)))
    if seed_draws is not None:
        weights = _checked_draws(seed_draws, len(results), "trained models").astype(np.float64)
        if len(weights) != len(first.samples):
            raise InputError(f"{len(weights)} draws of seeds for {len(first.samples)} resamples of recordings")
    weights = weights / weights.sum(axis=1, keepdims=True)
    point = np.mean([result.point for result in results], axis=0)
    return BootstrapResult(first.thresholds, point, np.einsum("rs,srk->rk", weights, samples))


def paired_difference(
    truth: Mapping[str, Segments],
    predictions_a: Sequence[Mapping[str, Segments]],
    predictions_b: Sequence[Mapping[str, Segments]],
    thresholds: Sequence[float],
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = 0.95,
    resample_seeds: bool = True,
    same_models: bool = False,
) -> PairedDifference:
    """mAP of system a minus mAP of system b; each is the mean over the predictions of its models, one per seed.

    In a resample both systems and all their models meet the same recordings: a hard recording is hard for both.
    resample_seeds: also draw models anew (`draw_seeds`), for each system on its own, since equal seeds of different
    systems have nothing in common. The question is then whether the method is better; without, whether these models
    are. It is the default because it is the claim usually made; a system with one model brings no variation of seeds
    to the interval, which then is about that model, and with two models the variation is hardly known. same_models:
    both are predictions of the same networks, in this order, read in two ways; they are then drawn together.
    """
    draws = draw_recordings(len(truth), resamples, seed)
    means = []
    for side, system in enumerate((predictions_a, predictions_b)):
        results = [bootstrap_map(truth, predictions, thresholds, draws=draws) for predictions in system]
        drawn = 2 * seed + (0 if same_models else side)
        seed_draws = draw_seeds(len(results), resamples, drawn) if resample_seeds and results else None
        means.append(mean_over_seeds(results, seed_draws))
    a, b = means

    def difference(chosen: Sequence[float]) -> Difference:
        (point_a, samples_a), (point_b, samples_b) = a.over(chosen), b.over(chosen)
        # Rounded: sums taken in different orders must not make equal systems differ by 1e-17 with a tiny p-value.
        samples = np.round(samples_a - samples_b, 12)
        return Difference(round(point_a - point_b, 12), *bootstrap_interval(samples, level), bootstrap_p_value(samples))

    average = difference(AVERAGED) if set(AVERAGED) <= set(a.thresholds) else None
    return PairedDifference({threshold: difference([threshold]) for threshold in a.thresholds}, average)


def bootstrap_mean(
    values: ArrayLike, resamples: int = RESAMPLES, seed: int = 0, seed_side: int = 0
) -> tuple[float, Floats]:
    """The mean of a number per model and recording, values (S, V), NaN where there is none: the point, and (R,) of
    resampled recordings and models. Equal seeds draw the same recordings; seed_side: of systems whose models have
    nothing in common, different ones."""
    table = np.asarray(values, np.float64)
    drawn = draw_recordings(table.shape[1], resamples, seed).astype(np.float64)
    known = ~np.isnan(table)
    sums, counts = drawn @ np.where(known, table, 0.0).T, drawn @ known.T.astype(np.float64)  # (R, S)
    models = draw_seeds(len(table), resamples, 2 * seed + seed_side).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        samples = (sums / counts * models).sum(1) / models.sum(1)
        means = np.where(known, table, 0.0).sum(1) / known.sum(1)
    return float(means.mean()), samples


def bootstrap_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of resampled values (R,): the central `level` of them; NaN values are left out.

    With few recordings (below about 20) such intervals are known to be somewhat too narrow.
    """
    if not 0 < level < 1:
        raise InputError(f"level of an interval must be between 0 and 1, got {level}")
    tail = (1 - level) / 2
    low, high = np.quantile(_numbers(values), [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_p_value(differences: ArrayLike) -> float:
    """Two-sided p-value of resampled differences (R,): twice the share on the rarer side of zero, at most 1.

    Zeros count on both sides, and one resample is added to each, (1 + count)/(1 + R), so that p is never zero. This
    is the percentile interval turned around: p is below 5 % about where the 95 % interval excludes zero.
    """
    values = _numbers(differences)
    rarer = min(int((values <= 0).sum()), int((values >= 0).sum()))
    return min(1.0, 2 * (1 + rarer) / (1 + len(values)))


@dataclass(frozen=True, eq=False)
class _Ranking:
    """Detections of one class, highest score first, down to the last true positive: those below cannot change AP.

    recordings: (N,) index of each; hit: (K, N) true positives; instances: (V,) annotated in each recording.
    """

    recordings: Integers
    hit: Booleans
    instances: Integers


def _ranking(matching: Matching, label: int, recording_count: int) -> _Ranking:
    rows = np.flatnonzero(matching.detections.labels == label)
    hit = matching.found[:, rows] >= 0
    length = 1 + np.flatnonzero(hit.any(axis=0)).max(initial=-1)
    owners = matching.truth.videos[matching.truth.labels == label]
    instances = np.bincount(owners, minlength=recording_count)
    return _Ranking(matching.detections.videos[rows[:length]], hit[:, :length], instances)


def _map_of_draws(rankings: Sequence[_Ranking], draws: Integers) -> Floats:
    """mAP of each resample: draws (R, V) -> (R, K); the mean over the classes with an instance in the resample."""
    weights = np.ascontiguousarray(draws.T, np.float64)
    total: Floats = np.zeros((len(rankings[0].hit), len(draws)))
    present = np.zeros(len(draws))
    for ranking in rankings:
        positives = ranking.instances @ weights
        total += _precision_sums(ranking, weights) / np.maximum(positives, 1)
        present += positives > 0
    return np.where(present > 0, total / np.maximum(present, 1), np.nan).T


def _precision_sums(ranking: _Ranking, weights: Floats) -> Floats:
    """Interpolated precision summed over the true positives, with multiplicity: weights (V, R) -> (K, R).

    n copies of a true positive raise the precision step by step, so that all of them take at least the precision
    after the last copy: one entry of weight n stands for them exactly. A detection that is not drawn repeats the
    precision before it, which changes no running maximum that a drawn one takes.
    """
    copies = weights[ranking.recordings]
    seen = np.maximum(np.cumsum(copies, axis=0), 1)
    sums = np.zeros((len(ranking.hit), weights.shape[1]))
    for row, hit in enumerate(ranking.hit):
        found = copies[hit]
        precision = np.cumsum(found, axis=0) / seen[hit]
        best = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
        sums[row] = (found * best).sum(axis=0)
    return sums


def _draw(count: int, size: int, resamples: int, generator: np.random.Generator) -> Integers:
    if count < 1 or resamples < 1:
        raise InputError(f"nothing to draw: {count} to draw from, {resamples} resamples")
    return generator.multinomial(size, np.full(count, 1 / count), size=resamples).astype(np.intp, copy=False)


def _checked_draws(draws: ArrayLike, columns: int, what: str = "recordings") -> NDArray[np.intp]:
    drawn = np.asarray(draws)
    if drawn.ndim != 2 or drawn.shape[1] != columns or not len(drawn):
        raise InputError(f"draws must be (resamples, {columns}) for {columns} {what}, got {drawn.shape}")
    if not np.issubdtype(drawn.dtype, np.integer) or (drawn < 0).any() or not drawn.any(axis=1).all():
        raise InputError(f"draws must count how often each of the {what} is drawn, at least one in every resample")
    return drawn.astype(np.intp, copy=False)


def _numbers(values: ArrayLike) -> Floats:
    values = np.asarray(values, np.float64)
    numbers = values[~np.isnan(values)]
    if values.ndim != 1 or not len(numbers):
        raise InputError(f"expected one row of resampled numbers, got shape {values.shape} with {len(numbers)} numbers")
    return numbers
