"""Exports: JSON and CSV come back as they were; WebVTT, SubRip and ELAN are read by programs of others."""

import html
import json
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pympi
import pytest
import srt
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.formats import eaf_text, label_studio_tasks, read_csv, srt_text, vtt_text, write_segments
from temporalzoom.formats.annotations import read_predictions
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
        with pytest.raises(InputError, match=r"\.json, \.csv, \.vtt, \.srt, \.eaf, \.labelstudio\.json"):
            write_segments(tmp_path / name, {})
    assert not list(tmp_path.iterdir())


def test_suffixes_in_capitals_and_new_folders(tmp_path: Path) -> None:
    results = {"v": Segments([0], [1], ["run"], [0.5])}
    [path] = write_segments(tmp_path / "new" / "folder" / "R.CSV", results)
    assert read_csv(path) == results


def test_a_failed_write_keeps_the_old_files(tmp_path: Path) -> None:
    bad = {"v": Segments([float("nan")], [1], ["run"])}
    for name in ("r.json", "r.vtt", "r.eaf", "r.labelstudio.json"):
        write_segments(tmp_path / name, {"v": Segments([0], [1], ["run"])})
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ValueError):
            write_segments(tmp_path / name, bad)
        assert (tmp_path / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.eaf", "r.json", "r.labelstudio.json", "r.vtt"]


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


def parse_eaf(text: str, folder: Path) -> pympi.Elan.Eaf:
    """By pympi, after the rules of the schema of EAF 3.0 that pympi does not look at."""
    root = ElementTree.fromstring(text)
    order = ["HEADER", "TIME_ORDER", "TIER", "LINGUISTIC_TYPE", "CONSTRAINT"]
    places = [order.index(child.tag) for child in root]
    assert places == sorted(places) and places.count(0) == places.count(1) == 1
    assert {"AUTHOR", "DATE", "VERSION", "FORMAT"} <= set(root.attrib)
    slots = {slot.attrib["TIME_SLOT_ID"]: int(slot.attrib["TIME_VALUE"]) for slot in root.iter("TIME_SLOT")}
    assert list(slots.values()) == sorted(slots.values()) and min(slots.values(), default=0) >= 0
    entries = [entry for annotation in root.iter("ANNOTATION") for entry in annotation]
    identifiers = [entry.attrib["ANNOTATION_ID"] for entry in entries] + list(slots)
    assert len(set(identifiers)) == len(identifiers)  # one space of names for all xsd:ID
    tiers = {tier.attrib["TIER_ID"]: tier for tier in root.iter("TIER")}
    types = {kind.attrib["LINGUISTIC_TYPE_ID"]: kind.attrib for kind in root.iter("LINGUISTIC_TYPE")}
    constraints = {constraint.attrib["STEREOTYPE"] for constraint in root.iter("CONSTRAINT")}
    assert len(tiers) == len(list(root.iter("TIER")))
    for tier in tiers.values():
        kind = types[tier.attrib["LINGUISTIC_TYPE_REF"]]
        assert ("PARENT_REF" in tier.attrib) == ("CONSTRAINTS" in kind) == (kind["TIME_ALIGNABLE"] == "false")
        if "PARENT_REF" in tier.attrib:
            assert kind["CONSTRAINTS"] in constraints
            above = {a.get("ANNOTATION_ID") for a in tiers[tier.attrib["PARENT_REF"]].iter("ALIGNABLE_ANNOTATION")}
            assert [a.attrib["ANNOTATION_REF"] in above for a in tier.iter("REF_ANNOTATION")] == [True] * len(tier)
        else:
            spans = [[slots[a.attrib[f"TIME_SLOT_REF{i}"]] for i in (1, 2)] for a in tier.iter("ALIGNABLE_ANNOTATION")]
            flat = [time for span in spans for time in span]
            assert flat == sorted(flat) and all(start < end for start, end in spans)
    path = folder / "parsed.eaf"
    path.write_text(text, encoding="utf-8")
    return pympi.Elan.Eaf(str(path))


@given(segments())
def test_eaf_has_every_segment_and_score(tmp_path_factory: pytest.TempPathFactory, found: Segments) -> None:
    document = parse_eaf(eaf_text(found, "match7"), tmp_path_factory.getbasetemp())
    assert ("recording", "match7") in document.properties
    actions, scores = {}, {}
    for tier, (aligned, references, _, _) in document.tiers.items():
        for identifier, (first, last, value, _) in aligned.items():
            actions[identifier] = (document.timeslots[first], document.timeslots[last], value)
        for parent, value, _, _ in references.values():
            scores[parent] = float(value)
            assert tier.startswith("score of ")
    expected = []
    for start, end, label, score in found:
        first = max(0, round(start * 1000))
        expected.append((first, max(first + 1, round(end * 1000)), writable(label), score))
    got = [(*action, scores.get(identifier, 1.0)) for identifier, action in actions.items()]
    for one, other in zip(sorted(got), sorted(expected), strict=True):
        assert one[:3] == other[:3]
    assert sorted(s for *_, s in got) == pytest.approx(sorted(s for *_, s in expected), rel=1e-3, abs=1e-300)
    assert bool(scores) == bool((found.scores != 1).any())


def writable(label: str) -> str:
    """What XML keeps of a label, character by character."""
    kept = re.sub("\r\n?", "\n", label)
    return "".join(c if c in "\t\n" or (" " <= c and c not in "\ufffe\uffff") else "\ufffd" for c in kept)


def test_eaf_tiers_and_media(tmp_path: Path) -> None:
    found = Segments([0, 1, 2, 5], [3, 2, 4, 6], ["run", "run", "a\nb", "run"], [0.5, 0.25, 1, 1])
    video = tmp_path / "my videos" / "match 7.mp4"
    [path] = write_segments(tmp_path / "match7.eaf", {"match7": found}, media={"match7": video})
    document = parse_eaf(path.read_text(), tmp_path)
    tiers = {name: document.get_annotation_data_for_tier(name) for name in document.get_tier_names()}
    assert {name: [row[:3] for row in sorted(rows)] for name, rows in tiers.items()} == {
        "a b": [(2000, 4000, "a\nb")],
        "score of a b": [(2000, 4000, "1")],
        "run": [(0, 3000, "run"), (5000, 6000, "run")],
        "score of run": [(0, 3000, "0.5"), (5000, 6000, "1")],
        "run (2)": [(1000, 2000, "run")],
        "score of run (2)": [(1000, 2000, "0.25")],
    }
    [media] = document.media_descriptors
    assert media["RELATIVE_MEDIA_URL"] == "./my%20videos/match%207.mp4" and media["MIME_TYPE"] == "video/mp4"
    assert media["MEDIA_URL"] == video.resolve().as_uri()
    assert "MEDIA_DESCRIPTOR" not in eaf_text(found, "match7")
    address = "https://example.org/a%20b.mp4"
    assert f'MEDIA_URL="{address}"' in eaf_text(found, "match7", address)


@given(segments())
def test_srt_and_vtt_by_other_programs(found: Segments) -> None:
    """Both hold the same cues, as the packages srt and webvtt-py read them."""
    expected = [(round(s * 1000), label, score) for s, _, label, score in found.sort("start")]
    subtitles = list(srt.parse(srt_text(found)))
    assert [subtitle.index for subtitle in subtitles] == list(range(1, len(found) + 1))
    for subtitle, (start, label, score) in zip(subtitles, expected, strict=True):
        assert subtitle.start == timedelta(milliseconds=start) and subtitle.end > subtitle.start
        assert subtitle.content.split() == f"{label} ({score:.2f})".split()
    captions = webvtt.from_string(vtt_text(found)).captions
    assert [c.start for c in captions] == [c.start.replace(",", ".") for c in webvtt_of_srt(found)]
    assert [html.unescape(c.raw_text).split() for c in captions] == [s.content.split() for s in subtitles]


def webvtt_of_srt(found: Segments) -> list[webvtt.Caption]:
    return webvtt.WebVTT.from_buffer(StringIO(srt_text(found)), format="srt").captions if len(found) else []


def test_srt_text_is_exactly_this(tmp_path: Path) -> None:
    found = Segments([3661.5, -0.2], [3700, 0.5], ["jump & <run>", "two\n\nlines"], [0.934, 1])
    [path] = write_segments(tmp_path / "r.srt", {"v": found})
    assert path.read_bytes().decode() == (
        "1\n00:00:00,000 --> 00:00:00,500\ntwo lines (1.00)\n\n2\n01:01:01,500 --> 01:01:40,000\njump & <run> (0.93)\n"
    )


def test_label_studio_tasks(tmp_path: Path) -> None:
    found = Segments([0, 1.02, 2], [1, 2, 2.001], ["run", "run", '<b>, "c"'], [0.5, 0.25, 0.75])
    [path] = write_segments(tmp_path / "r.labelstudio.json", {"m": found}, fps=25, media={"m": "/data/m.mp4"})
    [task] = json.loads(path.read_text())
    assert task["data"] == {"video": "/data/m.mp4", "recording": "m"}
    [prediction] = task["predictions"]
    assert prediction["score"] == 0.5 and [r["score"] for r in prediction["result"]] == [0.5, 0.25, 0.75]
    assert {(r["type"], r["from_name"], r["to_name"]) for r in prediction["result"]} == {
        ("timelinelabels", "actions", "video")
    }
    # 25 frames in the first second, numbered 1 to 25; the shortest segment has one frame.
    assert [r["value"] for r in prediction["result"]] == [
        {"ranges": [{"start": 1, "end": 25}], "timelinelabels": ["run"]},
        {"ranges": [{"start": 27, "end": 50}], "timelinelabels": ["run"]},
        {"ranges": [{"start": 51, "end": 51}], "timelinelabels": ['<b>, "c"']},
    ]
    [task] = label_studio_tasks({"m": found})
    assert task["data"] == {"signal": "m", "recording": "m"}
    first = task["predictions"][0]["result"][0]
    assert first["type"] == "timeserieslabels"
    assert first["value"] == {"start": 0.0, "end": 1.0, "instant": False, "timeserieslabels": ["run"]}
    with pytest.raises(InputError, match="fps"):
        write_segments(path, {"m": found}, fps=0)


def test_label_studio_is_told_from_other_json(tmp_path: Path) -> None:
    results = {"v": Segments([0], [1], ["run"])}
    for name in ("r.labelstudio.json", "R.LabelStudio.JSON", "labelstudio.json"):
        assert isinstance(json.loads(write_segments(tmp_path / name, results)[0].read_text()), list)
    assert read_predictions(write_segments(tmp_path / "mylabelstudio.json", results)[0]) == results
