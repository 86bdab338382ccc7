"""The distance fields around the present of a recording, which refinement reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temporalzoom.bdr import hybrid_field, known_stretch, newton_path, peak_field
from temporalzoom.config import InferenceConfig
from temporalzoom.inference.candidates import Candidates, Fields
from temporalzoom.inference.settling import ReachesBack


def as_distances(fields: Fields) -> Fields:
    """Distance fields alone: of a network that classifies boundaries, those to its peaks, or to the boundaries that its
    distances and its peaks find together."""
    if fields.boundary_logits is None:
        return fields
    probability = 1 / (1 + np.exp(-fields.boundary_logits.astype(np.float64).clip(-60, 60)))
    probability = np.nan_to_num(probability)
    if not fields.distances.shape[1]:
        found = [peak_field(column) for column in probability.T]
        return Fields(np.stack([field for field, _ in found], 1), np.stack([spread for _, spread in found], 1))
    columns = zip(fields.distances.T, probability.T, strict=True)
    return Fields(np.stack([hybrid_field(*column) for column in columns], 1), fields.log_variance)


class FieldWindow:
    """The latest positions of the fields. first: the position at which they begin."""

    def __init__(self, options: InferenceConfig) -> None:
        self.options, self.first = options, 0
        self._parts: list[Fields] = []

    def add(self, fields: Fields | None) -> None:
        if fields is not None:
            self._parts.append(fields)

    def forget(self, before: int) -> None:
        if before > self.first and self._parts:
            whole = self.whole()
            assert whole is not None
            kept = before - self.first
            self._parts = [whole.map(lambda column: column[kept:].copy())]
            self.first = before

    def whole(self) -> Fields | None:
        """All that is kept, (T', K) each; None without BDR."""
        if len(self._parts) > 1:
            self._parts = [Fields.joined(self._parts)]
        return self._parts[0] if self._parts else None

    def ready(self, candidates: Candidates) -> NDArray[np.bool_]:
        """Which of them (N,) read nothing behind the last position so far when their ends follow the fields.

        One that reads what was forgotten raises ReachesBack.
        """
        if self.options.refine == "snap":
            return self._snaps(candidates, is_last=False)
        fields, ready = self.whole(), np.ones(len(candidates.starts), bool)
        assert fields is not None
        last = self.first + len(fields.distances) - 1
        for ends, side in ((candidates.starts, 0), (candidates.ends, -1)):
            path = newton_path(fields.distances[:, side], ends, first=self.first)
            waits = np.maximum.accumulate(~(path < last), axis=0)
            self._check(path, ~waits)
            ready &= ~waits[-1]
        return ready

    def check(self, candidates: Candidates) -> None:
        """At the end of the recording: what reads what was forgotten raises ReachesBack."""
        fields = self.whole()
        if fields is None or not self.first:
            return
        if self.options.refine == "snap":
            self._snaps(candidates, is_last=True)
            return
        for ends, side in ((candidates.starts, 0), (candidates.ends, -1)):
            path = newton_path(fields.distances[:, side], ends, first=self.first)
            self._check(path, np.ones(path.shape, bool))

    def _snaps(self, candidates: Candidates, is_last: bool) -> NDArray[np.bool_]:
        """As `ready`, where ends go to the nearest boundary: all that are near enough must be known by now."""
        fields, options, ready = self.whole(), self.options, np.ones(len(candidates.starts), bool)
        assert fields is not None
        # A position more than an end may move, because sums are rounded.
        reach = options.max_move * np.maximum(candidates.ends - candidates.starts, 0) + 1
        for ends, side in ((candidates.starts, 0), (candidates.ends, -1)):
            low, high = known_stretch(
                fields.distances[:, side],
                min_slope=options.min_slope,
                window=options.boundary_window,
                first=self.first,
                is_last=is_last,
            )
            waits = ~(ends + reach < high)
            if self.first and (~waits & ~(ends - reach > low)).any():
                raise ReachesBack
            ready &= ~waits
        return ready

    def _check(self, path: NDArray[np.float64], counts: NDArray[np.bool_]) -> None:
        if self.first and (counts & ~(path >= self.first)).any():
            raise ReachesBack
