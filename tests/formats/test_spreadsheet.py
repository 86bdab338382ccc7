"""Spreadsheets: as pandas reads and writes them, cells of every kind, and a missing package."""

import datetime
import sys
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
from format_strategies import rows

from temporalzoom.formats import import_annotations, write_segments
from temporalzoom.segments import Segments


def test_spreadsheets_by_another_program(tmp_path: Path) -> None:
    found = {"v": Segments([1.25, 3], [2, 4.5], ["=1+2", "run"], [0.5, 1])}
    [path] = write_segments(tmp_path / "r.xlsx", found)
    frame = pd.read_excel(path)
    assert frame.to_dict("list") == {
        "video": ["v", "v"], "start": [1.25, 3], "end": [2, 4.5], "label": ["=1+2", "run"], "score": [0.5, 1],
    }  # fmt: skip
    frame.replace("=1+2", "1+2").to_excel(tmp_path / "back.xlsx", index=False)
    assert rows(import_annotations([tmp_path / "back.xlsx"]).truth()["v"]) == [("1+2", 1.25, 2.0), ("run", 3.0, 4.5)]


def test_cells_of_every_kind(tmp_path: Path) -> None:
    """Numbers, text, times of day, lengths of time, numbers as labels, an empty row."""
    book = openpyxl.Workbook()
    for row in (
        ("Video", "Onset", "Offset", "Behaviour", "Animal"),
        ("a.mp4", 1, 2.5, "run", 7),
        (None,) * 5,
        ("a.mp4", datetime.time(0, 1, 2, 500000), datetime.timedelta(seconds=63), 3.0, 7),
        ("b.mp4", "1:05", "66,5", "jump", 8),
    ):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    read = import_annotations([tmp_path / "t.xlsx"])
    assert rows(read.truth()["a"]) == [("3", 62.5, 63.0), ("run", 1.0, 2.5)]
    assert rows(read.truth()["b"]) == [("jump", 65.0, 66.5)]
    assert [r.extra for r in read.recordings.values()] == [{"subject": "7"}, {"subject": "8"}]


def test_sheets(tmp_path: Path, fails: Callable[..., None]) -> None:
    book = openpyxl.Workbook()
    book.active.title = "notes"
    book.active.append(["nothing to see"])
    sheet = book.create_sheet("coded")
    for row in (("start", "end", "label"), (1, 2, "run"), (2, 1, "run")):
        sheet.append(row)
    book.save(tmp_path / "day1.xlsx")
    path = tmp_path / "day1.xlsx"
    fails([path], ["notes, coded", "--sheet"])
    fails([path], ["'notes'", "no column 'start'", "--columns"], sheet="notes")
    fails([path], ["'lost'", "notes, coded"], sheet="lost")
    fails([path], ["'coded'", "row 3", "end 1"], sheet="coded")


def test_faults_of_spreadsheets(tmp_path: Path, fails: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.xlsx"
    path.write_text("video,start,end,label\n")
    fails([path], [str(path), "not a spreadsheet"])
    openpyxl.Workbook().save(path)
    fails([path], [str(path), "empty"])
    monkeypatch.setitem(sys.modules, "openpyxl", None)  # as if it were not installed
    fails([path], [str(path), "openpyxl", 'pip install "temporalzoom[spreadsheet]"'])
