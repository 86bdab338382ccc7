"""Time budgets, as ethologists report them: how often, how long and when each behaviour happens in a recording.

A bout is a stretch of time in which a behaviour runs. Segments of one label that overlap are one bout; those that only
touch are two, as somebody marked them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments

Floats = NDArray[np.float64]
MOST_BINS = 100_000
BEYOND = 1e-6  # seconds by which rounding may put a start behind the end of a recording


@dataclass(frozen=True, eq=False)
class TimeBudget:
    """One behaviour in one span of time, of one recording or of several (`pool`).

    start, end: of the span, in seconds since the recording began. observed: seconds that were recorded in it. total:
    seconds in which the behaviour ran in it. lengths: of the bouts that start in it, whole also where they last longer
    than it. intervals: from the end of a bout to the start of the next one, for the bouts that start in it; the first
    bout of a recording has none. latencies: from the start of the span to the first bout that starts in it, one number
    per recording that has such a bout. Statistics of nothing are NaN, as is the sd of a single bout.
    """

    behaviour: str
    start: float
    end: float
    observed: float
    total: float
    lengths: Floats
    intervals: Floats
    latencies: Floats

    @property
    def count(self) -> int:
        """Bouts that start in the span."""
        return len(self.lengths)

    @property
    def share(self) -> float:
        """Of the observed time, in which the behaviour ran."""
        return self.total / self.observed if self.observed > 0 else math.nan

    @property
    def mean(self) -> float:
        return _mean(self.lengths)

    @property
    def median(self) -> float:
        return _median(self.lengths)

    @property
    def sd(self) -> float:
        """Of the sample: divided by the number of bouts less one."""
        return float(self.lengths.std(ddof=1)) if self.count > 1 else math.nan

    @property
    def mean_interval(self) -> float:
        return _mean(self.intervals)

    @property
    def median_interval(self) -> float:
        return _median(self.intervals)

    @property
    def latency(self) -> float:
        """Of one recording; over several the mean of those that have one."""
        return _mean(self.latencies)


def time_budget(
    segments: Segments, duration: float, labels: Sequence[str] | None = None, width: float | None = None
) -> list[TimeBudget]:
    """The budget of each behaviour in each bin of time, behaviour by behaviour.

    Args:
        segments: of one recording; what reaches beyond 0 or `duration` is cut off there.
        duration: of the recording, in seconds.
        labels: the behaviours to report, also those that never happen; None: those of the segments, sorted.
        width: of the bins in seconds; the last one may be shorter. None: one bin, the whole recording. Bouts that cross
            bins are split in time, and counted where they start: counts and totals of the bins add up to the whole.
    """
    edges = bin_edges(duration, width)
    names = sorted(set(segments.labels.tolist())) if labels is None else list(labels)
    budgets: list[TimeBudget] = []
    for name in names:
        budgets += _behaviour_budget(str(name), *bouts(segments.filter(labels=str(name)), duration), edges)
    return budgets


def bin_edges(duration: float, width: float | None) -> Floats:
    """(B + 1,) seconds, at least one bin; the last edge is the duration."""
    if not (math.isfinite(duration) and duration >= 0):
        raise InputError(f"the duration of a recording must be a number of seconds, got {duration!r}")
    if width is None:
        return np.array([0.0, duration])
    if not (math.isfinite(width) and width > 0):
        raise InputError(f"bins must last longer than 0 seconds, got {width!r}")
    count = max(math.ceil(duration / width - 1e-9), 1)
    if count > MOST_BINS:
        raise InputError(f"bins of {width:g} s in {duration:g} s are {count}; at most {MOST_BINS} are counted")
    return np.append(np.arange(count) * width, duration)


def bouts(segments: Segments, duration: float) -> tuple[Floats, Floats]:
    """Starts and ends (N,) of the bouts of one behaviour, ascending, within the recording.

    A segment of zero length is a bout of its own, an event that somebody marked.
    """
    for start, end, label, _ in segments:
        if not (math.isfinite(start) and math.isfinite(end) and start <= end):
            raise InputError(f"{label!r} from {start:g} to {end:g} s: a bout must not end before it starts")
        if start > duration + BEYOND:
            raise InputError(f"{label!r} starts at {start:g} s, after the end of the recording at {duration:g} s")
    ordered = segments.sort("start")
    starts, ends = np.clip(ordered.starts, 0, duration), np.clip(ordered.ends, 0, duration)
    instants = starts == ends
    reached = np.maximum.accumulate(ends[~instants])
    begins = np.append(True, starts[~instants][1:] >= reached[:-1])[: len(reached)]
    firsts = np.flatnonzero(begins)
    lasts = np.append(firsts[1:], len(reached))[: len(firsts)] - 1
    starts = np.concatenate([starts[~instants][firsts], starts[instants]])
    ends = np.concatenate([reached[lasts], ends[instants]])
    order = np.lexsort((ends, starts))
    return starts[order], ends[order]


def pool(budgets: Iterable[TimeBudget]) -> TimeBudget:
    """One behaviour in the same span of several recordings: times add up, bouts and intervals are taken together."""
    parts = list(budgets)
    lengths, intervals, latencies = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("lengths", "intervals", "latencies")
    )
    observed, total = sum(part.observed for part in parts), sum(part.total for part in parts)
    end = max(part.end for part in parts)
    return TimeBudget(parts[0].behaviour, parts[0].start, end, observed, total, lengths, intervals, latencies)


def _behaviour_budget(name: str, starts: Floats, ends: Floats, edges: Floats) -> list[TimeBudget]:
    """One budget per bin."""
    last = len(edges) - 2
    # What starts at the very end, an event of zero length, belongs to the last bin.
    places = np.minimum(np.searchsorted(edges[:-1], starts, side="right") - 1, last)
    # Seconds of the behaviour before each edge: what runs in a bin is a difference of two of them.
    covered = np.array([np.clip(edge - starts, 0, ends - starts).sum() for edge in edges])
    gaps = np.maximum(starts[1:] - np.maximum.accumulate(ends)[:-1], 0)
    budgets = []
    for index, (start, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        inside = places == index
        latencies = (starts[inside] - start)[:1]
        total = float(covered[index + 1] - covered[index])
        lengths, intervals = (ends - starts)[inside], gaps[inside[1:]]
        budgets.append(TimeBudget(name, start, end, end - start, total, lengths, intervals, latencies))
    return budgets


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan


def _median(values: Floats) -> float:
    return float(np.median(values)) if len(values) else math.nan
