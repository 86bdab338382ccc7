"""Cross-validation for data that brings no split: which recording is held out when, and what to do with too few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from temporalzoom.datasets.splits import subject
from temporalzoom.formats.annotations import Recording
from temporalzoom.segments import Segments
from temporalzoom.signals.container import Signal


def in_pieces(recording: Recording, signal: Signal, count: int) -> list[tuple[Recording, Signal]]:
    """A recording cut into `count` pieces of about the same length, between instances, in order.

    Where instances leave no gap, a cut goes to the boundary that is nearest to its place.
    """
    assert signal.fps is not None
    length, segments = len(signal.values), recording.segments
    edges = np.unique(np.concatenate([segments.starts, segments.ends]))
    inside = np.array([((segments.starts < e - 1e-9) & (segments.ends > e + 1e-9)).any() for e in edges], bool)
    free = edges[~inside] if (~inside).any() else edges
    cuts = [0]
    for wanted in np.arange(1, count) * length / count / signal.fps:
        nearest = float(free[np.abs(free - wanted).argmin()]) if len(free) else float(wanted)
        gap_end = segments.starts[segments.starts >= nearest - 1e-9].min(initial=length / signal.fps)
        gap_start = segments.ends[segments.ends <= nearest + 1e-9].max(initial=0.0)
        middle = (gap_start + gap_end) / 2 if gap_start <= nearest <= gap_end else nearest
        cuts.append(round(middle * signal.fps))
    bounds = sorted({*cuts, length})
    pieces = []
    for number, (first, last) in enumerate(pairwise(bounds)):
        begin, end = first / signal.fps, last / signal.fps
        middles = (segments.starts + segments.ends) / 2
        own = segments[(middles >= begin) & (middles < end)]
        shifted = Segments(
            np.maximum(own.starts - begin, 0), np.minimum(own.ends - begin, end - begin), own.labels, own.scores
        )
        name = f"{recording.name}-part{number + 1}"
        pieces.append(
            (replace(recording, name=name, segments=shifted), replace(signal, values=signal.values[first:last]))
        )
    return pieces


def deal_folds(recordings: Sequence[Recording], folds: int) -> dict[str, int]:
    """The fold of each recording: all of one subject in the same, each class spread over them.

    Subjects with the rarest classes are dealt first, each to the fold that has the least of what it brings.
    """
    labels = sorted({str(label) for recording in recordings for label in recording.segments.labels})
    index = {label: place for place, label in enumerate(labels)}
    counts: dict[str, NDArray[np.float64]] = {}
    for recording in recordings:
        row = counts.setdefault(subject(recording), np.zeros(len(labels) + 1))
        for label in recording.segments.labels:
            row[index[str(label)]] += 1
        row[-1] += recording.duration or 1.0
    weights = 1 / np.maximum(sum(counts.values(), np.zeros(len(labels) + 1)), 1e-9)
    held = np.zeros((folds, len(labels) + 1))
    fold_of: dict[str, int] = {}
    for name in sorted(counts, key=lambda name: (-(counts[name] * weights).max(), name)):
        share = counts[name] * weights
        # The fold that would be fullest in what this subject has; of equal ones the emptiest, then the first.
        loads = [((held[fold] + share)[share > 0].max(initial=0.0), held[fold].sum(), fold) for fold in range(folds)]
        fold_of[name] = min(loads)[2]
        held[fold_of[name]] += share
    return {recording.name: fold_of[subject(recording)] for recording in recordings}
