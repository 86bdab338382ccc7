"""The fingerprint of a data set: the few numbers from which `tzoom fit` configures itself, and words for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporalzoom.datasets.statistics import covered_time, overlapping_instances
from temporalzoom.formats.annotations import Recording
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_rows import FeatureRows

Floats = NDArray[np.float64]
PERCENTILES = (0, 5, 10, 50, 90, 95, 100)
# Steps that annotators and their tools round to, in seconds.
ROUND_STEPS = (60.0, 10.0, 5.0, 1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.04, 1 / 30, 0.02, 0.01)
RARE_INSTANCES, RARE_SHARE = 5, 0.02
ROUNDED = 0.98  # share of the times that must be multiples of a step


@dataclass(frozen=True)
class Fingerprint:
    """What the rules look at; times in seconds.

    Attributes:
        recordings: how many.
        subjects: how many people (animals, devices) they are of; None: not known.
        seconds: recorded in all.
        lengths: of the recordings, at PERCENTILES.
        rates: rows per second, the lowest and the highest.
        channels: of a row.
        kinds: channels of each kind, such as {"acceleration": 3}; see `signals.channel_kinds`.
        missing: share of the values that are NaN.
        spread: how far the mean of a channel moves from recording to recording, in its standard deviations within
            recordings; the median over channels. Above one, a recording is recognized by its level alone.
        instances: of each class.
        durations: of the instances, at PERCENTILES.
        shortest: the median duration of the class whose instances are shortest, of those that are not rare.
        gaps: between an instance and the next one of its recording, at PERCENTILES; negative where they overlap.
        overlapping: share of the instances that share time with another one.
        covered: share of the recorded time in which something happens.
        annotation_step: what times are multiples of; None: of nothing coarser than a row.
        sharpness: how many times larger the signal changes at a boundary than elsewhere (median); NaN: unknown.
    """

    recordings: int
    subjects: int | None
    seconds: float
    lengths: tuple[float, ...]
    rates: tuple[float, float]
    channels: int
    kinds: Mapping[str, int]
    missing: float
    spread: float
    instances: Mapping[str, int]
    durations: tuple[float, ...]
    shortest: float
    gaps: tuple[float, ...]
    overlapping: float
    covered: float
    annotation_step: float | None
    sharpness: float = float("nan")
    notes: tuple[str, ...] = field(default=())

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rates[0]

    def duration(self, percentile: int) -> float:
        return self.durations[PERCENTILES.index(percentile)]

    def length(self, percentile: int) -> float:
        return self.lengths[PERCENTILES.index(percentile)]

    @property
    def total(self) -> int:
        """Instances of all classes."""
        return sum(self.instances.values())

    @property
    def imbalance(self) -> float:
        """How many times more instances the most frequent class has than the rarest."""
        return max(self.instances.values()) / max(min(self.instances.values()), 1)


def fingerprint(
    recordings: Sequence[Recording],
    read: Callable[[str], NDArray[np.float32] | FeatureRows],
    rates: Mapping[str, float],
    kinds: Sequence[str] = (),
) -> Fingerprint:
    """Of recordings with their annotations.

    Args:
        recordings: those to learn from.
        read: the rows (N, C) of a recording, NaN where a value is missing; asked once each.
        rates: rows per second of each recording.
        kinds: of each channel.
    """
    means, deviations, missing, values = [], [], 0, 0
    at_boundaries: list[Floats] = []
    elsewhere: list[Floats] = []
    seconds: list[float] = []
    width = 0
    for recording in recordings:
        rows, rate = np.asarray(read(recording.name)), rates[recording.name]
        width = rows.shape[1]
        seconds.append(len(rows) / rate)
        gaps = np.isnan(rows)
        missing, values = missing + int(gaps.sum()), values + rows.size
        known = np.where(gaps, 0.0, rows)
        count = np.maximum((~gaps).sum(axis=0), 1)
        mean = known.sum(axis=0, dtype=np.float64) / count
        centred = np.where(gaps, 0.0, rows - mean)
        means.append(mean)
        deviations.append(np.sqrt((centred**2).sum(axis=0, dtype=np.float64) / count))
        change = np.linalg.norm(np.diff(centred, axis=0) / np.maximum(deviations[-1], 1e-12), axis=1)
        edges = np.concatenate([recording.segments.starts, recording.segments.ends]) * rate
        near = np.clip(np.round(edges - 1).astype(np.intp), 0, max(len(change) - 1, 0))
        if len(change):
            elsewhere.append(change)
            at_boundaries.append(change[near])
    segments = [recording.segments for recording in recordings]
    labels = Counter(str(label) for each in segments for label in each.labels)
    total = sum(labels.values())
    within = np.maximum(np.median(deviations, axis=0), 1e-12)
    usual = np.median(np.concatenate(elsewhere)) if elsewhere else 0.0
    boundary = np.median(np.concatenate(at_boundaries)) if any(map(len, at_boundaries)) else float("nan")
    names = {str(r.extra["subject"]) for r in recordings if "subject" in r.extra}
    return Fingerprint(
        recordings=len(recordings),
        subjects=len(names) if names and all("subject" in r.extra for r in recordings) else None,
        seconds=float(sum(seconds)),
        lengths=percentiles(seconds),
        rates=(min(rates[r.name] for r in recordings), max(rates[r.name] for r in recordings)),
        channels=width,
        kinds=dict(Counter(kinds)),
        missing=missing / max(values, 1),
        spread=float(np.median(np.std(means, axis=0) / within)) if len(means) > 1 else 0.0,
        instances=dict(sorted(labels.items())),
        durations=percentiles(np.concatenate([each.durations for each in segments])),
        shortest=shortest_class(segments),
        gaps=percentiles(np.concatenate([gaps_between(each) for each in segments])),
        overlapping=sum(map(overlapping_instances, segments)) / max(total, 1),
        covered=sum(map(covered_time, segments)) / max(sum(seconds), 1e-9),
        annotation_step=annotation_step(segments, min(rates.values())),
        sharpness=float(boundary / usual) if usual > 0 else float("nan"),
    )


def percentiles(values: ArrayLike) -> tuple[float, ...]:
    """At PERCENTILES; NaN of nothing."""
    values = np.asarray(values, np.float64)
    found = np.percentile(values, PERCENTILES) if len(values) else np.full(len(PERCENTILES), np.nan)
    return tuple(float(value) for value in found)


def shortest_class(segments: Sequence[Segments]) -> float:
    """The median duration of the class whose instances are shortest; of rare classes, whose few may be slips, none."""
    everything = Segments.concatenate(segments)
    lasting = everything[everything.durations > 0]
    least = max(RARE_INSTANCES, RARE_SHARE * len(lasting))
    groups = [lasting.durations[lasting.labels == label] for label in sorted(set(lasting.labels.tolist()))]
    medians = [float(np.median(group)) for group in groups if len(group) >= least]
    return min(medians) if medians else float(np.median(lasting.durations)) if len(lasting) else float("nan")


def gaps_between(segments: Segments) -> Floats:
    """From the end of each segment to the start of the next, (N - 1,)."""
    ordered = segments.sort("start")
    return np.asarray(ordered.starts[1:] - ordered.ends[:-1])


def annotation_step(segments: Sequence[Segments], rate: float) -> float | None:
    """The coarsest round step that nearly all times are multiples of, if it is coarser than a row; else None."""
    times = np.concatenate([np.concatenate([each.starts, each.ends]) for each in segments])
    if len(times) < 20:  # a few times are multiples of anything
        return None
    for step in ROUND_STEPS:
        off = np.abs(times / step - np.round(times / step)) * step
        if step > 1.5 / rate and (off < 1e-3 * step + 1e-6).mean() >= ROUNDED:
            return step
    return None


def in_words(found: Fingerprint) -> list[str]:
    """The fingerprint for a user, one sentence each."""
    who = "" if found.subjects is None else f" of {_count(found.subjects, 'subject')}"
    rate = (
        f"{found.rates[0]:.4g}"
        if found.rates[1] - found.rates[0] < 0.02 * found.rates[0]
        else (f"{found.rates[0]:.4g} to {found.rates[1]:.4g}")
    )
    lines = [
        f"{_count(found.recordings, 'recording')}{who}, {span(found.seconds)} in all; one lasts "
        f"{span(found.length(50))} (from {span(found.length(0))} to {span(found.length(100))})",
        f"{found.channels} channels, {rate} rows per second" + _kinds(found.kinds),
        f"{_count(found.total, 'instance')} of {len(found.instances)} classes: "
        + ", ".join(f"{label} {count}" for label, count in list(found.instances.items())[:12])
        + (", ..." if len(found.instances) > 12 else ""),
        f"an instance lasts {span(found.duration(50))} (9 of 10 from {span(found.duration(5))} to "
        f"{span(found.duration(95))}); something happens in {found.covered:.0%} of the time",
    ]
    if found.missing:
        lines.append(f"{found.missing:.1%} of the values are missing")
    if found.overlapping > 0.01:
        lines.append(f"{found.overlapping:.0%} of the instances overlap another one")
    if found.imbalance > 5:
        rarest = min(found.instances, key=lambda label: found.instances[label])
        lines.append(f"classes are imbalanced: {rarest} has only {_count(found.instances[rarest], 'instance')}")
    if found.annotation_step is not None:
        lines.append(
            f"annotated times are multiples of {found.annotation_step:.3g} s: boundaries cannot be found more exactly "
            f"than to about {found.annotation_step / 2:.2g} s"
        )
    if np.isfinite(found.sharpness):
        lines.append(_sharp(found.sharpness))
    return [*lines, *found.notes]


def span(seconds: float) -> str:
    """`3.2 s`, `4 min`, `2.5 h`."""
    if not np.isfinite(seconds):
        return "?"
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def _sharp(ratio: float) -> str:
    strength = "sharp" if ratio > 2 else "visible" if ratio > 1.2 else "gradual, or do not show in single rows"
    return f"boundaries are {strength}: the signal changes {ratio:.2g} times as much there as elsewhere"


def _kinds(kinds: Mapping[str, int]) -> str:
    return ": " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()) if kinds else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
