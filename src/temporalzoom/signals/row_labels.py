"""A label per row becomes annotation: which column holds the labels, and the segments that its runs are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.segments import Labels, Segments, as_labels
from temporalzoom.signals.resampling import LONGEST_GAP, SLACK, Seconds
from temporalzoom.signals.tables import Column

NAMES = frozenset(
    "label labels class classes activity activities phase state behaviour behavior action actions".split()
)
NAMES |= frozenset("annotation annotations gesture gestures event events groundtruth category target".split())
BESIDE = frozenset("name id code true gt ground truth the".split())
NOTHING = frozenset(["", "nan", "none", "null", "background"])  # labels of rows in which nothing is going on
MOST_CLASSES = 100
ROWS_PER_RUN = 2.0  # on average at least: labels last
UNKNOWN_SECONDS = 1.0  # a gap longer than this divides a run even if the label is the same after it


def label_column(columns: Sequence[Column], asked: str | None) -> Column | None:
    """The column with a label per row: the one asked for ("" asks for none), else the one that looks like it."""
    if asked is not None:
        if not asked:
            return None
        for column in columns:
            if column.name == asked:
                return column
        raise InputError(f"no column {asked!r} of labels; it has {', '.join(column.name for column in columns)[:300]}")
    named = [column for column in columns if is_label_name(column.name) and _may_hold_labels(column)]
    found = named or [column for column in columns if column.is_text and _looks_like_labels(column.values)]
    if len(found) > 1:
        names = " and ".join(repr(column.name) for column in found)
        raise InputError(f'{names} may both be labels; say which one: label_column ("" for none)')
    return found[0] if found else None


def is_label_name(name: str) -> bool:
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    if words in (["ground", "truth"], ["gt"]):
        return True
    return any(word in NAMES for word in words) and all(word in NAMES | BESIDE for word in words)


def label_texts(column: Column) -> Labels:
    """One label per row (N,), "" where nothing is going on."""
    if column.is_text:
        texts = [str(cell).strip() for cell in column.values]
    else:
        texts = ["" if np.isnan(number) else f"{number:.15g}" for number in column.values.tolist()]
    return as_labels(["" if text.casefold() in NOTHING else text for text in texts])


def label_runs(labels: Labels, times: Seconds, step: float) -> Segments:
    """Runs of equal labels (N,) at rising times (N,) -> segments in seconds from the first row.

    A run ends where the next one begins, or `step` after its last row where rows are missing then. It goes on over
    missing rows with the same label on both sides, unless these are more than a second (and LONGEST_GAP steps).
    """
    since = times - times[0]
    steps = np.diff(since)
    missing = steps > LONGEST_GAP * SLACK * step
    changes = labels[1:] != labels[:-1]
    divides = changes | (missing & (steps > UNKNOWN_SECONDS))
    begins = np.concatenate([[0], np.flatnonzero(divides) + 1])
    lasts = np.concatenate([begins[1:] - 1, [len(labels) - 1]])
    ends = np.append(since[begins[1:]], since[-1] + step)
    broken = np.append(missing, False)[lasts]
    ends = np.where(broken, since[lasts] + step, ends)
    kept = labels[begins] != ""
    return Segments(since[begins][kept], ends[kept], labels[begins][kept])


def label_note(column: Column, labels: Labels, segments: Segments) -> str:
    classes = list(dict.fromkeys(segments.labels.tolist()))
    shown = ", ".join(classes[:12]) + (f" and {len(classes) - 12} more" if len(classes) > 12 else "")
    nothing = int((labels == "").sum())
    rest = f"; {nothing} rows are background (empty, none, null or background)" if nothing else ""
    return f"Column {column.name!r} is a label per row: {len(segments)} segments of {shown or 'no class'}{rest}."


def _may_hold_labels(column: Column) -> bool:
    """Text, or whole numbers."""
    if column.is_text:
        return _looks_like_labels(column.values, alone=True)
    known = column.values[~np.isnan(column.values)]
    return bool(len(known) and (known == np.rint(known)).all() and len(np.unique(known)) <= MOST_CLASSES)


def _looks_like_labels(cells: NDArray[Any], alone: bool = False) -> bool:
    """Few different words in runs. The same word in all rows names the recording, unless the column says label."""
    distinct = set(cells.tolist())
    classes = {cell for cell in distinct if cell.casefold() not in NOTHING}
    if not classes or len(classes) > MOST_CLASSES or (len(distinct) == 1 and not alone):
        return False
    runs = 1 + int((cells[1:] != cells[:-1]).sum())
    return len(cells) >= ROWS_PER_RUN * runs or (alone and len(cells) < 10)
