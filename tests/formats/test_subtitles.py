"""Subtitles: as programs of others read them, and those of others read."""

import html
import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
import srt
import webvtt
from format_strategies import any_segments, rows
from hypothesis import given

from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.formats.subtitles import srt_text, vtt_text
from temporalzoom.segments import Segments


def parse_vtt(text: str) -> list[tuple[float, float, str]]:
    """Cues `(start, end, text)` by the rules of the WebVTT standard, as far as this project's files need them."""
    lines = re.split("\r\n|\r|\n", text)
    assert lines[0] == "WEBVTT" and lines[1] == ""
    stamp = r"(\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3})"
    cues, rest = [], lines[2:]
    while rest:
        if rest[0] == "":
            rest = rest[1:]
            continue
        match = re.fullmatch(f"{stamp} --> {stamp}", rest[0])
        assert match, rest[0]
        h, m, s, ms, h2, m2, s2, ms2 = (int(group) for group in match.groups())
        end = rest.index("", 1) if "" in rest[1:] else len(rest)
        body = "\n".join(rest[1:end])
        assert body and "-->" not in body and "<" not in body
        cues.append((h * 3600 + m * 60 + s + ms / 1000, h2 * 3600 + m2 * 60 + s2 + ms2 / 1000, html.unescape(body)))
        rest = rest[end:]
    return cues


def words(text: str) -> list[str]:
    """Spaces of any kind, and the characters without width in empty lines, do not count."""
    return text.replace("\u200b", " ").split()


@given(any_segments())
def test_vtt_cues(found: Segments) -> None:
    cues = parse_vtt(vtt_text(found))
    assert len(cues) == len(found)
    for (start, end, text), (true_start, true_end, label, score) in zip(cues, found.sort("start"), strict=True):
        assert start == pytest.approx(true_start, abs=0.00051)
        assert end == pytest.approx(max(true_end, start + 0.001), abs=0.00051)
        assert end > start
        assert words(text.rsplit(" (", 1)[0]) == words(label)
        assert text.endswith(f"({score:.2f})")
    assert [start for start, _, _ in cues] == sorted(start for start, _, _ in cues)


def test_vtt_text_is_exactly_this() -> None:
    found = Segments([3661.5, -0.2, 0.9996], [3700, 0.5, 0.9997], ["jump & run", "a<b", "x\ny"], [0.934, 1, 0.126])
    assert vtt_text(found) == (
        "WEBVTT\n\n"
        "00:00:00.000 --> 00:00:00.500\na&lt;b (1.00)\n\n"
        "00:00:01.000 --> 00:00:01.001\nx\ny (0.13)\n\n"
        "01:01:01.500 --> 01:01:40.000\njump &amp; run (0.93)\n"
    )


def test_srt_text_is_exactly_this(tmp_path: Path) -> None:
    found = Segments([3661.5, -0.2], [3700, 0.5], ["jump & <run>", "two\n\nlines"], [0.934, 1])
    [path] = write_segments(tmp_path / "r.srt", {"v": found})
    assert path.read_bytes().decode() == (
        "1\n00:00:00,000 --> 00:00:00,500\ntwo\n\u200b\nlines (1.00)\n\n"
        "2\n01:01:01,500 --> 01:01:40,000\njump & <run> (0.93)\n"
    )


@given(any_segments())
def test_srt_and_vtt_by_other_programs(found: Segments) -> None:
    """Both hold the same cues, as the packages srt and webvtt-py read them."""
    expected = [(round(s * 1000), label, score) for s, _, label, score in found.sort("start")]
    subtitles = list(srt.parse(srt_text(found)))
    assert [subtitle.index for subtitle in subtitles] == list(range(1, len(found) + 1))
    for subtitle, (start, label, score) in zip(subtitles, expected, strict=True):
        assert subtitle.start == timedelta(milliseconds=start) and subtitle.end > subtitle.start
        assert words(subtitle.content) == words(f"{label} ({score:.2f})")
    captions = webvtt.from_string(vtt_text(found)).captions
    assert [c.start for c in captions] == [c.start.replace(",", ".") for c in webvtt_of_srt(found)]
    assert [words(html.unescape(c.raw_text)) for c in captions] == [words(s.content) for s in subtitles]


def webvtt_of_srt(found: Segments) -> list[webvtt.Caption]:
    return webvtt.WebVTT.from_buffer(StringIO(srt_text(found)), format="srt").captions if len(found) else []


VTT = """\ufeffWEBVTT - made by hand
Kind: captions

STYLE
::cue { color: red }

NOTE not a cue

first
00:01.500 --> 00:02.000 align:left position:10%
<v Ann>walk</v> &amp; <i.loud>run</i>

1:00:00.000 --> 1:00:01.25
two
lines (0.75)
"""
SRT = (
    "7\r\n00:00:01,500 --> 00:00:02,000\r\nwalk & run\r\n \r\n\r\n1:00:00,000-->1:00:01,250 X1:0\r\ntwo\r\nlines (0.75)"
)


@pytest.mark.parametrize(("suffix", "text"), [(".vtt", VTT), (".srt", SRT)])
def test_subtitles_of_others(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"day1{suffix}"
    path.write_bytes(text.encode())
    read = import_annotations([path]).truth()
    assert {name: rows(found) for name, found in read.items()} == {
        "day1": [("two\nlines", 3600.0, 3601.25), ("walk & run", 1.5, 2.0)]
    }


def test_tags_are_markup_in_vtt_and_text_in_srt(tmp_path: Path) -> None:
    cue = "00:00:01.000 --> 00:00:02.000\n<b>walk</b> &lt;\n"
    (tmp_path / "a.vtt").write_text(f"WEBVTT\n\n{cue}")
    (tmp_path / "b.srt").write_text(f"1\n{cue}")
    read = import_annotations([tmp_path / "a.vtt", tmp_path / "b.srt"])
    assert {name: found.labels.tolist() for name, found in read.truth().items()} == {
        "a": ["walk <"],
        "b": ["<b>walk</b> &lt;"],
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.vtt", "", ["empty"]),
        ("a.vtt", "1\n00:00:01,000 --> 00:00:02,000\nrun\n", ["WEBVTT"]),
        ("a.vtt", "WEBVTT\n\nrun\n", ["line 3", "'run'", "-->"]),
        ("a.srt", "", ["no annotation"]),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nrun\n\nand fall\n", ["line 5", "'and fall'"]),
        ("a.srt", "1\n00:00:02,000 --> 00:00:01,000\nrun\n", ["line 2", "end 1", "start 2"]),
        ("a.srt", "1\n00:75:02,000 --> 00:76:01,000\nrun\n", ["line 1"]),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n\n", ["line 2", "label is empty"]),
    ],
)
def test_faults_of_subtitles(
    tmp_path: Path, fails: Callable[..., None], name: str, text: str, words: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    fails([path], [str(path), *words])


def test_subtitles_in_another_encoding(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes("1\n00:00:01,000 --> 00:00:02,000\ngrüßen\n".encode("latin-1"))
    fails([path], [str(path), "UTF-8"])
