"""`tzoom fit`, from files to a run: tables, archives, one recording, videos; what it says, and what it refuses."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from members_here import run_members_here
from small_walks import write_walks
from temporalzoom.datasets.gathered import load
from temporalzoom.datasets.zoombench_scenes import VideoBench
from temporalzoom.datasets.zoombench_video import video_annotations, write_zoombench_video
from temporalzoom.errors import InputError
from temporalzoom.formats import read_predictions, write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.runs.members import read_members
from temporalzoom.workflows import fit
from temporalzoom.workflows import fit as workflow
from temporalzoom.workflows.fit import DATA, MEMBERS, PLAN, REPORT
from temporalzoom.workflows.gather import GatherOptions, gather, matched_names

GESTURES = Path(__file__).parents[3] / "shared" / "data" / "gesture_phase"
FEW = (
    "--set=training.steps=4", "--set=training.length=64", "--set=training.batch_size=2", "--set=model.width=16",
    "--set=training.warmup_steps=1", "--set=inference.min_score=1e-6", "--set=inference.certainty=0",
)  # fmt: skip


@pytest.fixture
def walks(tmp_path, monkeypatch):
    write_walks(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_tables_to_a_model(walks, tzoom):
    code, out, err = tzoom("fit", "signals", "annotations.csv", "--out", "runs/mine", "--members", "2", *FEW)
    assert code == 0, err
    assert "6 recordings of 3 subjects" in err and "25 rows per second" in err and "networks are trained" in err
    assert "tzoom localize RECORDING --model runs/mine" in out
    run = Path("runs/mine")
    page = (run / REPORT).read_text()
    assert "wave" in page and "nod" in page
    members = read_members(run)
    assert members is not None and set(members.thresholds) == {"default", "nod", "wave"}
    # Of three subjects a network that leaves one out has seen too little: those for use are trained on all.
    assert members.validated == ("members/0", "members/1") and members.folders == ("members/all-0", "members/all-1")
    # The subjects of a fold are kept from its member.
    for number in (0, 1):
        database = json.loads((run / DATA / f"fold-{number}.json").read_text())["database"]
        held = {entry["subject"] for entry in database.values() if entry["subset"] == "validation"}
        seen = {entry["subject"] for entry in database.values() if entry["subset"] == "train"}
        assert held and seen and not held & seen
        assert set(read_predictions(run / MEMBERS / str(number) / "predictions.json")) == {
            name for name, entry in database.items() if entry["subset"] == "validation"
        }
    localizer = Localizer.load(run)
    assert len(localizer.members) == 2 and localizer.classes == ("nod", "wave")
    assert localizer.members[0].description.preparation.channel_names == ("ax", "ay", "az")
    everything = localizer("signals/walk0.csv", threshold=0)
    assert len(everything) and everything.ends.max() <= 16.0
    code, out, err = tzoom("localize", "signals/walk1.csv", "--model", "runs/mine", "--threshold", "0", "--top", "3")
    assert code == 0 and "walk1: 3 segments" in out, err
    code, out, err = tzoom("eval", "--model", "runs/mine", "--json")
    assert code == 0 and "has not seen it" in err and 0 <= json.loads(out)["average"] <= 1


@pytest.mark.slow
def test_with_many_subjects_the_time_decides_whether_the_members_are_those_of_the_folds(tmp_path, monkeypatch, tzoom):
    write_walks(tmp_path, count=10)
    monkeypatch.chdir(tmp_path)
    command = ("fit", "signals", "annotations.csv", "--members", "1", *FEW)
    assert tzoom(*command, "--out", "whole")[0] == 0
    members = read_members(Path("whole"))
    assert members is not None and (members.folders, members.validated) == (("members/all-0",), ("members/0",))
    monkeypatch.setattr(workflow, "DEFAULT_SECONDS", 0.0)
    assert tzoom(*command, "--out", "r")[0] == 0
    members = read_members(Path("r"))
    assert members is not None and members.folders == members.validated == ("members/0",)
    code, out, err = tzoom("cost", "--model", "r", "--repeats", "1")
    assert code == 0 and "1 fused" in out, err


@pytest.mark.slow
def test_the_same_command_goes_on_and_a_test_is_set_aside(walks, tzoom):
    command = ("fit", "signals", "annotations.csv", "--out", "r", "--members", "1", "--test", "walk5", *FEW)
    assert tzoom(*command)[0] == 0
    weights = next(Path("r/members/0/checkpoints").glob("*/weights.safetensors")).stat().st_mtime_ns
    code, _, err = tzoom(*command)
    assert code == 0 and "1 of 1 members are done already" in err
    assert next(Path("r/members/0/checkpoints").glob("*/weights.safetensors")).stat().st_mtime_ns == weights
    code, _, _ = tzoom("eval", "--model", "r", "--out", "found.json", "--json")
    assert code == 0 and set(read_predictions("found.json")) == {"walk5"}


def test_what_the_time_allowed_is_remembered(walks, monkeypatch):
    """A stopped run must go on as it was, also where the machine is busier now than it was then."""
    gathered = gather(walks / "signals", walks / "annotations.csv", walks / "data")
    speeds = iter([0.01, 0.01, 5.0, 5.0])
    monkeypatch.setattr(fit, "seconds_per_step", lambda config: next(speeds))
    first = fit.prepare(gathered, seconds=300.0, decided=walks / "decided.json")
    again = fit.prepare(gathered, seconds=300.0, decided=walks / "decided.json")
    assert first.configs == again.configs and len(first.configs) == 5
    other = fit.prepare(gathered, seconds=301.0, decided=walks / "decided.json")
    assert len(other.configs) == 1


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["stopped before training began", "members done; those under way have saved"])
def test_a_stopped_fit_goes_on(walks, sign):
    """Ctrl-C in a real process, while steps are timed and while members train: one line, and it goes on after."""
    steps = "--set=training.steps=150"
    command = [
        sys.executable, "-m", "temporalzoom", "fit", "signals", "annotations.csv", "--out", "r", "--members", "2",
        *FEW, steps,
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    begun = Path("r/data/fold-0.json") if sign.startswith("stopped") else Path("r/members/0/metrics.jsonl")
    deadline = time.monotonic() + 120
    while not (begun.is_file() and begun.stat().st_size) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "Traceback" not in err, err
    if sign.startswith("stopped"):
        return  # how far it came by then is a matter of microseconds: it may have been before or after
    assert sign in err and "go on with: tzoom fit signals" in err, err
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr
    assert (Path("r") / REPORT).is_file()


def test_a_dry_run_prints_a_configuration_with_reasons(walks, tzoom):
    code, out, err = tzoom("fit", "signals", "annotations.csv", "--out", "r", "--members", "3", "--dry-run")
    assert code == 0, err
    tree = yaml.safe_load(out)
    assert tree["data"]["stride"] == 6 and "# a position every 0.24 s" in out and "# member 2" in out
    assert not Path("r", MEMBERS).exists() and not Path("r", PLAN).exists()


def test_what_the_user_sets_is_in_the_plan_and_in_every_member(walks, tzoom):
    command = ("fit", "signals", "annotations.csv", "--out", "r", "--members", "3", "--dry-run")
    code, out, err = tzoom(*command, "--set", "data.stride=10", "--set", "training.steps=77")
    assert code == 0, err
    tree = yaml.safe_load(out)
    assert tree["data"]["stride"] == 10 == np.prod(tree["model"]["stem"]) and tree["training"]["steps"] == 77
    assert out.count("# given by the user") == 2 and "#   data.stride" not in out
    code, _, err = tzoom(*command, "--set", "data.stride=10000")
    assert code == 2 and "data.stride: must be a number of rows from 1 to 4096, got 10000" in err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0.37", {"nod": 0.37, "wave": 0.37}),
        ("{wave: 0.37}", {"wave": 0.37}),
        ("{default: 0.4, wave: 0.37}", {"nod": 0.4, "wave": 0.37}),
    ],
)
def test_a_threshold_of_the_user_is_that_of_the_run(walks, tzoom, monkeypatch, given, expected):
    run_members_here(monkeypatch)
    words = ("fit", "signals", "annotations.csv", "--out", "r", "--members", "2", *FEW)
    code, _, err = tzoom(*words, f"--set=inference.threshold={given}")
    assert code == 0, err
    shown = Localizer.load("r").selection().threshold
    assert {label: shown[label] for label in expected} == expected
    assert "nod" in shown


def test_a_threshold_for_an_unknown_class_is_refused(walks, tzoom, monkeypatch):
    run_members_here(monkeypatch)
    words = ("fit", "signals", "annotations.csv", "--out", "r", "--members", "1", *FEW)
    code, _, err = tzoom(*words, "--set=inference.threshold={nodd: 0.4}")
    assert code == 2 and "no class 'nodd'; did you mean 'nod'?" in err


def test_an_export_of_a_fit_with_one_network_keeps_its_thresholds(walks, tzoom, monkeypatch):
    run_members_here(monkeypatch)
    assert tzoom("fit", "signals", "annotations.csv", "--out", "r", "--members", "1", *FEW)[0] == 0
    code, _, err = tzoom("export", "--model", "r", "--out", "r.onnx")
    assert code == 0, err
    members = read_members(Path("r"))
    assert Localizer.load("r.onnx").selection().threshold == members.thresholds
    for file in ("r", "r.onnx"):
        assert tzoom("localize", "signals/walk0.csv", "--model", file, "--out", f"{Path(file).suffix}x.json")[0] == 0
    found = [read_predictions(name)["walk0"] for name in ("x.json", ".onnxx.json")]
    assert len(found[0]) == len(found[1])


def test_what_was_gathered_is_used_again_until_a_file_changes(walks):
    first = gather(walks / "signals", walks / "annotations.csv", walks / "data")
    assert first.rates() == dict.fromkeys(first.annotations.recordings, 25.0)
    stamp = (walks / "data" / "signals" / "walk0.npy").stat().st_mtime_ns
    again = gather(walks / "signals", walks / "annotations.csv", walks / "data")
    assert again.annotations.truth().keys() == first.annotations.truth().keys()
    assert (walks / "data" / "signals" / "walk0.npy").stat().st_mtime_ns == stamp
    assert load(walks / "data", "something else") is None
    other = gather(walks / "signals", walks / "annotations.csv", walks / "data", GatherOptions(background=("nod",)))
    assert set(other.annotations.classes) == {"wave"}


def test_networks_of_other_annotations_are_not_taken_for_those_of_these(walks, tzoom):
    command = ("fit", "signals", "annotations.csv", "--out", "r", "--members", "1", "--set", "training.steps=2")
    code, _, err = tzoom(*command)
    assert code == 0, err
    table = Path("annotations.csv").read_text()
    Path("annotations.csv").write_text(table.replace("nod", "shake"))
    code, _, err = tzoom(*command)
    assert code == 2 and "r: was trained on other recordings or annotations than these" in err
    Path("annotations.csv").write_text(table)
    assert tzoom(*command)[0] == 0
    signal = Path("signals", "walk0.csv").read_text().splitlines()
    Path("signals", "walk0.csv").write_text("\n".join(signal[:-1]))
    assert tzoom(*command)[0] == 2


def test_one_recording_is_cut_into_pieces(tmp_path):
    write_walks(tmp_path, count=1)
    gathered = gather(tmp_path / "signals", tmp_path / "annotations.csv", tmp_path / "data")
    assert len(gathered.annotations.recordings) > 1 and "cut into" in " ".join(gathered.notes)
    assert sum(len(r.segments) for r in gathered.annotations.recordings.values()) == 4
    assert sum(len(gathered.read(name)) for name in gathered.annotations.recordings) == 400


def test_other_rates_are_brought_together(walks):
    shutil.rmtree(walks / "signals")
    (walks / "annotations.csv").unlink()
    write_walks(walks, count=4)
    table = (walks / "signals" / "walk3.csv").read_text().splitlines()
    (walks / "signals" / "walk3.csv").write_text("\n".join([table[0], *table[1::2]]))
    gathered = gather(walks / "signals", walks / "annotations.csv", walks / "data")
    assert "rates differ, from 12.5 to 25 rows per second" in " ".join(gathered.notes)
    assert len(gathered.read("walk3")) == pytest.approx(400, abs=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "signals" / "walk2.csv").unlink(), "1 annotated recordings have no file: walk2; did you mean"),
        (lambda f: shutil.copy(f / "signals/walk0.csv", f / "signals/extra.csv"), None),
        (lambda f: (f / "signals/walk1.csv").write_text("time,ax,ay\n0,1,2\n0.04,3,4\n0.08,1,2\n"), "2 channels"),
    ],
)
def test_files_that_do_not_fit_are_named(walks, change, message):
    change(walks)
    if message is None:
        notes = gather(walks / "signals", walks / "annotations.csv", walks / "data").notes
        assert "1 recordings are not annotated and left out: extra" in notes
    else:
        with pytest.raises(InputError, match=message):
            gather(walks / "signals", walks / "annotations.csv", walks / "data")


def test_a_question_about_the_annotations_is_answered_in_the_same_command(walks, tzoom):
    """Times of a table may count seconds or milliseconds, a BORIS file may have events without a length."""
    table = Path("annotations.csv").read_text().splitlines()
    rows = [line.split(",") for line in table[1:]]
    start, end = table[0].split(",").index("start"), table[0].split(",").index("end")
    for row in rows:
        row[start], row[end] = (str(round(1000 * float(row[place]))) for place in (start, end))
    Path("in-ms.csv").write_text("\n".join([table[0], *map(",".join, rows)]))
    command = ("fit", "signals", "in-ms.csv", "--out", "r", "--dry-run")
    code, out, err = tzoom(*command, "--time-unit", "milliseconds")
    assert code == 0 and yaml.safe_load(out)["data"]["stride"] == 6, err
    code, _, err = tzoom(*command, "--tier", "actions")
    assert code == 2 and "--tier: none of the files is" in err
    code, _, err = tzoom("fit", "signals", "--out", "r2", "--dry-run", "--tier", "actions")
    assert code == 2 and "--tier: says how a file of annotations is read, but none is given" in err


def test_options_that_say_nothing_are_refused(walks, tzoom):
    for words, message in (
        (("--time", "soon"), "--time 'soon': expected a time"),
        (("--columns", "start"), "--columns must be MEANING=NAME"),
        (("--subject", "z+"), "finds nothing in the name"),
        (("--test", "nobody*"), "--test: no recording is called 'nobody*'"),
    ):
        code, _, err = tzoom("fit", "signals", "annotations.csv", "--out", "r", "--dry-run", *words)
        assert code == 2 and message in err, words


def test_names_with_suffixes_and_paths_are_matched():
    assert matched_names(["a", "b"], ["a.mp4", "videos/b.avi"]) == {"a.mp4": "a", "videos/b.avi": "b"}
    with pytest.raises(InputError, match=r"no file: c\.mp4"):
        matched_names(["a"], ["c.mp4"])


def test_arrays_of_an_archive(walks, tzoom):
    random = np.random.default_rng(0)
    np.savez("all.npz", **{f"walk{n}": random.normal(size=(400, 2)).astype(np.float32) for n in range(6)})
    with pytest.raises(InputError, match="--fps"):
        gather(Path("all.npz"), Path("annotations.csv"), Path("data"))
    gathered = gather(Path("all.npz"), Path("annotations.csv"), Path("data"), GatherOptions(fps=25.0))
    assert len(gathered.annotations.recordings) == 6 and gathered.read("walk0").shape == (400, 2)


@pytest.mark.parametrize("name", ["../outside", "a/b", ".."])
def test_no_recording_leaves_the_folder(walks, name):
    np.savez("odd.npz", **{name: np.zeros((50, 2)), "walk1": np.zeros((50, 2))})
    Path("odd.csv").write_text(f"recording,start,end,label\n{name},0,1,a\nwalk1,0,1,a\n")
    with pytest.raises(InputError, match="cannot be the name of a recording"):
        gather(Path("odd.npz"), Path("odd.csv"), Path("data"), GatherOptions(fps=25.0))
    assert not Path("data").exists() and not Path("outside.npy").exists()


def test_rows_fewer_than_frames_are_features(walks):
    """Annotations state the frames per second of a video, of which features keep every fourth."""
    entry = {"fps": 25.0, "duration": 16.0, "annotations": [{"label": "wave", "segment": [2.0, 4.0]}]}
    Path("video.json").write_text(json.dumps({"database": {f"walk{n}": entry for n in range(4)}}))
    np.savez("few.npz", **{f"walk{n}": np.zeros((100, 2), np.float32) for n in range(4)})
    gathered = gather(Path("few.npz"), Path("video.json"), Path("data"))
    assert gathered.rates() == dict.fromkeys((f"walk{n}" for n in range(4)), 6.25)
    assert "6.25 rows per second by its duration, not the 25" in " ".join(gathered.notes)


def test_unnamed_keypoints_are_known_by_their_values(walks):
    random = np.random.default_rng(0)
    points = random.uniform(100, 400, (6, 400, 4, 2))
    shares = random.uniform(0, 1, (6, 400, 4, 1))
    poses = np.concatenate([points, shares], axis=3).reshape(6, 400, 12).astype(np.float32)
    np.savez("poses.npz", **{f"walk{n}": pose for n, pose in enumerate(poses)})
    gathered = gather(Path("poses.npz"), Path("annotations.csv"), Path("data"), GatherOptions(fps=25.0))
    assert gathered.keypoints == "xyc" and "look like keypoints" in " ".join(gathered.notes)


@pytest.mark.slow
def test_videos_and_an_elan_file(tmp_path, monkeypatch, tzoom):
    monkeypatch.chdir(tmp_path)
    bench = VideoBench(clips=4, seconds=8, size=64, fps=10)
    write_zoombench_video(tmp_path / "clips", bench)
    (tmp_path / "clips" / "annotations.json").unlink()
    write_segments(tmp_path / "elan.eaf", video_annotations(bench).truth())
    code, out, err = tzoom("fit", "clips", "elan", "--out", "r", "--members", "2", *FEW)
    assert code == 0, err
    assert "videos become features by motion" in err
    code, out, err = tzoom("localize", "clips/clip_0000.mp4", "--model", "r", "--threshold", "0", "--top", "2")
    assert code == 0 and "clip_0000: 2 segments" in out, err
    # Features that were extracted before will do too, and the model then takes videos as well.
    assert tzoom("extract", "clips", "--out", "features")[0] == 0
    code, out, err = tzoom("fit", "features", "elan", "--out", "f", "--members", "1", *FEW)
    assert code == 0 and "as tzoom extract made them" in err, err
    code, out, err = tzoom("localize", "clips/clip_0001.mp4", "--model", "f", "--threshold", "0", "--top", "2")
    assert code == 0 and "clip_0001: 2 segments" in out, err


@pytest.mark.slow
@pytest.mark.skipif(not GESTURES.is_dir(), reason="the gesture phase recordings are not here")
def test_real_tables_with_a_label_per_row(tmp_path, monkeypatch, tzoom):
    """Irregular milliseconds, gaps of seconds, three people, a class with a single instance."""
    monkeypatch.chdir(tmp_path)
    code, out, err = tzoom(
        "fit", str(GESTURES), "--out", "r", "--members", "2", "--background", "Rest", "--subject", "^[abc]", *FEW
    )
    assert code == 0, err
    assert "7 recordings of 3 subjects" in err and "in ms" in err and "18 pose" in err
    code, out, err = tzoom("localize", str(GESTURES / "a1_raw.csv"), "--model", "r", "--threshold", "0", "--top", "2")
    assert code == 0 and "a1_raw: 2 segments" in out, err
