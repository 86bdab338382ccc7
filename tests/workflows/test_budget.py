"""`tzoom budget`: from files of several formats, and from a model, to a table and a CSV."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from temporalzoom.formats import write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.time_budget import time_budget
from temporalzoom.segments import Segments

FOUND = {
    "cage1": Segments([2, 10, 13, 5], [4, 11, 16, 6], ["groom", "groom", "groom", "rear"], [0.9, 0.8, 0.7, 0.1]),
    "cage2": Segments([30], [90], ["walk"], [0.6]),
}


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def annotations(tmp_path) -> Path:
    database = {
        name: {"subset": "train", "duration": 100.0, "annotations": segments.to_records()}
        for name, segments in FOUND.items()
    }
    path = tmp_path / "truth.json"
    path.write_text(json.dumps({"database": database, "classes": ["rear", "groom", "walk", "sleep"]}))
    return path


def test_an_annotation_file(annotations, tmp_path, tzoom):
    code, out, err = tzoom("budget", annotations, "--out", tmp_path / "budget.csv")
    assert code == 0 and "budget.csv" in out and not err
    table = rows(tmp_path / "budget.csv")
    assert [(row["recording"], row["behaviour"]) for row in table] == [
        (name, label) for name in FOUND for label in ("rear", "groom", "walk", "sleep")
    ]
    groom = table[1]
    assert groom["bouts"] == "3" and groom["share_of"] == "recording" and float(groom["share"]) == 0.06
    assert [float(groom[key]) for key in ("mean", "median", "sd", "latency")] == [2.0, 2.0, 1.0, 2.0]
    assert [float(groom[key]) for key in ("mean_interval", "median_interval")] == [4.0, 4.0]
    assert table[3]["bouts"] == "0" and table[3]["mean"] == ""
    code, out, _ = tzoom("budget", annotations)
    assert code == 0 and "cage1: 100.00 s" in out and "all 2 recordings: 200.00 s" in out and "latency" in out


@pytest.mark.parametrize("name", ["coarse", "fine"])
def test_real_annotations_of_rats(name, shared_data, tmp_path, tzoom):
    """Against sums over the file itself, in which no behaviour overlaps itself."""
    path = shared_data / "rats" / f"{name}.json"
    assert tzoom("budget", path, "--bin", 600, "--out", tmp_path / "b.csv")[0] == 0
    counts, times = Counter(), Counter()
    for recording, entry in json.loads(path.read_text())["database"].items():
        for record in entry["annotations"]:
            counts[recording, record["label"]] += 1
            times[recording, record["label"]] += record["segment"][1] - record["segment"][0]
    for row in rows(tmp_path / "b.csv"):
        counts[row["recording"], row["behaviour"]] -= int(row["bouts"])
        times[row["recording"], row["behaviour"]] -= float(row["total"])
    assert counts and not any(counts.values()) and all(abs(rest) < 1e-3 for rest in times.values())


def test_bins_of_a_minute(annotations, tmp_path, tzoom):
    assert tzoom("budget", annotations, "--bin", 60, "--out", tmp_path / "budget.tsv")[0] == 0
    table = list(csv.DictReader((tmp_path / "budget.tsv").read_text().splitlines(), delimiter="\t"))
    walk = [row for row in table if row["recording"] == "cage2" and row["behaviour"] == "walk"]
    assert [(row["from"], row["to"], row["bouts"], row["total"]) for row in walk] == [
        ("0.0", "60.0", "1", "30.0"),
        ("60.0", "100.0", "0", "30.0"),
    ]
    assert "0-60" in tzoom("budget", annotations, "--bin", 60)[1]


@pytest.mark.parametrize("name", ["found.json", "found.csv", "found.vtt", "found.eaf", "found.labelstudio.json"])
def test_what_localize_writes(name, tmp_path, tzoom):
    """Without durations: shares are of the time until the last end, and that is said."""
    written = write_segments(tmp_path / name, FOUND)
    target = written[0] if len(written) == 1 else written[0].parent
    code, _, err = tzoom("budget", target, "--out", tmp_path / "b.csv")
    assert code == 0, err
    table = {(row["recording"], row["behaviour"]): row for row in rows(tmp_path / "b.csv")}
    assert table["cage1", "groom"]["bouts"] == "3" and table["cage2", "walk"]["total"] == "60.0"
    if not name.endswith(".eaf"):
        assert table["cage1", "groom"]["share_of"] == "last end" and "until the last end" in err
        assert float(table["cage1", "groom"]["share"]) == pytest.approx(6 / 16)
    given = ("--duration", 200, "--duration", "cage1=50")
    code, _, err = tzoom("budget", target, "--out", tmp_path / "b.csv", *given)
    table = {(row["recording"], row["behaviour"]): row for row in rows(tmp_path / "b.csv")}
    assert code == 0 and "last end" not in err and float(table["cage1", "groom"]["share"]) == 6 / 50


def test_segments_are_selected_first(tmp_path, annotations, tzoom):
    [path] = write_segments(tmp_path / "found.json", FOUND)
    options = ("--threshold", 0.5, "--merge-gap", 2, "--duration", 100)
    assert tzoom("budget", path, *options, "--out", tmp_path / "b.csv")[0] == 0
    table = {(row["recording"], row["behaviour"]): row for row in rows(tmp_path / "b.csv")}
    assert table["cage1", "groom"]["bouts"] == "2" and table["cage1", "rear"]["bouts"] == "0"
    code, _, err = tzoom("budget", annotations, "--threshold", 0.5)
    assert code == 2 and "--threshold" in err and "no scores" in err


def test_a_model(tmp_path, tzoom):
    bench, run = tmp_path / "bench", tmp_path / "run"
    sizes = ("sequences=4", "test_sequences=2", "length=96", "dimension=8")
    assert tzoom("data", "make-zoombench", "--out", bench, *sizes)[0] == 0
    tiny = ("training.steps=2", "model.width=16", "model.heads=2", "model.name=uniform-1", "training.batch_size=2")
    assert tzoom("train", bench / "config.yaml", *tiny, "--out", run)[0] == 0
    recording = bench / "features" / "test_0000.npy"
    common = ("budget", recording, "--model", run, "--threshold", 0, "--no-overlap")
    code, _, err = tzoom(*common, "--out", tmp_path / "b.csv")
    assert code == 0 and "last end" not in err
    localizer = Localizer.load(run)
    duration = localizer.prepare(recording).duration
    expected = time_budget(localizer(recording, threshold=0, no_overlap=True), duration, localizer.classes)
    assert [row["total"] for row in rows(tmp_path / "b.csv")] == [repr(round(b.total, 6)) for b in expected]
    assert sum(float(row["share"]) for row in rows(tmp_path / "b.csv")) <= 1 + 1e-4
    assert "--duration" in tzoom(*common, "--duration", 5)[2] and "--fps" in tzoom(*common, "--fps", 5)[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--out", "budget.xlsx"], ["budget.xlsx", ".csv"]),
        (["--set", "inference.sigma=1"], ["--set", "--model"]),
        (["--device", "cpu"], ["--device", "--model"]),
        (["--fps", "25"], ["--fps", "seconds"]),
        (["--duration", "cage9=5"], ["--duration", "cage9"]),
        (["--duration", "cage1=5"], ["cage1: 'groom' starts at 10 s", "at 5 s; --duration cage1=SECONDS"]),
        (["--duration", "long"], ["--duration", "long"]),
        (["--bin", "0"], ["bins must last longer"]),
    ],
)
def test_what_is_refused(annotations, tzoom, options, words):
    code, _, err = tzoom("budget", annotations, *options)
    assert code == 2 and "Traceback" not in err and all(word in err for word in words), err


def test_files_that_do_not_go_together(annotations, tmp_path, tzoom):
    [other] = write_segments(tmp_path / "other.csv", FOUND)
    code, _, err = tzoom("budget", annotations, other)
    assert code == 2 and "other.csv: recording 'cage1' is in" in err and "truth.json" in err
    assert "no such file" in tzoom("budget", tmp_path / "nowhere.json")[2]
    (tmp_path / "odd.json").write_text('{"a": 1}')
    assert "'database'" in tzoom("budget", tmp_path / "odd.json")[2]
    (tmp_path / "broken.json").write_text("{")
    code, _, err = tzoom("budget", tmp_path / "broken.json")
    assert code == 2 and "broken.json" in err and "Traceback" not in err


def test_a_bout_that_reaches_beyond_the_end_is_cut_and_said(annotations, tzoom):
    code, out, err = tzoom("budget", annotations, "--duration", "cage2=60")
    assert code == 0 and "cage2: 1 of its segments cut off" in err and "cage2: 60.00 s" in out


def test_names_are_no_markup(tmp_path, tzoom):
    [path] = write_segments(tmp_path / "found.json", {"[bold]x": Segments([0], [1], ["[red]run"])})
    code, out, _ = tzoom("budget", path, "--duration", 2)
    assert code == 0 and "[bold]x: 2.00 s" in out and "[red]run" in out
