"""Names, labels and formulas that once left a folder, reached the terminal or a spreadsheet. Each stays here."""

import json
from pathlib import Path

import numpy as np
import pytest
from known import annotation, refused

from temporalzoom.console import Screen, one_line, printable
from temporalzoom.formats import read_any_annotations, write_segments
from temporalzoom.formats.interface import as_meant, no_formula
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_files import find_features
from temporalzoom.signals.feature_store import open_features, open_sidecars

ESC = "\x1b]0;owned\x07\x1b[2J"


# Names that lead out of a folder


@pytest.mark.parametrize("name", ["../secret", "/etc/secret", "inside/../../secret", r"..\secret", r"C:\secret", "\\x"])
def test_a_name_does_not_leave_the_folder(tmp_path: Path, name: str):
    np.save(tmp_path / "secret.npy", np.ones((4, 2), np.float32))
    folder = tmp_path / "features"
    folder.mkdir()
    absolute = str(tmp_path / "secret")
    for wanted in (name, absolute):
        assert "leads out of the folder" in refused(find_features, folder, wanted)
        assert "leads out of the folder" in refused(open_features(folder).read, wanted)
    (folder / "x.json").write_text("{}")
    of = open_sidecars(folder)
    assert of is not None and "leads out" in refused(of, name)


def test_data_check_names_the_name(tmp_path: Path, tzoom):
    np.save(tmp_path / "secret.npy", np.ones((90, 2), np.float32))
    (tmp_path / "features").mkdir()
    (tmp_path / "a.json").write_text(json.dumps(annotation("../secret")))
    (tmp_path / "mine.yaml").write_text("seed: 0")
    setting = (f"data.annotations={tmp_path}/a.json", f"data.features={tmp_path}/features", "data.stride=1")
    code, _, err = tzoom("train", tmp_path / "mine.yaml", "--out", tmp_path / "run", "data.source=folder", *setting)
    assert code == 2 and "leads out of the folder" in " ".join(err.split())


def test_a_name_inside_a_folder_of_the_folder(tmp_path: Path):
    (tmp_path / "day1").mkdir()
    np.save(tmp_path / "day1" / "walk..1.npy", np.ones((4, 2), np.float32))
    assert find_features(tmp_path, "day1/walk..1") is not None


def test_names_that_no_file_can_have(tmp_path: Path):
    for name in ("x" * 300, "a\0b", "\udce4", "x/" * 3000):
        assert find_features(tmp_path, name) is None
    named = {"x" * 300: Segments([1], [2], ["run"]), "b": Segments.empty()}
    assert "too long" in refused(write_segments, tmp_path / "found.vtt", named)


# The terminal


def test_control_characters_are_shown_not_obeyed(capsys):
    screen = Screen(force_terminal=True, width=200)
    screen.print(f"a{ESC}b", markup=False, highlight=False)
    screen.print(Segments([1], [2], [f"run{ESC}"]).table(title=f"walk{ESC}"))
    printed = capsys.readouterr().out
    assert "\x1b]" not in printed and "\x1b[2J" not in printed and "\x07" not in printed
    assert r"\x1b]0;owned" in printed
    assert printable("tab\tline\nä 漢") == "tab\tline\nä 漢"
    assert one_line("a\nb\u202e\ud800") == r"a\nb\u202e\ud800"


def test_names_with_escapes_on_the_command_line(tmp_path: Path, tzoom):
    (tmp_path / "a.json").write_text(json.dumps(annotation(f"walk{ESC}", f"run{ESC}", annotations=[])))
    (tmp_path / "t.json").write_text(json.dumps(annotation(f"walk{ESC}", f"run{ESC}")))
    (tmp_path / "p.json").write_text(json.dumps({"results": {f"x{ESC}": []}}))
    results = [
        tzoom("data", "import", tmp_path / "t.json", "--out", tmp_path / "o.json"),
        tzoom("eval", "--predictions", tmp_path / "p.json", "--truth", tmp_path / "t.json"),
        tzoom("budget", tmp_path / "t.json"),
        tzoom("data", "import", tmp_path / "no\nsuch\x1bfile.csv", "--out", tmp_path / "o.json"),
    ]
    for code, out, err in results:
        assert code in (0, 2) and "\x1b" not in out + err
    assert results[-1][2].count("\n") == 1


# Formulas


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "+1", "-x", "@SUM(A1)", "'=x", "''-y", "'plain", "a=b", "'"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".boris.csv", ".boris.tsv", ".xlsx"])
def test_formulas_are_text_and_come_back(tmp_path: Path, text: str, suffix: str):
    path = tmp_path / f"found{suffix}"
    write_segments(path, {text: Segments([1], [2], [text])})
    recordings = read_any_annotations(path).recordings
    assert {name: r.segments.labels.tolist() for name, r in recordings.items()} == {text: [text]}
    if suffix != ".xlsx":
        cells = path.read_text().replace('"', "").replace("\t", ",").split(",")
        assert not any(cell.startswith(tuple("=+-@")) for cell in cells)


def test_an_apostrophe_is_undone_once():
    for text in ("", "'", "=1", "'=1", "''=1", "x'", "\tx", "ordinary"):
        assert as_meant(no_formula(text)) == text
        assert no_formula(text)[:1] not in tuple("=+-@\t")
