"""WebVTT: subtitles for browsers and players."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from temporalzoom.formats.cues import milliseconds, one_line, timestamp
from temporalzoom.formats.per_recording import write_each
from temporalzoom.segments import Segments


def write_vtt(path: str | Path, results: Mapping[str, Segments]) -> list[Path]:
    """Subtitles: one video makes one file, several make a folder named as `path` without suffix, one file each."""
    return write_each(path, results, lambda target, recording, segments: vtt_text(segments))


def vtt_text(segments: Segments) -> str:
    """A WebVTT document: one cue per segment in order of the starts, its text `label (score)`."""
    blocks = ["WEBVTT\n"]
    for start, end, label, score in milliseconds(segments):
        text = one_line(label).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        blocks.append(f"{timestamp(start, '.')} --> {timestamp(end, '.')}\n{text} ({score:.2f})\n")
    return "\n".join(blocks)
