"""Subtitles: WebVTT (.vtt) for browsers, SubRip (.srt) for nearly every player. One recording per file.

A cue shows `label (score)`, and a cue without a score is read as a label too, as people type it in a subtitle editor.
Times are whole milliseconds. Labels come back as they were, except that every kind of line end becomes a line feed.
The name of the recording is that of the file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import (
    ExportOptions,
    Imported,
    ImportOptions,
    checked_instance,
    milliseconds,
    read_text,
    short,
)
from temporalzoom.segments import Segments

# An empty line ends a cue; those of a label get this character, which has no width.
BLANK = "\u200b"
_STAMP = r"(?:(\d{1,9}):)?([0-5]?\d):([0-5]?\d)[.,](\d{1,3})"
_TIMES = re.compile(rf"\s*{_STAMP}\s*-->\s*{_STAMP}(?:\s.*)?")  # settings of a cue may follow
_SCORE = re.compile(r" \(-?\d+\.\d\d\)\Z")
_TAG = re.compile("<[^>]*>")
_NO_CUE = ("WEBVTT", "NOTE", "STYLE", "REGION")  # openings of WebVTT's other blocks


# Writing


def write_vtt(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    [segments] = results.values()
    with replacing(path) as file:
        file.write(vtt_text(segments))


def write_srt(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    [segments] = results.values()
    with replacing(path) as file:
        file.write(srt_text(segments))


def vtt_text(segments: Segments) -> str:
    """A WebVTT document: one cue per segment in order of the starts."""
    blocks = ["WEBVTT\n"]
    for start, end, label, score in milliseconds(segments):
        text = _without_empty_lines(label).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        blocks.append(f"{_stamp(start, '.')} --> {_stamp(end, '.')}\n{text} ({score:.2f})\n")
    return "\n".join(blocks)


def srt_text(segments: Segments) -> str:
    """A SubRip document: numbered subtitles in order of the starts.

    The format has no escapes: a player may take `<i>` in a label for slanted letters.
    """
    return "\n".join(
        f"{number}\n{_stamp(start, ',')} --> {_stamp(end, ',')}\n{_without_empty_lines(label)} ({score:.2f})\n"
        for number, (start, end, label, score) in enumerate(milliseconds(segments), 1)
    )


def _stamp(time: int, decimal_mark: str) -> str:
    """Milliseconds as `hours:minutes:seconds.milliseconds`."""
    seconds, rest = divmod(time, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{decimal_mark}{rest:03d}"


def _invisible(line: str) -> bool:
    return not line.replace(BLANK, "").strip()


def _without_empty_lines(label: str) -> str:
    return "\n".join(BLANK + line if _invisible(line) else line for line in label.strip().splitlines())


# Reading


def read_vtt(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """One recording per file. Tags such as `<i>` are left out, `&lt;` and other character references resolved."""
    return [_read(path, "WebVTT") for path in paths]


def read_srt(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """One recording per file; an empty file is a recording without actions."""
    return [_read(path, "SubRip") for path in paths]


def _read(path: Path, kind: str) -> Imported:
    vtt = kind == "WebVTT"
    text = read_text(path, f"{kind} subtitles", may_be_empty=not vtt)
    if vtt and not text.startswith("WEBVTT"):
        raise InputError(f"{path}: not a WebVTT file: it does not begin with WEBVTT")
    instances = []
    for number, lines in _blocks(text):
        # A number or a name may stand above the times.
        times = next(((i, m) for i, line in enumerate(lines[:2]) if (m := _TIMES.fullmatch(line))), None)
        if times is None:
            if vtt and lines[0].startswith(_NO_CUE):
                continue
            raise InputError(f"{path}: line {number}: no times (00:00:01.000 --> 00:00:02.500), got {short(lines[0])}")
        above, match = times
        label = _SCORE.sub("", "\n".join(lines[above + 1 :]))
        if vtt:
            label = html.unescape(_TAG.sub("", label))
        label = "\n".join(line.removeprefix(BLANK) if _invisible(line) else line for line in label.split("\n"))
        start, end = _seconds(*match.groups()[:4]), _seconds(*match.groups()[4:])
        instances.append(checked_instance(start, end, label, f"{path}: line {number + above}"))
    return Imported(path.stem, str(path), instances)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Lines between empty ones, with the number of the first."""
    block: list[str] = []
    lines = re.split("\r\n|\r|\n", text)
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
    return (whole * 1000 + int(fraction.ljust(3, "0"))) / 1000
