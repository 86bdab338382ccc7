"""ELAN: the files as pympi reads them, files of others read, and every fault named in one line."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pympi
import pytest
from format_strategies import any_segments, in_xml, rows
from hypothesis import given

from temporalzoom.errors import InputError
from temporalzoom.formats import import_annotations, read_annotations, write_segments
from temporalzoom.formats.elan import eaf_text
from temporalzoom.segments import Segments


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


@given(any_segments())
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
        expected.append((first, max(first + 1, round(end * 1000)), in_xml(label), score))
    got = [(*action, scores.get(identifier, 1.0)) for identifier, action in actions.items()]
    for one, other in zip(sorted(got), sorted(expected), strict=True):
        assert one[:3] == other[:3]
    assert sorted(s for *_, s in got) == pytest.approx(sorted(s for *_, s in expected), rel=1e-3, abs=1e-300)
    assert bool(scores) == bool((found.scores != 1).any())


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


def elan(path: Path, build: Callable[[pympi.Elan.Eaf], None]) -> Path:
    """A file that pympi wrote."""
    document = pympi.Elan.Eaf(author="tests")
    document.remove_tier("default")
    build(document)
    document.to_file(str(path))
    return path


def behaviour(document: pympi.Elan.Eaf) -> None:
    document.add_linguistic_type("below", constraints="Symbolic_Association", timealignable=False)
    document.add_tier("rat A")
    document.add_tier("groom")
    document.add_tier("sure?", ling="below", parent="rat A")
    document.add_annotation("rat A", 1000, 2500, " sniff ")
    document.add_annotation("rat A", 2500, 3001, "rear")
    document.add_annotation("groom", 2000, 2600, "")
    document.add_ref_annotation("sure?", "rat A", 1500, "yes")


def test_elan_files_of_others(tmp_path: Path) -> None:
    path = elan(tmp_path / "day1.eaf", behaviour)
    read = import_annotations([path], fps=30, durations=["60"])
    assert list(read.recordings) == ["day1"] and read.classes == ("groom", "rear", "sniff")
    assert rows(read.truth()["day1"]) == [("groom", 2.0, 2.6), ("rear", 2.5, 3.001), ("sniff", 1.0, 2.5)]
    assert (read.recordings["day1"].fps, read.recordings["day1"].duration) == (30, 60)
    [note] = read.notes
    assert "sure?" in note
    # A dependent tier has the times of its parent; the tier's name may be the label.
    assert rows(import_annotations([path], tiers=["sure?"]).truth()["day1"]) == [("yes", 1.0, 2.5)]
    read = import_annotations([path], tiers=["rat A"], label_from="tier")
    assert rows(read.truth()["day1"]) == [("rat A", 1.0, 2.5), ("rat A", 2.5, 3.001)]


def test_a_folder_of_elan_files(tmp_path: Path) -> None:
    elan(tmp_path / "day1.eaf", behaviour)
    elan(tmp_path / "day2.eaf", lambda document: document.add_tier("rat A"))
    (tmp_path / "annotations.json").write_text("{}")
    read = import_annotations([tmp_path], test=["day2"], ignore=tmp_path / "annotations.json", tiers=["groom"])
    assert {name: (r.subset, len(r.segments)) for name, r in read.recordings.items()} == {
        "day1": ("train", 1),
        "day2": ("test", 0),
    }
    assert any("day2" in note for note in read.notes)
    with pytest.raises(InputError, match=r"several formats \(\.eaf, \.json\)"):
        import_annotations([tmp_path])
    (tmp_path / "other").mkdir()
    elan(tmp_path / "other" / "day1.eaf", behaviour)
    with pytest.raises(InputError, match=r"other.*'day1' is already described in .*day1\.eaf"):
        import_annotations([tmp_path / "day1.eaf", tmp_path / "other"])


DOCUMENT = """<ANNOTATION_DOCUMENT><HEADER/><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="500"/>
<TIME_SLOT TIME_SLOT_ID="t2" TIME_VALUE="900"/><TIME_SLOT TIME_SLOT_ID="t3"/></TIME_ORDER><TIER TIER_ID="acts">
<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a7" TIME_SLOT_REF1="t1" TIME_SLOT_REF2="t2">
<ANNOTATION_VALUE>run</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER></ANNOTATION_DOCUMENT>"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (DOCUMENT, " \n", ["empty"]),
        (DOCUMENT, "<html/>", ["'html'"]),
        ("</TIER>", "", ["not an ELAN file", "line 4"]),
        ('"900"', '"400"', ["'acts'", "a7", "end 0.4", "start 0.5"]),
        ('"900"', '"soon"', ["a7", "t2", "'soon'"]),
        ('REF2="t2"', 'REF2="t3"', ["a7", "t3", "no time"]),
        ('REF2="t2"', 'REF2="t9"', ["a7", "'t9'"]),
        ("<HEADER/>", '<HEADER TIME_UNITS="PAL-frames"/>', ["PAL-frames"]),
        ("</TIER>", '</TIER><TIER TIER_ID="acts"/>', ["two tiers", "'acts'"]),
        (re.search("<ANNOTATION>.*</ANNOTATION>", DOCUMENT, re.S)[0], "", ["no annotation"]),
    ],
)
def test_faults_of_elan_files(tmp_path: Path, fails: Callable[..., None], old: str, new: str, words: list[str]) -> None:
    path = tmp_path / "day1.eaf"
    path.write_text(DOCUMENT)
    assert rows(import_annotations([path]).truth()["day1"]) == [("run", 0.5, 0.9)]
    assert old in DOCUMENT
    path.write_text(DOCUMENT.replace(old, new))
    fails([path], [str(path), *words])


@pytest.mark.parametrize("entity", ['<!ENTITY e "run">', '<!ENTITY e SYSTEM "secret.txt">'])
def test_entities_are_not_expanded(tmp_path: Path, fails: Callable[..., None], entity: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    path = tmp_path / "day1.eaf"
    path.write_text(f"<!DOCTYPE d [{entity}]>" + DOCUMENT.replace(">run<", ">&e;<"))
    fails([path], [str(path), "DOCTYPE"])


def test_the_command_reads_tiers(tmp_path: Path, tzoom: Callable[..., tuple[int, str, str]]) -> None:
    elan(tmp_path / "day1.eaf", behaviour)
    elan(tmp_path / "day2.eaf", behaviour)
    out = tmp_path / "annotations.json"
    arguments = [tmp_path, "--out", out, "--fps", 30, "--tier", "rat A", "--tier", "groom", "--test", "day2"]
    for _ in range(2):  # the second time its own result lies in the folder
        code, printed, _ = tzoom("data", "import", *arguments)
        assert code == 0 and "2 recordings, 6 instances, 3 classes" in printed and "sniff" in printed
    read = read_annotations(out)
    assert [(r.subset, r.fps, r.duration) for r in read.recordings.values()] == [
        ("train", 30, None),
        ("test", 30, None),
    ]
    before = out.read_bytes()
    code, _, error = tzoom("data", "import", tmp_path / "day1.eaf", "--out", out, "--tier", "rat B")
    assert code == 2 and "day1.eaf: no tier 'rat B'; present are rat A, groom, sure?" in error
    assert out.read_bytes() == before
