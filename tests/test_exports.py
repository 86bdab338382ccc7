"""Exports: JSON and CSV come back as they were, WebVTT is parsed by a reader written for this test."""

import html
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.datasets.annotations import read_predictions
from temporalzoom.errors import InputError
from temporalzoom.exports import read_csv, vtt_text, write_segments
from temporalzoom.segments import Segments

# Not the NUL character, which NumPy drops at the end of a string, nor halves of surrogate pairs, which are not UTF-8.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=10)
LABELS = TEXT | st.sampled_from(["a --> b", "<b>x</b>", "&lt;", "two\n\nlines", 'say "hi", twice', "\r", "跳高"])
TIMES = st.floats(0, 400_000)


@st.composite
def segments(draw: st.DrawFn, min_size: int = 0) -> Segments:
    rows = draw(st.lists(st.tuples(TIMES, TIMES, LABELS, st.floats(0, 1)), min_size=min_size, max_size=6))
    return Segments(*zip(*rows, strict=True)) if rows else Segments.empty()


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
        body = rest[1:end]
        assert len(body) == 1 and "-->" not in body[0] and "<" not in body[0]
        cues.append((h * 3600 + m * 60 + s + ms / 1000, h2 * 3600 + m2 * 60 + s2 + ms2 / 1000, html.unescape(body[0])))
        rest = rest[end:]
    return cues


@given(st.dictionaries(TEXT, segments(), max_size=3))
def test_json_round_trip(tmp_path_factory: pytest.TempPathFactory, results: dict[str, Segments]) -> None:
    path = tmp_path_factory.mktemp("round") / "r.json"
    assert write_segments(path, results) == [path]
    assert read_predictions(path) == results


@given(st.dictionaries(TEXT, segments(min_size=1), max_size=3))
def test_csv_round_trip(tmp_path_factory: pytest.TempPathFactory, results: dict[str, Segments]) -> None:
    path = tmp_path_factory.mktemp("round") / "r.csv"
    assert write_segments(path, results) == [path]
    assert path.read_bytes().splitlines()[0] == b"video,start,end,label,score"
    assert read_csv(path) == results


@given(segments())
def test_vtt_cues(found: Segments) -> None:
    cues = parse_vtt(vtt_text(found))
    assert len(cues) == len(found)
    for (start, end, text), (true_start, true_end, label, score) in zip(cues, found.sort("start"), strict=True):
        assert start == pytest.approx(true_start, abs=0.00051)
        assert end == pytest.approx(max(true_end, start + 0.001), abs=0.00051)
        assert end > start
        # What the cue shows, after the entities of the escaping; spaces of any kind count as one.
        assert text.rsplit(" (", 1)[0].split() == label.split()
        assert text.endswith(f"({score:.2f})")
    assert [start for start, _, _ in cues] == sorted(start for start, _, _ in cues)


def test_vtt_text_is_exactly_this() -> None:
    found = Segments([3661.5, -0.2, 0.9996], [3700, 0.5, 0.9997], ["jump & run", "a<b", "x\ny"], [0.934, 1, 0.126])
    assert vtt_text(found) == (
        "WEBVTT\n\n"
        "00:00:00.000 --> 00:00:00.500\na&lt;b (1.00)\n\n"
        "00:00:01.000 --> 00:00:01.001\nx y (0.13)\n\n"
        "01:01:01.500 --> 01:01:40.000\njump &amp; run (0.93)\n"
    )


def test_vtt_of_one_video_is_a_file_and_of_several_a_folder(tmp_path: Path) -> None:
    one, two = Segments([0], [1], ["run"]), Segments.empty()
    assert write_segments(tmp_path / "one.vtt", {"v": one}) == [tmp_path / "one.vtt"]
    written = write_segments(tmp_path / "all.vtt", {"v.1": one, "../../escape": two})
    assert written == [tmp_path / "all" / "v.1.vtt", tmp_path / "all" / ".._.._escape.vtt"]
    assert parse_vtt(written[0].read_text()) == [(0, 1, "run (1.00)")]
    assert parse_vtt(written[1].read_text()) == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".._.._escape.vtt", "all", "one.vtt", "v.1.vtt"]
    with pytest.raises(InputError, match="same file"):
        write_segments(tmp_path / "all.vtt", {"a/b": one, "a_b": two})


def test_unknown_suffixes_list_the_valid(tmp_path: Path) -> None:
    for name in ("r.xlsx", "r"):
        with pytest.raises(InputError, match=r"\.json, \.csv, \.vtt"):
            write_segments(tmp_path / name, {})
    assert not list(tmp_path.iterdir())


def test_suffixes_in_capitals_and_new_folders(tmp_path: Path) -> None:
    results = {"v": Segments([0], [1], ["run"], [0.5])}
    [path] = write_segments(tmp_path / "new" / "folder" / "R.CSV", results)
    assert read_csv(path) == results


def test_a_failed_write_keeps_the_old_files(tmp_path: Path) -> None:
    bad = {"v": Segments([float("nan")], [1], ["run"])}
    for name in ("r.json", "r.vtt"):
        write_segments(tmp_path / name, {"v": Segments([0], [1], ["run"])})
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ValueError):
            write_segments(tmp_path / name, bad)
        assert (tmp_path / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.vtt"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["'video'"]),
        (b"video,start,label\nv,1,a\n", ["'end'"]),
        (b"video,start,end,label,score\nv,1,2,a,0.5\nv,one,2,a,0.5\n", ["line 3", "start", "'one'"]),
        (b"video,start,end,label,score\nv,1,nan,a,0.5\n", ["line 2", "end", "'nan'"]),
        (b"video,start,end,label,score\nv,1,2\n", ["line 2"]),
        (b"video,start,end,label,score\nv,1,2,,0.5\n", ["line 2", "label"]),
        (b"\xff\xfe", ["UTF-8"]),
    ],
)
def test_malformed_csv_is_named(tmp_path: Path, content: bytes, words: list[str]) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_csv(path)
    assert all(word in str(caught.value) for word in [str(path), *words]), caught.value


def test_csv_by_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(b"\xef\xbb\xbflabel,video,end,start,comment\nrun,v,2,1,nice\n")
    assert read_csv(path) == {"v": Segments([1], [2], ["run"])}
    with pytest.raises(InputError, match="No such file"):
        read_csv(tmp_path / "absent.csv")
