"""Is a difference more than chance: paired tests over recordings, Holm's correction, and how tables show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temporalzoom.errors import InputError
from temporalzoom.metrics.detection import evaluate_detections
from temporalzoom.metrics.matching import Booleans, Floats
from temporalzoom.segments import Segments


@dataclass(frozen=True)
class PairedTest:
    """Two systems on the same recordings: what `paired_test` found.

    interval: Student's, of the mean difference; p_wilcoxon, p_t: two-sided; dz: Cohen's effect size for pairs, the mean
    difference in standard deviations of the differences.
    """

    mean_difference: float
    interval: tuple[float, float]
    p_wilcoxon: float
    p_t: float
    dz: float


class Holm(NamedTuple):
    """Adjusted p-values, and True where the hypothesis of no difference is rejected; both in the shape given."""

    adjusted: Floats
    rejected: Booleans


def recording_scores(
    truth: Mapping[str, Segments], predictions: Mapping[str, Segments], thresholds: Sequence[float]
) -> dict[str, float]:
    """AP inside each recording, averaged over the classes it has and over `thresholds`: {recording: 0 to 1}.

    In the order of `truth`, so that the scores of two systems are pairs. Recordings without instances have no AP and
    are left out; detections of a class that the recording does not have are not counted against it. The mean of these
    scores is therefore not mAP, which ranks the detections of all recordings together: see `bootstrap_map` for that.
    """
    return {
        recording: evaluate_detections(
            {recording: instances}, {recording: predictions.get(recording, Segments.empty())}, thresholds
        ).average
        for recording, instances in truth.items()
        if len(instances)
    }


def paired_test(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> PairedTest:
    """Paired tests of a - b over N recordings: (N,), (N,), pair by pair. Average the seeds of a recording before.

    Wilcoxon's signed-rank test leaves out pairs without a difference. Where no pair differs, both p-values are 1. Where
    all differ by the same amount, the t-test has no variation to compare with: its p-value is 0 and dz infinite.
    """
    # Here, because scipy.stats is slow to load and few users of metrics need it.
    from scipy import stats

    values_a, values_b = _columns(a, b)
    if not 0 < level < 1:
        raise InputError(f"level of an interval must be between 0 and 1, got {level}")
    count = len(values_a)
    # Rounded in units of the largest value: 0.3 - 0.2 and 0.2 - 0.1 are the same difference, with the same rank.
    scale = float(max(np.abs(values_a).max(), np.abs(values_b).max())) or 1.0
    differences = np.round(values_a / scale - values_b / scale, 12)
    nonzero = differences[differences != 0]
    if not len(nonzero):
        return PairedTest(0.0, (0.0, 0.0), 1.0, 1.0, 0.0)
    p_wilcoxon = float(stats.wilcoxon(nonzero).pvalue)
    if np.ptp(differences) == 0:
        mean = float(differences[0]) * scale
        return PairedTest(mean, (mean, mean), p_wilcoxon, 0.0, float(np.copysign(np.inf, mean)))
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    half = float(stats.t.ppf((1 + level) / 2, count - 1)) * deviation / np.sqrt(count)
    p_t = float(stats.ttest_1samp(differences, 0.0).pvalue)
    interval = (float(mean - half) * scale, float(mean + half) * scale)
    return PairedTest(mean * scale, interval, p_wilcoxon, p_t, mean / deviation)


def holm(p_values: ArrayLike, alpha: float = 0.05) -> Holm:
    """Holm-Bonferroni: with all p-values of a table, of any shape, the chance of any false rejection is at most alpha.

    The i-th smallest of M is multiplied by M - i + 1 (at most 1) and raised to the adjusted value before it.
    """
    values = np.asarray(p_values, np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"p-values must be between 0 and 1, got {values[~((values >= 0) & (values <= 1))][0]}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, got {alpha}")
    flat = values.reshape(-1)
    order = np.argsort(flat, kind="stable")
    stepped = np.minimum(np.maximum.accumulate(flat[order] * np.arange(len(flat), 0, -1)), 1.0)
    adjusted: Floats = np.empty(values.shape)
    adjusted.reshape(-1)[order] = stepped
    return Holm(adjusted, adjusted <= alpha)


def marked(
    value: float,
    low: float,
    high: float,
    p: float | None = None,
    alpha: float = 0.05,
    scale: float = 100.0,
    digits: int = 1,
) -> str:
    """A value with its interval for a table: `89.7 [88.1, 91.0]`; with a p-value a difference: `+4.4 [+1.2, +7.9] *`.

    The star stands where p, adjusted by `holm` over the table, is at most alpha. `scale` 100 prints percent.
    """
    sign = "" if p is None else "+"
    # z: a difference that rounds to zero is +0.0, not -0.0.
    number, first, last = (f"{scale * x:{sign}z.{digits}f}" for x in (value, low, high))
    return f"{number} [{first}, {last}]" + (" *" if p is not None and p <= alpha else "")


def _columns(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    values_a, values_b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if values_a.shape != values_b.shape or values_a.ndim != 1:
        raise InputError(f"paired tests need two rows of equal length, got shapes {values_a.shape}, {values_b.shape}")
    if len(values_a) < 2:
        raise InputError(f"a paired test needs at least two pairs, got {len(values_a)}")
    if not (np.isfinite(values_a).all() and np.isfinite(values_b).all()):
        raise InputError("a paired test needs numbers, got a value that is not finite")
    return values_a, values_b
