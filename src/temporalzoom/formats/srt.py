"""SubRip (.srt): the subtitles that nearly every player opens."""

from __future__ import annotations

from temporalzoom.formats.cues import milliseconds, one_line, timestamp
from temporalzoom.segments import Segments


def srt_text(segments: Segments) -> str:
    """A SubRip document: numbered subtitles in order of the starts, their text `label (score)`.

    The format has no escapes: a player may take `<i>` in a label for slanted letters.
    """
    return "\n".join(
        f"{number}\n{timestamp(start, ',')} --> {timestamp(end, ',')}\n{one_line(label)} ({score:.2f})\n"
        for number, (start, end, label, score) in enumerate(milliseconds(segments), 1)
    )
