"""The columns of segments: arrays made from what is given, what of it is refused, and the way to pandas and back."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:  # optional
    import pandas  # type: ignore[import-untyped]


# Python's own strings. Those of numpy have one length for all: a NUL at the end of one is lost, and all are as large as
# the longest.
Labels = NDArray[np.object_]


class Columns(NamedTuple):
    """N rows: starts, ends and scores are float64 (N,), labels are strings (N,). None of them can be written to."""

    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    labels: Labels
    scores: NDArray[np.float64]

    def rows(self) -> Iterator[tuple[float, float, str, float]]:
        """`(start, end, label, score)` of each segment, as Python's own numbers and text."""
        return zip(*(column.tolist() for column in self), strict=True)


def make_columns(
    starts: ArrayLike, ends: ArrayLike, labels: ArrayLike | Sequence[str], scores: ArrayLike | None
) -> Columns:
    """Copies of what is given; scores are 1 if there are none."""
    times, until = np.array(starts, np.float64).reshape(-1), np.array(ends, np.float64).reshape(-1)
    numbers = np.ones(len(times)) if scores is None else np.array(scores, np.float64).reshape(-1)
    columns = Columns(times, until, as_labels(labels), numbers)
    lengths = {name: len(column) for name, column in columns._asdict().items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"columns of different lengths: {lengths}")
    for column in columns:
        column.setflags(write=False)
    return columns


def as_labels(labels: ArrayLike | Sequence[str]) -> Labels:
    """An array (N,) of strings, a copy; what is no string becomes one."""
    given = labels if isinstance(labels, np.ndarray | list | tuple) else np.asarray(labels)
    if isinstance(given, np.ndarray):
        given = given.reshape(-1).tolist()
    texts = [label if type(label) is str else str(label) for label in given]
    array: Labels = np.empty(len(texts), object)
    array[:] = texts
    return array


def check_order(columns: Columns) -> None:
    """Refuse an end before its start. Times that are no numbers (NaN) pass here: writers and metrics refuse those."""
    if len(backward := np.flatnonzero(columns.ends < columns.starts)):
        row = int(backward[0])
        start, end, label = columns.starts[row], columns.ends[row], columns.labels[row]
        raise ValueError(f"segment {row}, {label!r}, ends before it starts: {start:g} to {end:g} s")


def check_classes(names: Iterable[str], classes: Sequence[str] | None) -> None:
    """Refuse a name that is none of the classes, with the nearest one; nothing to refuse where they are not known."""
    for name in [] if classes is None else dict.fromkeys(names):
        if classes is not None and name not in classes:
            near = difflib.get_close_matches(name, classes, n=1)
            question = f", did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"no class {name!r}{question} The classes are {_listed(classes)}")


def to_frame(columns: Columns) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("Segments.to_frame needs pandas: pip install pandas") from error
    starts, ends, labels, scores = columns
    return pandas.DataFrame({"start": starts, "end": ends, "label": labels, "score": scores})


def from_frame(frame: pandas.DataFrame) -> Columns:
    for name in ("start", "end", "label"):
        if name not in frame.columns:
            raise ValueError(f"no column {name!r}; the columns are {_listed(map(str, frame.columns))}")
    scores = frame["score"].to_numpy() if "score" in frame.columns else None
    labels = [str(label) for label in frame["label"]]
    return make_columns(frame["start"].to_numpy(), frame["end"].to_numpy(), labels, scores)


def _listed(names: Iterable[str], most: int = 20) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "none"
