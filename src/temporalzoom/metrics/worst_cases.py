"""Where most goes wrong: the recordings, or stretches of long ones, where most is missed or wrongly found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temporalzoom.metrics.errors import DETECTION_KINDS, INSTANCE_KINDS, Analysis
from temporalzoom.metrics.pairs import Floats, Integers

SHOWN_INSTANCES = 20  # about as many as can be told apart in one picture
CROWDED = 60  # instances and detections


@dataclass(frozen=True)
class Stretch:
    """A part of a recording in seconds, and what goes wrong in it; `whole`: it is all of the recording.

    detections, instances: how many are of each kind; they count where their middle lies.
    """

    recording: str
    start: float
    end: float
    whole: bool
    detections: dict[str, int]
    instances: dict[str, int]

    @property
    def errors(self) -> int:
        """Instances that are not found and detections that are not correct."""
        lost = sum(self.instances.values()) - self.instances["found"]
        return lost + sum(self.detections.values()) - self.detections["correct"]


def worst_stretches(analysis: Analysis, count: int = 6, length: float | None = None) -> list[Stretch]:
    """At most `count` stretches with errors, most errors first.

    length: of a stretch, in seconds; by default what holds about 20 instances, of a crowded recording less. A recording
    is cut into equal parts of at most 5/4 of that; it is taken to end with its last segment. More than two stretches of
    one recording are only there if others are not.
    """
    ends = _recording_ends(analysis)
    longest = np.full(len(ends), stretch_length(analysis) if length is None else length)
    if length is None:
        pools = (analysis.truth, analysis.detections)
        segments = sum(np.bincount(pool.videos, minlength=len(ends)) for pool in pools)
        longest = np.minimum(longest, ends * CROWDED / np.maximum(segments, 1) + 1e-9)
    parts = np.maximum(np.ceil(ends / longest - 0.25).astype(np.intp), 1)  # a little longer is better than two halves
    first = np.concatenate([[0], np.cumsum(parts)])  # index of the first stretch of each recording
    sizes = ends / parts
    tables = []
    for pool, kinds, names in (
        (analysis.detections, analysis.detection_kinds, DETECTION_KINDS),
        (analysis.truth, analysis.instance_kinds, INSTANCE_KINDS),
    ):
        size = np.maximum(sizes[pool.videos], 1e-9)
        part = np.clip(((pool.starts + pool.ends) / 2 / size).astype(np.intp), 0, parts[pool.videos] - 1)
        table = np.zeros((first[-1], len(names)), np.intp)
        np.add.at(table, (first[pool.videos] + part, kinds), 1)
        tables.append(table)
    errors = tables[0][:, 1:].sum(axis=1) + tables[1][:, 1:].sum(axis=1)
    owner = np.repeat(np.arange(len(parts)), parts)
    stretches = []
    for row in _varied(np.argsort(-errors, kind="stable"), owner, errors, count):
        video = int(owner[row])
        start = float((row - first[video]) * sizes[video])
        stretches.append(
            Stretch(
                analysis.recordings[video],
                start,
                start + float(sizes[video]),
                bool(parts[video] == 1),
                dict(zip(DETECTION_KINDS, tables[0][row].tolist(), strict=True)),
                dict(zip(INSTANCE_KINDS, tables[1][row].tolist(), strict=True)),
            )
        )
    return stretches


def _varied(order: Integers, owner: Integers, errors: Integers, count: int) -> list[int]:
    """The first `count` of `order` with errors; the third and later ones of an owner stand behind all others."""
    seen: dict[int, int] = {}
    first: list[int] = []
    later: list[int] = []
    for row in order[errors[order] > 0].tolist():
        number = seen[owner[row]] = seen.get(owner[row], 0) + 1
        (first if number <= 2 else later).append(row)
        if len(first) == count:
            break
    return sorted((first + later)[:count], key=lambda row: -errors[row])


def stretch_length(analysis: Analysis) -> float:
    """Seconds that hold about 20 instances, and in which one of usual length does not fill the picture."""
    ends, truth = _recording_ends(analysis), analysis.truth
    used = np.unique(truth.videos)
    spacing = float(ends[used].sum()) / len(truth)
    return max(SHOWN_INSTANCES * spacing, 4 * float(np.median(truth.ends - truth.starts)), 1e-3)


def _recording_ends(analysis: Analysis) -> Floats:
    """(V,) the last end of a segment in each recording, at least 0."""
    ends: Floats = np.zeros(len(analysis.recordings))
    for pool in (analysis.truth, analysis.detections):
        np.maximum.at(ends, pool.videos, pool.ends)
    return ends
