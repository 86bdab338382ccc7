"""BORIS: real exports, old and new forms, point events, several media files, and faults named with their line."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest
from format_strategies import rows

from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.segments import Segments

OLD = (
    "Observation id\tMedia file\tTotal length\tFPS\tSubject\tBehavior\tModifiers\tBehavior type\tStart (s)\tStop (s)\n"
)
NEW = (
    "Observation id,Observation type,Source,Time offset (s),Media duration (s),FPS (frame/s),start,Subject,Behavior,"
    "Behavioral category,Modifier #1,Behavior type,Time,Media file name,Comment\n"
)


@pytest.fixture
def boris(shared_data: Path) -> Path:
    return shared_data / "boris"


def project_spans(boris: Path, observation: str, offset: float = 0.0) -> list[tuple[str, float, float]]:
    """State events of the project file itself, paired here: every second event of a subject and behaviour ends one."""
    project = json.loads((boris / "test.boris").read_text())
    states = {b["code"] for b in project["behaviors_conf"].values() if b["type"].lower().startswith("state")}
    begun: dict[tuple[str, str], float] = {}
    spans = []
    for time, subject, code, *_ in project["observations"][observation]["events"]:
        if code in states:
            if (subject, code) in begun:
                spans.append((code, round(begun.pop((subject, code)) - offset, 3), round(time - offset, 3)))
            else:
                begun[subject, code] = time
    return sorted(spans)


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_real_tabular_events(boris: Path, suffix: str) -> None:
    read = import_annotations([boris / f"test_export_events_tabular{suffix}"])
    [recording] = read.recordings.values()
    assert (recording.name, recording.duration, recording.fps) == ("video_test_25fps_360s", 359.96, 25)
    assert rows(recording.segments) == project_spans(boris, "observation #1")
    assert "subject" not in recording.extra  # two of them


def test_real_aggregated_events_of_two_media_files(boris: Path, fails: Callable[..., None]) -> None:
    """BORIS counts from the start of the first file; the lengths of both are in the project."""
    path = boris / "test_export_aggregated_events_test_full_1.tsv"
    fails([path], ["line 8", "observation #2", "--duration video_test_25fps_180s=SECONDS"])
    read = import_annotations([path], durations=["video_test_25fps_180s=179.96"])
    first, second = read.recordings.values()
    assert (first.duration, second.duration) == (179.96, 359.96)
    of_both = [(label, s + o, e + o) for r, o in ((first, 0), (second, 179.96)) for label, s, e in rows(r.segments)]
    expected = [span for times in project_spans(boris, "observation #2") for span in times]
    assert [x for span in sorted(of_both) for x in span] == pytest.approx(expected)
    # Subjects 1 and 2 do the same at the same time.
    starts, ends = second.segments.starts, second.segments.ends
    assert (starts[1:] < ends[:-1]).any()
    assert "8 point events" in read.notes[0] and "8 'p'" in read.notes[0]


def test_real_exports_without_a_header(boris: Path, fails: Callable[..., None]) -> None:
    name = "test_export_aggregated_events_test_full_"
    read = import_annotations([boris / f"{name}2.tsv"])
    assert rows(read.truth()["video_test_25fps_360s"]) == [("s", 266.165, 276.69), ("s", 280.965, 294.215)]
    assert read.recordings["video_test_25fps_360s"].extra == {"subject": "subject1"}
    read = import_annotations([boris / f"{name}5.tsv"])
    assert rows(read.truth()["video_test_25fps_180s"])[0] == ("s", 5.0, 8.125)
    fails([boris / f"{name}6.tsv"], ["empty"])


def test_real_live_observation_of_point_events(boris: Path, fails: Callable[..., None]) -> None:
    path = boris / "test_export_aggregated_events_test_full_with_trailing_spaces_in_modifiers.tsv"
    fails([path], ["no annotation", "4 point events", "--point-events"])
    read = import_annotations([path], point_events=0.5).recordings["test1 live"]
    assert read.duration == 26.007 and read.fps is None
    assert sorted(read.segments.starts) == pytest.approx([3.901, 12.413, 19.885, 25.757])
    assert read.segments.durations == pytest.approx([0.5] * 4)


def test_real_exports_as_spreadsheets(boris: Path, tmp_path: Path, fails: Callable[..., None]) -> None:
    """BORIS writes the same cells into a spreadsheet; one of several sheets is chosen."""
    book = openpyxl.Workbook()
    source = boris / "test_export_events_tabular.tsv"
    with source.open(newline="") as file:
        for cells in csv.reader(file, delimiter="\t"):
            book.active.append([float(c) if c.replace(".", "").isdigit() else c or None for c in cells])
    book.save(tmp_path / "e.xlsx")
    assert import_annotations([tmp_path / "e.xlsx"]).recordings == import_annotations([source]).recordings
    book.active.title = "first"
    book.create_sheet("second").append(["x"])
    book.save(tmp_path / "e.xlsx")
    fails([tmp_path / "e.xlsx"], ["first, second", "--sheet"])
    assert import_annotations([tmp_path / "e.xlsx"], sheet="first").classes == ("s",)


def test_point_events_do_not_begin_before_the_recording(tmp_path: Path) -> None:
    (tmp_path / "e.tsv").write_text(OLD + "o\tLIVE\t9\tNA\t\tp\t\tPOINT\t0.1\t0.1\n")
    assert rows(import_annotations([tmp_path / "e.tsv"], point_events=1).truth()["o"]) == [("p", 0.0, 0.6)]


def test_new_tabular_events_know_the_lengths_of_the_files(tmp_path: Path) -> None:
    """An action that goes on in the next file is cut; a variable of the user may be called as a column is."""
    first = (
        "o,Media file(s),player #1:/a/one.mp4;/a/two.mp4|player #2:/a/side.mp4,0,60.000;90.000|150.000,25.0;30.0|25.0,x"
    )
    lines = [
        f"{first},Ann,walk,,slow,START,10.5,one.mp4,",
        f"{first},Bob,walk,,,START,11,one.mp4,",
        f"{first},Ann,walk,,fast,START,12,one.mp4,",
        f"{first},Ann,walk,,slow,STOP,20,one.mp4,",
        f"{first},Bob,walk,,,STOP,21,one.mp4,",
        f"{first},Ann,walk,,fast,STOP,70,two.mp4,",
    ]
    (tmp_path / "e.csv").write_text(NEW + "\n".join(lines) + "\n")
    one, two = import_annotations([tmp_path / "e.csv"]).recordings.values()
    assert (one.name, one.duration, one.fps, two.name, two.duration, two.fps) == ("one", 60, 25, "two", 90, 30)
    assert rows(one.segments) == [("walk", 10.5, 20.0), ("walk", 11.0, 21.0), ("walk", 12.0, 60.0)]
    assert rows(two.segments) == [("walk", 0.0, 10.0)]
    assert two.extra == {"subject": "Ann"} and not one.extra


def test_a_time_offset_is_noted(tmp_path: Path) -> None:
    row = "o,Media file(s),player #1:one.mp4,3.5,60,25,x,Ann,walk,,,"
    (tmp_path / "e.csv").write_text(f"{NEW}{row}START,10,one.mp4,\n{row}STOP,12,one.mp4,\n")
    assert "time offset of 3.5" in import_annotations([tmp_path / "e.csv"]).notes[0]


TABULAR = "Observation id\to\n\nTime\tMedia file path\tTotal length\tFPS\tSubject\tBehavior\tStatus\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TABULAR + "1\tv.mp4\t9\t25\ta\trun\tSTART\n", ["line 4", "START", "'run'", "without a STOP"]),
        (TABULAR + "1\tv.mp4\t9\t25\ta\trun\tSTOP\n", ["line 4", "STOP", "'run'", "without a START"]),
        (TABULAR + "1\tv.mp4\t9\t25\ta\trun\tSTART\n2\tv.mp4\t9\t25\ta\trun\tSTART\n", ["line 4", "START", "'run'"]),
        (TABULAR + "1\tv.mp4\t9\t25\ta\trun\tSTART\n2\tv.mp4\t9\t25\tb\trun\tSTOP\n", ["line 5", "STOP", "'run'"]),
        (TABULAR + "1\tv.mp4\t9\t25\ta\trun\tBEGIN\n", ["line 4", "'BEGIN'", "START, STOP, POINT"]),
        (TABULAR + "soon\tv.mp4\t9\t25\ta\trun\tSTART\n", ["line 4", "'run'", "'soon'"]),
        (TABULAR, ["no events"]),
        (OLD + "o\tv.mp4\t9\t25\t\trun\t\tSTATE\t2\t1\n", ["line 2", "end 1", "start 2", "'run'"]),
        (OLD + "o\tv.mp4\t9\t25\t\trun\t\tSTATE\tNA\tNA\n", ["line 2", "pictures"]),
        (
            OLD + "o\tv.mp4\t9\t25\t\trun\t\tSTATE\t1\t2\np\tv.mp4\t9\t25\t\trun\t\tSTATE\t1\t2\n",
            ["line 3", "'v'", "'o'", "'p'"],
        ),
    ],
)
def test_faults_of_boris_exports(tmp_path: Path, fails: Callable[..., None], text: str, words: list[str]) -> None:
    path = tmp_path / "e.tsv"
    path.write_text(text)
    fails([path], [str(path), *words])


def test_what_is_written_for_boris(tmp_path: Path) -> None:
    found = {"v": Segments([1.25], [2], ["run"], [0.5])}
    [path] = write_segments(tmp_path / "r.boris.csv", found, fps=25, media={"v": "day/v.mp4"}, durations={"v": 60})
    with path.open(encoding="utf-8", newline="") as file:
        [row] = csv.DictReader(file)
    assert (row["Media file"], row["Total length"], row["FPS"], row["Behavior"]) == ("day/v.mp4", "60", "25", "run")
    assert (row["Start (s)"], row["Stop (s)"], row["Behavior type"]) == ("1.25", "2.0", "STATE")
    [back] = import_annotations([path.rename(tmp_path / "plain.csv")]).recordings.values()
    assert (back.name, back.duration, back.fps) == ("v", 60, 25)
