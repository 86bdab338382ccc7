"""Segments: the one container that crosses rooms. Starts and ends in seconds, labels, scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, eq=False)
class Segments:
    """The action instances of one recording, as parallel arrays of length N.

    starts, ends: float64 seconds; labels: class names; scores: float64 (1.0 for annotations).
    """

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    labels: NDArray[np.str_]
    scores: NDArray[np.float64]

    def __init__(
        self, starts: ArrayLike, ends: ArrayLike, labels: ArrayLike | Sequence[str], scores: ArrayLike | None = None
    ) -> None:
        columns = {
            "starts": np.array(starts, np.float64).reshape(-1),
            "ends": np.array(ends, np.float64).reshape(-1),
            "labels": np.array(labels, np.str_).reshape(-1),
        }
        columns["scores"] = (
            np.ones(len(columns["starts"])) if scores is None else np.array(scores, np.float64).reshape(-1)
        )
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"columns of different lengths: {lengths}")
        for name, column in columns.items():
            column.setflags(write=False)
            object.__setattr__(self, name, column)

    @classmethod
    def empty(cls) -> Segments:
        return cls([], [], [], [])

    @classmethod
    def concatenate(cls, parts: Iterable[Segments]) -> Segments:
        """All segments of all parts, in order."""
        parts = list(parts)
        if not parts:
            return cls.empty()
        return cls(*(np.concatenate([getattr(p, c) for p in parts]) for c in ("starts", "ends", "labels", "scores")))

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Segments:
        """Records `{"label", "segment": [start, end], "score"?}`, the form of the field's JSON files."""
        records = list(records)
        return cls(
            [r["segment"][0] for r in records],
            [r["segment"][1] for r in records],
            [str(r["label"]) for r in records],
            [r.get("score", 1.0) for r in records],
        )

    def to_records(self, digits: int | None = None) -> list[dict[str, Any]]:
        """The inverse of `from_records`; `digits` rounds times and scores."""

        def number(value: np.float64) -> float:
            return float(value) if digits is None else round(float(value), digits)

        return [
            {"label": str(label), "segment": [number(start), number(end)], "score": number(score)}
            for start, end, label, score in zip(self.starts, self.ends, self.labels, self.scores, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[float, float, str, float]]:
        """Rows `(start, end, label, score)`."""
        for start, end, label, score in zip(self.starts, self.ends, self.labels, self.scores, strict=True):
            yield float(start), float(end), str(label), float(score)

    def __getitem__(self, index: int | slice | ArrayLike) -> Segments:
        """Rows by integer, slice, boolean mask or integer array."""
        key = [index] if isinstance(index, int | np.integer) else index
        if not isinstance(key, slice):
            key = np.asarray(key)
            key = key.astype(np.intp) if key.size == 0 and key.dtype != np.bool_ else key
        return Segments(self.starts[key], self.ends[key], self.labels[key], self.scores[key])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Segments):
            return NotImplemented
        return all(np.array_equal(getattr(self, c), getattr(other, c)) for c in ("starts", "ends", "labels", "scores"))

    @property
    def durations(self) -> NDArray[np.float64]:
        return self.ends - self.starts

    def filter(
        self,
        *,
        min_score: float | None = None,
        labels: str | Collection[str] | None = None,
        between: tuple[float, float] | None = None,
    ) -> Segments:
        """Segments with at least `min_score`, one of `labels`, and touching the time span `between` (seconds)."""
        keep = np.ones(len(self), bool)
        if min_score is not None:
            keep &= self.scores >= min_score
        if labels is not None:
            keep &= np.isin(self.labels, [labels] if isinstance(labels, str) else list(labels))
        if between is not None:
            keep &= (self.ends >= between[0]) & (self.starts <= between[1])
        return self[keep]

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

    def shift(self, seconds: float) -> Segments:
        """The same segments, `seconds` later."""
        return Segments(self.starts + seconds, self.ends + seconds, self.labels, self.scores)

    def clip(self, duration: float) -> Segments:
        """Times limited to `[0, duration]`."""
        return Segments(np.clip(self.starts, 0, duration), np.clip(self.ends, 0, duration), self.labels, self.scores)

    def table(self, title: str | None = None, limit: int | None = None) -> Table:
        """A table for the terminal (`rich.print(segments.table())`)."""
        # Text, because rich would take square brackets in a name for markup.
        table = Table(title=None if title is None else Text(title), title_justify="left")
        for name, justify in (
            ("start", "right"),
            ("end", "right"),
            ("length", "right"),
            ("label", "left"),
            ("score", "right"),
        ):
            table.add_column(name, justify=justify)  # type: ignore[arg-type]
        rows = list(self)[:limit]
        for start, end, label, score in rows:
            table.add_row(f"{start:.2f}", f"{end:.2f}", f"{end - start:.2f}", Text(label), f"{score:.3f}")
        if len(rows) < len(self):
            table.caption = f"{len(self) - len(rows)} more"
        return table

    def __repr__(self) -> str:
        rows = "; ".join(f"{s:.2f}-{e:.2f} {label} {score:.2f}" for s, e, label, score in list(self)[:5])
        return f"Segments({len(self)}: {rows}{'; ...' if len(self) > 5 else ''})"
