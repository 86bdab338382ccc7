"""The table of formats: what is written comes back, names choose the format, and a new format is one row."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from format_strategies import NAMES, assert_same, importable_segments, in_xml, rows, with_line_feeds
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.errors import InputError
from temporalzoom.formats import (
    FORMATS,
    Format,
    audacity,
    import_annotations,
    read_annotations,
    read_predictions,
    registry,
    rttm,
    write_segments,
)
from temporalzoom.formats.interface import ExportOptions, Imported, ImportOptions, Instance
from temporalzoom.formats.spreadsheet import writable
from temporalzoom.segments import Segments

REPOSITORY = Path(__file__).resolve().parents[2]
ONE = Segments([0], [1], ["run"], [0.5])
# Those of one row per frame join actions that touch: tests/formats/test_framewise.py
FRAMEWISE = (".deepethogram.csv", ".simba.csv")
BOTH_WAYS = [s for row in FORMATS if row.read and row.write for s in row.suffixes if s not in FRAMEWISE]
# Formats whose times are coarser than floating-point numbers: seconds that a time may move.
RESOLUTION = {".eaf": 0.000501, ".vtt": 0.000501, ".srt": 0.000501, ".rttm": 2e-6, ".audacity.txt": 2e-6, ".xlsx": 1e-9}
# Formats that cannot hold every character of a label.
LABELS = {
    ".eaf": in_xml, ".vtt": with_line_feeds, ".srt": with_line_feeds, ".xlsx": writable, ".rttm": rttm.field,
    ".audacity.txt": audacity.one_line,
}  # fmt: skip
# Formats in which a recording's name is that of its file, or one word.
NAMED_BY_FILE = (".vtt", ".srt", ".audacity.txt", ".rttm")


@pytest.mark.parametrize("suffix", BOTH_WAYS)
@given(st.dictionaries(NAMES, importable_segments(), min_size=1, max_size=3))
def test_what_is_written_comes_back(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, results: dict[str, Segments]
) -> None:
    folder = tmp_path_factory.mktemp("round")
    if suffix in NAMED_BY_FILE:
        results = {f"r{i}" if len(results) > 1 else "r": found for i, found in enumerate(results.values())}
    try:
        written = write_segments(folder / f"r{suffix}", results)
    except InputError as error:
        assert "same file" in str(error)  # two names that differ in separators only
        return
    predictions = any("predictions" in row.options for row in FORMATS if suffix in row.suffixes)
    back = import_annotations(written, predictions=predictions)
    assert_same(results, back.truth(), RESOLUTION.get(suffix, 0), LABELS.get(suffix, str))


def test_each_suffix_is_written_by_one_format_and_read_without_doubt() -> None:
    written = [suffix for row in FORMATS for suffix in row.writable]
    assert len(set(written)) == len(written)
    assert all(row.read or row.write for row in FORMATS)
    for suffix in {suffix for row in FORMATS for suffix in row.readable}:
        assert sum(suffix in row.readable and row.recognizes is None for row in FORMATS) <= 1, suffix
    known = {option for row in FORMATS for option in row.options}
    assert known <= set(ImportOptions.__dataclass_fields__)


def test_the_page_names_every_format() -> None:
    page = (REPOSITORY / "docs" / "annotation-formats.md").read_text(encoding="utf-8")
    for row in FORMATS:
        assert all(f"`{suffix}`" in page for suffix in row.suffixes), row


# Writing


def test_unknown_suffixes_list_the_valid(tmp_path: Path) -> None:
    for name in ("r.ods", "r", "csv", ".csv", "r.txt"):
        with pytest.raises(InputError, match=r"\.json, \.csv, \.tsv, \.xlsx, \.vtt, \.srt, \.eaf, \.labelstudio\.json"):
            write_segments(tmp_path / name, {})
    assert not list(tmp_path.iterdir())


def test_suffixes_in_capitals_and_new_folders(tmp_path: Path) -> None:
    [path] = write_segments(tmp_path / "new" / "folder" / "R.CSV", {"v": ONE})
    assert import_annotations([path]).truth() == {"v": Segments([0], [1], ["run"])}


def test_label_studio_and_other_json(tmp_path: Path) -> None:
    for name in ("r.labelstudio.json", "R.LabelStudio.JSON", "labelstudio.json"):
        assert isinstance(json.loads(write_segments(tmp_path / name, {"v": ONE})[0].read_text()), list)
    assert read_predictions(write_segments(tmp_path / "mylabelstudio.json", {"v": ONE})[0]) == {"v": ONE}


@pytest.mark.parametrize("suffix", [row.suffixes[0] for row in FORMATS if row.write and not row.one_file])
def test_one_recording_is_a_file_and_several_are_a_folder(tmp_path: Path, suffix: str) -> None:
    two = Segments.empty()
    assert write_segments(tmp_path / f"one{suffix}", {"v": ONE}, fps=25) == [tmp_path / f"one{suffix}"]
    names = ["v.1", "../../escape", "/absolute", "..", "a\\..\\b", "nul\0"]
    written = write_segments(tmp_path / f"all{suffix}", dict.fromkeys(names, two) | {"v.1": ONE}, fps=25)
    stems = ["v.1", ".._.._escape", "_absolute", "..", "a_.._b", "nul_"]
    assert written == [tmp_path / "all" / f"{stem}{suffix}" for stem in stems]
    assert {path.resolve() for path in tmp_path.rglob("*") if path.is_file()} == {
        *(path.resolve() for path in written),
        (tmp_path / f"one{suffix}").resolve(),
    }
    assert not list(tmp_path.parent.glob("*escape*"))
    with pytest.raises(InputError, match="same file"):
        write_segments(tmp_path / f"all{suffix}", {"a/b": ONE, "a_b": two})


def test_recordings_without_actions_come_back_from_a_folder(tmp_path: Path) -> None:
    for suffix in (".vtt", ".srt", ".eaf"):
        write_segments(tmp_path / f"all{suffix[1:]}{suffix}", {"v": ONE, "w": Segments.empty()})
        back = import_annotations([tmp_path / f"all{suffix[1:]}"]).truth()
        assert {name: len(found) for name, found in back.items()} == {"v": 1, "w": 0}


def test_a_failed_write_keeps_the_old_files(tmp_path: Path) -> None:
    bad = {"v": Segments([float("nan")], [1], ["run"])}
    names = ["r.eaf", "r.json", "r.labelstudio.json", "r.srt", "r.vtt"]
    for name in names:
        write_segments(tmp_path / name, {"v": Segments([0], [1], ["run"])})
        before = (tmp_path / name).read_bytes()
        with pytest.raises(ValueError):
            write_segments(tmp_path / name, bad)
        assert (tmp_path / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == names


# One new row


def test_a_new_format_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs that both write .json, of which one is recognized by its content, and one without a reader."""

    def read(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
        notes.append(f"{len(paths)} files of birds")
        return [Imported(path.stem, str(path), [Instance(0, 1, "song")]) for path in paths]

    def write(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
        path.write_text(" ".join(results))

    birds = Format(
        "Birds", (".birds",), read, also_reads=(".json",), recognizes=lambda path: "wing" in path.read_text()
    )
    monkeypatch.setattr(registry, "FORMATS", (*FORMATS, birds, Format("Fish", (".fish",), write=write)))
    (tmp_path / "a.birds").write_text("")
    (tmp_path / "b.json").write_text('{"wing": 2}')
    read_back = import_annotations([tmp_path / "a.birds", tmp_path / "b.json"])
    assert list(read_back.recordings) == ["a", "b"] and read_back.notes == ("2 files of birds",)
    [path] = write_segments(tmp_path / "c.labelstudio.json", {"v": ONE})
    assert list(import_annotations([path.rename(tmp_path / "c.json")], predictions=True).recordings) == ["v"]
    with pytest.raises(InputError, match=r"valid are .*\.birds$"):
        import_annotations([*write_segments(tmp_path / "x.fish", {"v": ONE})])
    with pytest.raises(InputError, match=r"valid are .*\.fish$"):
        write_segments(tmp_path / "x.birds", {})
    with pytest.raises(InputError, match=r"--tier: none of the files is ELAN \(\.eaf\)"):
        import_annotations([tmp_path / "a.birds"], tiers=["x"])


# Importing


def test_subsets_and_durations(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,begin,stop,action\na,1,2,x\nb,1,2,x\n")
    read = import_annotations([path], test=["a"], durations=["50", "b=60"]).recordings
    assert [(r.subset, r.duration) for r in read.values()] == [("test", 50), ("train", 60)]
    fails([path], ["--test", "'c*'"], test=["c*"])
    fails([path], ["--duration", "'c'"], durations=["c=1"])
    fails([path], ["--duration", "'long'"], durations=["long"])
    fails([path], ["--fps", "-1"], fps=-1.0)
    for option, value in {"tiers": ["x"], "label_from": "tier", "predictions": True}.items():
        fails([path], ["--" + {"tiers": "tier"}.get(option, option.replace("_", "-"))], **{option: value})


def test_ambiguous_spans_stay_ambiguous(tmp_path: Path, tzoom: Callable[..., tuple[int, str, str]]) -> None:
    (tmp_path / "t.csv").write_text("video,start,end,label\nv,1,2,run\nv,3,4,ambiguous\n")
    read = import_annotations([tmp_path / "t.csv"])
    assert read.classes == ("run",) and rows(read.ambiguous()["v"]) == [("Ambiguous", 3.0, 4.0)]
    assert tzoom("data", "import", tmp_path / "t.csv", "--out", tmp_path / "a.json")[0] == 0
    assert read_annotations(tmp_path / "a.json") == read


def test_the_command_names_the_formats_that_it_reads(
    tmp_path: Path, tzoom: Callable[..., tuple[int, str, str]]
) -> None:
    suffixes = [suffix for row in FORMATS for suffix in row.readable]
    for path, words in ((tmp_path / "absent.eaf", ["no such file"]), (Path(__file__), suffixes)):
        code, _, error = tzoom("data", "import", path, "--out", tmp_path / "a.json")
        assert code == 2 and all(word in error for word in words)
    code, printed, _ = tzoom("data", "import", "--help")
    assert code == 0 and all(suffix in printed for suffix in suffixes)


TASK = {
    "id": 5,
    "data": {"video": "v.mp4"},
    "annotations": [
        {
            "id": 9,
            "result": [
                {"type": "timelinelabels", "value": {"ranges": [{"start": 1, "end": 25}], "timelinelabels": ["run"]}},
                {"type": "labels", "original_length": 12.5, "value": {"start": 0.5, "end": 1.5, "labels": ["jump"]}},
            ],
        }
    ],
}
SAMPLES = {
    ".eaf": b"""<ANNOTATION_DOCUMENT><HEADER/><TIME_ORDER><TIME_SLOT TIME_SLOT_ID="t1" TIME_VALUE="500"/>
<TIME_SLOT TIME_SLOT_ID="t2" TIME_VALUE="900"/></TIME_ORDER><TIER TIER_ID="acts"><ANNOTATION>
<ALIGNABLE_ANNOTATION ANNOTATION_ID="a7" TIME_SLOT_REF1="t1" TIME_SLOT_REF2="t2"><ANNOTATION_VALUE>run
</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER></ANNOTATION_DOCUMENT>""",
    ".json": json.dumps([TASK]).encode(),
    ".csv": b"video,start,end,label,subset,duration,subject\nv,1:01.5,62,run,train,90,m1\n",
    ".boris.tsv": b"Observation id\to\n\nTime\tMedia file path\tTotal length\tFPS\tSubject\tBehavior\tStatus\n"
    b"1\tv.mp4\t9\t25\ta\trun\tSTART\n2.5\tv.mp4\t9\t25\ta\trun\tSTOP\n",
    ".boris.csv": b"Observation id,Media file,Total length,FPS,Subject,Behavior,Behavior type,Start (s),Stop (s)\n"
    b"o,LIVE,9,NA,a,run,STATE,1,2.5\n",
    ".deepethogram.csv": b",background,run\n0,0,1\n1,-1,-1\n2,1,0\n",
    ".simba.csv": b",speed,run\n0,0.25,1\n1,1.5,1\n2,2.25,0\n",
    ".rttm": b"SPEAKER v 1 1.5 2.25 <NA> <NA> ann 0.5 <NA>\n;; x\nSPEAKER w 1 2 1 <NA> <NA> bob <NA> <NA>\n",
    ".audacity.txt": b"0.5\t1.25\tsong\n\\\t400\t8000\n2\t2\tclick\n",
    ".via.json": json.dumps(
        {
            "attribute": {"1": {"aname": "action", "type": 4, "options": {"0": "run"}}},
            "file": {"1": {"fname": "v.mp4"}},
            "metadata": {"1_a": {"vid": "1", "z": [1.5, 2], "xy": [], "av": {"1": "0"}}},
            "view": {"1": {"fid_list": ["1"]}},
        }
    ).encode(),
    ".vtt": b"WEBVTT\n\nNOTE x\n\na\n00:01.500 --> 00:00:02.000 align:left\n<i>run</i> &amp; fall (0.50)\n",
    ".srt": b"1\r\n00:00:01,500 --> 00:00:02,000\r\nrun\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\njump\r\n",
}


@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_damaged_files_are_input_errors(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    """A piece of the file replaced by something else: it is read, or refused in one line, and nothing else happens."""
    content = SAMPLES[suffix]
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, min(first + 12, len(content))))
    piece = data.draw(st.sampled_from([b"", b"null", b"[]", b"{}", b"-1", b"1e999", b'"', b"\xff", b"\0", b",", b"\n"]))
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    path.write_bytes(content[:first] + piece + content[last:])
    try:
        read = import_annotations([path], fps=25)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)
    else:
        assert all((found.durations > 0).all() for found in read.truth().values())
