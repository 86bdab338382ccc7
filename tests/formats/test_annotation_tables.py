"""Tables of others: which column means what, units, dates, and questions with both readings where two would do."""

from collections.abc import Callable
from pathlib import Path

import pytest
from format_strategies import rows
from hypothesis import given
from hypothesis import strategies as st

from temporalzoom.formats import import_annotations, read_annotations, read_any_annotations, write_annotations
from temporalzoom.formats.table_times import parse_date


def table(folder: Path, text: str, name: str = "day1.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


# Columns


@pytest.mark.parametrize(
    "header",
    [
        "video,start,end,label",
        "File Name,Start (s),Stop (s),Behavior",
        "media_file,StartTime,FinishTime,Activity",
        "Recording,onset [sec],offset [sec],Annotation",
        "observation id,begin_seconds,end_seconds,event",
        "FILE,t_start,t_end,class name",
    ],
)
def test_names_of_columns(tmp_path: Path, header: str) -> None:
    read = import_annotations([table(tmp_path, f"{header}\nv,1.5,2,run\n")])
    assert rows(read.truth()["v"]) == [("run", 1.5, 2.0)] and not read.notes


@pytest.mark.parametrize(
    ("header", "row", "fps"),
    [
        ("start_ms,end_ms,label", "1500,2000,run", None),
        ("Start (ms),Duration (ms),label", "1500,500,run", None),
        ("start (min),end (min),label", "0.025,0:02,run", None),
        ("start_frame,end_frame,label", "15,20,run", 10),
        ("frame start,frame end,label", "15,20,run", 10),
        ("start_frame,end_frame,start_time,end_time,label", "9,9,1.5,2,run", 10),
        ("onset,duration,label", "1.5,0.5,run", None),
        ("onset,offset,duration,label", "1.5,2,0.5,run", None),
    ],
)
def test_units_of_columns(tmp_path: Path, header: str, row: str, fps: float | None) -> None:
    """Without a column of recordings, that of the file's name; a duration beside start and end is the action's."""
    read = import_annotations([table(tmp_path, f"{header}\n{row}\n")], fps=fps)
    [(label, start, end)] = rows(read.truth()["day1"])
    assert (label, start, end) == ("run", pytest.approx(1.5), pytest.approx(2.0))
    assert read.recordings["day1"].duration is None and "'day1'" in read.notes[0]


def test_units_by_option(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = table(tmp_path, "start,end,label\n1500,2000,run\n")
    assert rows(import_annotations([path], time_unit="milliseconds").truth()["day1"]) == [("run", 1.5, 2.0)]
    assert rows(import_annotations([path], time_unit="frames", fps=1000).truth()["day1"]) == [("run", 1.5, 2.0)]
    fails([path], ["'start' counts frames", "--fps"], time_unit="frames")
    fails([path], ["--time-unit", "'hours'"], time_unit="hours")
    fails([table(tmp_path, "start (samples),end,label\n1,2,run\n")], ["'samples'", "--time-unit"])


def test_end_frames(tmp_path: Path) -> None:
    """The first frame after the action, unless one of a single frame shows that the last is meant."""
    read = import_annotations([table(tmp_path, "start_frame,end_frame,label\n0,4,a\n5,9,b\n")], fps=10)
    assert rows(read.truth()["day1"]) == [("a", 0.0, 0.4), ("b", 0.5, 0.9)] and "first frame after" in read.notes[1]
    read = import_annotations([table(tmp_path, "start_frame,end_frame,label\n0,4,a\n5,5,b\n")], fps=10)
    assert rows(read.truth()["day1"]) == [("a", 0.0, 0.5), ("b", 0.5, 0.6)] and "one frame" in read.notes[1]


def test_columns_by_option(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = table(tmp_path, "Beginn,Ende (s),Was,Wo,label\n1,2,run,v.mp4,7\n")
    columns = {"start": "Beginn", "end": "ende (s)", "label": "Was", "recording": "Wo"}
    assert rows(import_annotations([path], columns=columns).truth()["v"]) == [("run", 1.0, 2.0)]
    fails([path], ["no column 'start'", "begin", "--columns start=NAME", "Beginn"])
    fails([path], ["'Anfang'", "Beginn"], columns={"start": "Anfang"})
    fails([path], ["'when'", "recording_duration"], columns={"when": "Beginn"})
    (tmp_path / "v.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nrun\n")
    fails([tmp_path / "v.srt"], ["--columns", "CSV"], columns=columns)


def test_columns_by_option_make_a_table_of_numbers_a_table_of_actions(tmp_path: Path) -> None:
    """Without them a column of 0 and 1 would be a behaviour, frame by frame."""
    path = table(tmp_path, "a,b,c\n1,2,0\n3,4,1\n")
    assert import_annotations([path], fps=10).classes == ("c",)
    assert import_annotations([path], columns={"start": "a", "end": "b", "label": "c"}).classes == ("0", "1")


def test_columns_on_the_command_line(tmp_path: Path, tzoom: Callable[..., tuple[int, str, str]]) -> None:
    path = table(tmp_path, "Beginn,Ende,label\n1,2,run\n")
    out = tmp_path / "a.json"
    code, _, error = tzoom("data", "import", path, "--out", out, "--columns", "start=Beginn", "--columns", "end=Ende")
    assert code == 0, error
    assert rows(read_annotations(out).truth()["day1"]) == [("run", 1.0, 2.0)]
    code, _, error = tzoom("data", "import", path, "--out", out, "--columns", "Beginn")
    assert code == 2 and "MEANING=NAME" in error


def test_subjects(tmp_path: Path) -> None:
    """Kept where one recording has one, and written with the annotations, where trainings look for it."""
    read = import_annotations(
        [table(tmp_path, "video,start,end,label,Animal ID\na,1,2,x,m1\na,3,4,x,m1\nb,1,2,x,m1\nb,1,2,x,m2\n")]
    )
    assert [r.extra for r in read.recordings.values()] == [{"subject": "m1"}, {}]
    assert "'Animal ID' differs within 1 recordings (b)" in read.notes[0]
    assert len(read.truth()["b"]) == 2  # at the same time, by two
    write_annotations(tmp_path / "a.json", read)
    assert read_annotations(tmp_path / "a.json").recordings["a"].extra == {"subject": "m1"}


def test_paths_of_recordings(tmp_path: Path) -> None:
    text = "file,start,end,label\nC:\\videos\\v1.mp4,1,2,a\n/home/x/v2.mov,1,2,a\nday/v3.mp4,1,2,a\nv.4,1,2,a\n"
    assert list(import_annotations([table(tmp_path, text)]).recordings) == ["v1", "v2", "day/v3", "v.4"]


# Questions


def test_two_columns_that_could_be_the_label(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = table(tmp_path, "video,start,end,behavior,event\nv,1,2,same,same\nv,1,2,chew,bout 3\n")
    words = ["'behavior' or 'event'", "line 3", "label 'chew'", "label 'bout 3'", '--columns label="event"']
    fails([path], words)
    assert import_annotations([path], columns={"label": "behavior"}).classes == ("chew", "same")
    path = table(tmp_path, "video,start,end,behavior,category\nv,1,2,chew,feeding\n")
    assert import_annotations([path]).classes == ("chew",)  # a category only counts where nothing is more likely


@pytest.mark.parametrize("text", ["1000,91500", "90000,90010", "50,900"])
def test_times_that_are_no_seconds(tmp_path: Path, fails: Callable[..., None], text: str) -> None:
    path = table(tmp_path, f"start,end,label\n{text},run\n")
    start, end = map(float, text.split(","))
    words = [f"{start:g} to {end:g} s (--time-unit seconds)", f"{start / 1000:g} to {end / 1000:g} s (--time-unit mil"]
    fails([path], [*words, "line 2", "'run'", "--time-unit frames --fps RATE"])
    fails([path], [f"{start / 25:g} to {end / 25:g} s at 25 frames per second"], fps=25)
    assert rows(import_annotations([path], time_unit="seconds").truth()["day1"]) == [("run", start, end)]


def test_times_far_beyond_the_recording(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = table(tmp_path, "video,start,end,label,duration\nv,1,250,run,10\n")
    fails([path], ["up to 250", "the recording has 10 s", "--time-unit"])
    path = table(tmp_path, "video,start,end,label\nv,1,250,run\n")
    assert len(import_annotations([path]).truth()["v"]) == 1
    fails([path], ["the recording has 10 s"], durations=["v=10"])
    path = table(tmp_path, "video,start,end,label\nv,1.5,250,run\n")  # nobody counts half frames
    assert len(import_annotations([path], durations=["v=10"]).truth()["v"]) == 1


def test_commas_in_numbers(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = table(tmp_path, "start;end;label\n1,250;2,500;run\n")
    fails([path], ["line 2", "'start'", "'1,250'", "1.25 with", "--decimal comma", "1250 with", "--decimal point"])
    assert rows(import_annotations([path], decimal="comma").truth()["day1"]) == [("run", 1.25, 2.5)]
    read = import_annotations([path], decimal="point", time_unit="seconds")
    assert rows(read.truth()["day1"]) == [("run", 1250.0, 2500.0)]
    path = table(tmp_path, "start;end;label\n0,250;2,500;run\n1.002,5;1.003,5;run\n")  # no number begins with 0,
    assert rows(import_annotations([path]).truth()["day1"]) == [("run", 0.25, 2.5), ("run", 1002.5, 1003.5)]
    path = table(tmp_path, 'start,end,label\n"1,250.5","1,300.0",run\n')
    assert rows(import_annotations([path]).truth()["day1"]) == [("run", 1250.5, 1300.0)]


def test_decimal_commas_between_commas(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = table(tmp_path, "video,start,end,label\nv,1,5,2,25,run\n")
    words = ["6 cells below 4 columns", "start '1', end '5', label '2'", "--decimal comma", "start '1,5', end '2,25'"]
    fails([path], ["line 2", *words])
    assert rows(import_annotations([path], decimal="comma").truth()["v"]) == [("run", 1.5, 2.25)]
    fails([table(tmp_path, "video,start,end,label\nv,1,2,run,7\n")], ["line 2", "5 cells below 4"], decimal="comma")
    assert len(import_annotations([table(tmp_path, "video,start,end,label\nv,1,2,run,,\n")]).truth()["v"]) == 1


def test_dates(tmp_path: Path, fails: Callable[..., None]) -> None:
    path = table(tmp_path, "start,end,label\n03/04/2024 10:00:01,03/04/2024 10:00:02.5,run\n")
    fails([path], ["line 2", "3 April 2024 (--date-order day)", "4 March 2024 (--date-order month)"])
    fails([path], ["is a date", "--starts-at", "'day1'"], date_order="day")
    options = {"date_order": "day", "starts_at": ["2024-04-03 10:00:00"]}
    assert rows(import_annotations([path], **options).truth()["day1"]) == [("run", 1.0, 2.5)]
    options = {"date_order": "month", "starts_at": ["day1=2024-03-04 09:59:00"]}
    assert rows(import_annotations([path], **options).truth()["day1"]) == [("run", 61.0, 62.5)]
    fails([path], ["'soon'"], date_order="day", starts_at=["soon"])
    for text in ("23/04/2024 10:00:01", "04/23/2024 10:00:01 AM", "2024-04-23T10:00:01", "23.4.24 10:00:01"):
        path = table(tmp_path, f"start;end;label\n{text};2024-04-23 10:00:02;run\n")
        read = import_annotations([path], starts_at=["2024-04-23 10:00:00"])
        assert rows(read.truth()["day1"]) == [("run", 1.0, 2.0)]


@given(st.datetimes(), st.booleans())
def test_dates_come_back(when: object, day_first: bool) -> None:
    text = when.strftime(("%d/%m/" if day_first else "%m/%d/") + f"{when.year:04d} %H:%M:%S.%f")  # type: ignore[attr-defined]
    assert parse_date(text, day_first) == when


# Any file


def test_any_annotation_file(tmp_path: Path, fails: Callable[..., None]) -> None:
    """The package's own form is read as it is; options fill in, or are refused."""
    path = table(tmp_path, "video,start,end,label,subject\na,1,2,x,m1\nb,1,2,y,m2\n")
    read = read_any_annotations(path, fps=25, columns={"recording": "video"})
    own = tmp_path / "a.json"
    write_annotations(own, read)
    assert read_any_annotations(own) == read_annotations(own) == read
    changed = read_any_annotations(str(own), fps=30, test=["b"], durations=["a=9"])
    assert [(r.subset, r.duration, r.fps) for r in changed.recordings.values()] == [
        ("train", 9, 25),
        ("test", None, 25),
    ]
    assert changed.declared and changed.truth() == read.truth()
    fails([own], ["--columns", "CSV"], columns={"start": "x"})
    fails([own, path], [str(own), "alone"])
