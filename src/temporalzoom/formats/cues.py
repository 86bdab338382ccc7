"""Times on a screen: whole milliseconds, never negative, never empty."""

from __future__ import annotations

from collections.abc import Iterator

from temporalzoom.segments import Segments


def milliseconds(segments: Segments) -> Iterator[tuple[int, int, str, float]]:
    """Rows `(start, end, label, score)` in order of the starts, for formats in which an entry ends after it starts."""
    for start, end, label, score in segments.sort("start"):
        first = max(0, round(start * 1000))
        yield first, max(first + 1, round(end * 1000)), label, score


def one_line(label: str) -> str:
    """Spaces and line ends of any kind become one space: an empty line would end a subtitle."""
    return " ".join(label.split())


def timestamp(time: int, decimal_mark: str) -> str:
    """Milliseconds as `hours:minutes:seconds.milliseconds`."""
    seconds, rest = divmod(time, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{decimal_mark}{rest:03d}"
