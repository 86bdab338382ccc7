"""The container: N action instances of one recording as parallel arrays, and what people do with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.table import Table

from . import display, intervals
from .columns import Columns, Labels, check_classes, check_order, from_frame, make_columns, to_frame

if TYPE_CHECKING:  # optional, or slow to load
    import pandas  # type: ignore[import-untyped]
    from matplotlib.axes import Axes

Names = Iterable[str] | None


@dataclass(frozen=True, eq=False)
class Segments:
    """The action instances of one recording, as parallel arrays of length N.

    All times are seconds, and every span is half-open, `[start, end)`: a segment holds its start and not its end. So
    segments that touch share no time, and one of zero length (data sets have them, an instant that somebody marked) is
    allowed and holds nothing. A segment that ends before it starts is refused. Nothing can be changed in place; every
    method returns new segments.

    Args:
        starts: (N,) seconds.
        ends: (N,) seconds, none before its start.
        labels: (N,) class names.
        scores: (N,) confidences; 1 if not given, as for annotations.
        classes: all names that a label may have, if that is known. `Localizer` gives those of its model. They stay
            with the segments through all methods, and make `filter` refuse a name that is mistyped.

    Raises:
        ValueError: columns of different lengths, an end before its start, a label outside the classes.

    Example:
        >>> segments = Segments([0, 4, 5], [3, 6, 9], ["serve", "smash", "serve"], [0.9, 0.4, 0.7])
        >>> segments
        Segments(3)
          0.00 - 3.00 s  0.90  'serve'
          4.00 - 6.00 s  0.40  'smash'
          5.00 - 9.00 s  0.70  'serve'
        >>> [label for start, end, label, score in segments if score > 0.5]
        ['serve', 'serve']
        >>> segments[segments.durations > 2].starts.tolist()
        [0.0, 5.0]
    """

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    labels: Labels
    scores: NDArray[np.float64]
    classes: tuple[str, ...] | None

    def __init__(
        self,
        starts: ArrayLike,
        ends: ArrayLike,
        labels: ArrayLike,
        scores: ArrayLike | None = None,
        *,
        classes: Names = None,
    ) -> None:
        self._fill(make_columns(starts, ends, labels, scores), classes)
        check_order(self._columns)
        if self.classes is not None:
            check_classes(sorted(set(self.labels.tolist())), self.classes)

    def _fill(self, columns: Columns, classes: Names) -> None:
        for name, column in columns._asdict().items():
            object.__setattr__(self, name, column)
        object.__setattr__(self, "classes", None if classes is None else tuple(str(name) for name in classes))

    @property
    def _columns(self) -> Columns:
        return Columns(self.starts, self.ends, self.labels, self.scores)

    @classmethod
    def unchecked(
        cls,
        starts: ArrayLike,
        ends: ArrayLike,
        labels: ArrayLike,
        scores: ArrayLike | None = None,
        *,
        classes: Names = None,
    ) -> Segments:
        """Segments as somebody's file has them, also with ends before starts.

        For readers whose result is checked as a whole, so that all its faults are shown at once (`tzoom data check`).
        """
        segments = object.__new__(cls)
        segments._fill(make_columns(starts, ends, labels, scores), classes)
        return segments

    @classmethod
    def empty(cls) -> Segments:
        """No segments."""
        return cls([], [], [], [])

    @classmethod
    def concatenate(cls, parts: Iterable[Segments]) -> Segments:
        """All segments of all parts, in order; nothing is merged (see `union`).

        Example:
            >>> both = [Segments([5], [9], ["run"]), Segments([0], [3], ["sit"])]
            >>> Segments.concatenate(both).labels.tolist()
            ['run', 'sit']
        """
        parts = list(parts)
        if not parts:
            return cls.empty()
        columns = (np.concatenate(column) for column in zip(*(part._columns for part in parts), strict=True))
        known = [part.classes for part in parts if part.classes is not None]
        classes = dict.fromkeys(name for names in known for name in names) if len(known) == len(parts) else None
        return cls.unchecked(*columns, classes=classes)

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Segments:
        """Segments from the records of the field's JSON files, the inverse of `to_records`.

        Args:
            records: mappings `{"label": name, "segment": [start, end]}`, with `"score"` if there is one.

        Example:
            >>> Segments.from_records([{"label": "run", "segment": [0.5, 2]}]).durations.tolist()
            [1.5]
        """
        records = list(records)
        return cls(
            [r["segment"][0] for r in records],
            [r["segment"][1] for r in records],
            [str(r["label"]) for r in records],
            [r.get("score", 1.0) for r in records],
        )

    def to_records(self, digits: int | None = None) -> list[dict[str, Any]]:
        """Plain records, as they stand in the field's JSON files.

        Args:
            digits: decimals to which times and scores are rounded; not at all if not given.

        Example:
            >>> Segments([1 / 3], [2], ["run"]).to_records(digits=2)
            [{'label': 'run', 'segment': [0.33, 2.0], 'score': 1.0}]
        """

        def number(value: float) -> float:
            return value if digits is None else round(value, digits)

        return [{"label": label, "segment": [number(s), number(e)], "score": number(p)} for s, e, label, p in self]

    @classmethod
    def from_frame(cls, frame: pandas.DataFrame) -> Segments:
        """Segments from a pandas table, the inverse of `to_frame`.

        Args:
            frame: columns `start`, `end` and `label`, and `score` if there is one; others are not looked at.

        Raises:
            ValueError: a column is missing.
        """
        return cls(*from_frame(frame))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas table, one row per segment.

        Returns:
            A DataFrame with the columns `start`, `end`, `label` and `score`.

        Raises:
            ImportError: pandas is not installed.

        Example:
            >>> frame = Segments([0, 5], [3, 9], ["run", "run"], [0.9, 0.4]).to_frame()
            >>> frame[frame.score > 0.5].end.tolist()
            [3.0]
        """
        return to_frame(self._columns)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[float, float, str, float]]:
        """Rows `(start, end, label, score)`."""
        return self._columns.rows()

    def __getitem__(self, index: int | slice | ArrayLike) -> Segments:
        """Rows by integer, slice, boolean mask or integer array."""
        key = [index] if isinstance(index, int | np.integer) else index
        if not isinstance(key, slice):
            key = np.asarray(key)
            key = key.astype(np.intp) if key.size == 0 and key.dtype != np.bool_ else key
        return self._with(*(column[key] for column in self._columns))

    def __eq__(self, other: object) -> bool:
        """Equal columns; `classes` only say what there might have been."""
        if not isinstance(other, Segments):
            return NotImplemented
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(self._columns, other._columns, strict=True))

    @property
    def durations(self) -> NDArray[np.float64]:
        """(N,) seconds from start to end."""
        return self.ends - self.starts

    # Choosing

    def filter(
        self,
        *,
        min_score: float | None = None,
        labels: str | Collection[str] | None = None,
        between: tuple[float, float] | None = None,
    ) -> Segments:
        """The segments that meet all conditions given, whole and in their order.

        A class that was not found here gives no segments. A name that is no class at all is an error, where `classes`
        are known; where they are not, nobody can tell one from the other.

        Args:
            min_score: the lowest score that stays.
            labels: one class name or several.
            between: a span in seconds; segments with any time in it stay (see `crop` to cut them).

        Raises:
            ValueError: a name outside `classes`; the message has the nearest one and the names there are.

        Example:
            >>> found = Segments([0, 4], [3, 6], ["serve", "smash"], [0.9, 0.4], classes=["lob", "serve", "smash"])
            >>> found.filter(labels="serve", min_score=0.5).ends.tolist()
            [3.0]
            >>> len(found.filter(labels="lob"))
            0
            >>> found.filter(labels="srve")
            Traceback (most recent call last):
            ValueError: no class 'srve', did you mean 'serve'? The classes are 'lob', 'serve', 'smash'
        """
        keep = np.ones(len(self), bool)
        if min_score is not None:
            keep &= self.scores >= min_score
        if labels is not None:
            wanted = [labels] if isinstance(labels, str) else list(labels)
            check_classes(wanted, self.classes)
            names = set(wanted)
            keep &= np.array([label in names for label in self.labels.tolist()], bool)
        if between is not None:
            keep &= self._within(*between)
        return self[keep]

    def at(self, seconds: float) -> Segments:
        """The segments that hold a moment.

        Example:
            >>> Segments([0, 2], [3, 5], ["run", "sit"]).at(3).labels.tolist()
            ['sit']
        """
        return self[(self.starts <= seconds) & (seconds < self.ends)]

    def sort(self, by: str = "score") -> Segments:
        """By `score` (highest first) or by `start` (earliest first). Stable: ties keep their order."""
        if by == "score":
            return self[np.argsort(-self.scores, kind="stable")]
        if by == "start":
            return self[np.lexsort((self.ends, self.starts))]
        raise ValueError(f"sort by 'score' or 'start', not {by!r}")

    def top(self, count: int) -> Segments:
        """The `count` highest scores, highest first."""
        return self.sort("score")[:count]

    # Moving and cutting

    def shift(self, seconds: float) -> Segments:
        """The same segments, `seconds` later."""
        return self._with(self.starts + seconds, self.ends + seconds, self.labels, self.scores)

    def clip(self, duration: float) -> Segments:
        """Times limited to `[0, duration]`: as many segments as before, in the same order; see `crop` to drop some."""
        starts, ends = np.clip(self.starts, 0, duration), np.clip(self.ends, 0, duration)
        return self._with(starts, ends, self.labels, self.scores)

    def crop(self, start: float, end: float) -> Segments:
        """What lies in the span from `start` to `end`: segments cut to it, those outside dropped. Times stay the same.

        Example:
            >>> part = Segments([0, 4, 8], [3, 6, 9], ["run", "sit", "run"]).crop(2, 5)
            >>> list(part)
            [(2.0, 3.0, 'run', 1.0), (4.0, 5.0, 'sit', 1.0)]
            >>> part.shift(-2).starts.tolist()
            [0.0, 2.0]
        """
        inside = self[self._within(start, end)]
        starts, ends = np.maximum(inside.starts, start), np.minimum(inside.ends, end)
        return self._with(starts, ends, inside.labels, inside.scores)

    # Sets of time, label by label

    def union(self, *others: Segments) -> Segments:
        """The time that segments of each label cover, here or in `others`; without `others`, these alone merged.

        Segments of one label that overlap or touch become one, with their highest score. Different labels may overlap.

        Returns:
            Segments by start; no two of one label overlap or touch, and none has zero length.

        Example:
            >>> list(Segments([0, 2, 7], [3, 5, 8], ["run", "run", "run"], [0.2, 0.6, 0.4]).union())
            [(0.0, 5.0, 'run', 0.6), (7.0, 8.0, 'run', 0.4)]
        """
        together = Segments.concatenate([self, *others])
        return together._with(*intervals.by_label(together._columns, together._columns))

    def intersection(self, other: Segments) -> Segments:
        """The time that segments of each label cover both here and in `other`, with the scores of these.

        Example:
            >>> found, truth = Segments([0, 6], [5, 9], ["run", "sit"], [0.9, 0.8]), Segments([3], [8], ["run"])
            >>> list(found.intersection(truth))
            [(3.0, 5.0, 'run', 0.9)]
        """
        return self._with(*intervals.by_label(self._columns, other._columns, intervals.intersect))

    def difference(self, other: Segments) -> Segments:
        """The time that segments of each label cover here and not in `other`.

        Example:
            >>> found, truth = Segments([0], [9], ["run"], [0.9]), Segments([3, 4], [4, 5], ["run", "sit"])
            >>> list(found.difference(truth))
            [(0.0, 3.0, 'run', 0.9), (4.0, 9.0, 'run', 0.9)]
        """
        return self._with(*intervals.by_label(self._columns, other._columns, intervals.subtract))

    def gaps(self, duration: float, label: str = "background") -> Segments:
        """The time from 0 to `duration` in which no segment runs, of whatever label.

        Args:
            duration: of the recording, in seconds.
            label: the name that the gaps get.

        Example:
            >>> list(Segments([2, 3], [5, 4], ["run", "sit"]).gaps(10))
            [(0.0, 2.0, 'background', 1.0), (5.0, 10.0, 'background', 1.0)]
        """
        free = intervals.complement(intervals.merge(self.starts, self.ends, self.scores))
        whole = intervals.merge(np.zeros(1), np.full(1, float(duration)), np.ones(1))
        starts, ends, scores = intervals.intersect(whole, free)
        return Segments(starts, ends, [label] * len(starts), scores)

    # For the eye

    def plot(self, ax: Axes | None = None, *, truth: Segments | None = None, duration: float | None = None) -> Axes:
        """A timeline: one lane per class, more where segments of a class overlap. The higher the score, the darker.

        Args:
            ax: where to draw; a new figure of fitting height if not given.
            truth: annotations, drawn as outlines above the segments of their class.
            duration: where the time axis ends, in seconds; at the last end if not given.

        Returns:
            The matplotlib axes; `ax.figure.savefig("timeline.png")` writes them to a file.

        Example:
            >>> ax = Segments([0, 4, 5], [3, 6, 9], ["serve", "smash", "serve"]).plot(duration=12)
            >>> [tick.get_text() for tick in ax.get_yticklabels()]
            ['serve', 'smash']
        """
        return display.draw(self._columns, ax, None if truth is None else truth._columns, duration)

    def table(self, title: str | None = None, limit: int | None = None) -> Table:
        """A table for the terminal: `rich.print(segments.table())`; `limit` is the number of rows shown."""
        return display.as_table(self._columns, title, limit)

    def __repr__(self) -> str:
        return display.as_text(self._columns)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return display.as_html(self._columns)

    def _with(self, starts: ArrayLike, ends: ArrayLike, labels: ArrayLike, scores: ArrayLike) -> Segments:
        """Other rows of the same classes; times that were in order still are, so nothing is checked again."""
        return Segments.unchecked(starts, ends, labels, scores, classes=self.classes)

    def _within(self, start: float, end: float) -> NDArray[np.bool_]:
        """(N,) True where a segment has time in the span, or has zero length and lies in it."""
        instant = (self.starts == self.ends) & (self.starts >= start)
        return (start < end) & (self.starts < end) & ((self.ends > start) | instant)
