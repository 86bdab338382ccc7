"""`tzoom fit --student`: one network from all members, in a run of its own; members stay as they are."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import temporalzoom
from members_here import run_members_here
from small_walks import write_walks
from temporalzoom.formats import read_predictions
from temporalzoom.inference.localizer import Localizer
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.workflows.gather import GatherOptions

FEW = (
    "training.steps=4", "training.length=64", "training.batch_size=2", "model.width=16", "training.warmup_steps=1",
    "inference.min_score=1e-6", "inference.certainty=0",
)  # fmt: skip
COMMAND = ("fit", "signals", "annotations.csv", "--out", "r", "--members", "2", *(f"--set={word}" for word in FEW))


@pytest.fixture
def walks(tmp_path, monkeypatch):
    write_walks(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stamps(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_finished_run_gets_a_student(walks, monkeypatch, tzoom):
    run_members_here(monkeypatch)
    command = (*COMMAND, "--test", "walk5")
    code, out, err = tzoom(*command)
    assert code == 0 and "student" not in out + err, err
    members, described = stamps(Path("r/members")), Path("r/members.json").read_bytes()
    code, out, err = tzoom(*command, "--student")
    assert code == 0, err
    assert "2 of 2 members are done already" in err and "tzoom localize RECORDING --model r/student" in out
    assert stamps(Path("r/members")) == members and Path("r/members.json").read_bytes() == described

    student = Localizer.load("r/student")
    first, config = Localizer.load("r").members[0], student.description.config
    assert not student.members and student.description.step == 4
    assert config.model == first.description.config.model and config.training == first.description.config.training
    # Nothing is held out from it but the test; its thresholds are those of single members.
    assert config.data.train_subset == "train" and config.data.test_subset == "test"
    fused = json.loads(described)["thresholds"]
    shown = {label: student.options.threshold[label] for label in fused}
    assert shown == pytest.approx({label: score / 0.9 for label, score in fused.items()})
    # It was taught: all learned recordings, every annotated instance, scores of both.
    soft = read_predictions(config.data.soft_labels)
    assert set(soft) == {f"walk{n}" for n in range(5)} and all(len(segments) >= 4 for segments in soft.values())
    assert all(((s.scores > 0) & (s.scores <= 1)).all() for s in soft.values())
    assert any((s.scores[:4] < 1).any() for s in soft.values())

    # An ordinary run.
    code, out, err = tzoom("localize", "signals/walk1.csv", "--model", "r/student", "--threshold", "0", "--top", "3")
    assert code == 0 and "walk1: 3 segments" in out, err
    code, _, err = tzoom("eval", "--model", "r/student", "--out", "found.json", "--json")
    assert code == 0 and set(read_predictions("found.json")) == {"walk5"} and "trained on" not in err, err
    code, out, err = tzoom("cost", "--model", "r/student", "--repeats", "1", "--json")
    alone = json.loads(out)["system"]["parameters"]
    assert code == 0 and alone == sum(p.numel() for p in student.model.parameters()), err
    code, out, err = tzoom("cost", "--model", "r", "--repeats", "1")
    assert code == 0 and "2 fused" in out and "student" not in out, err
    code, out, err = tzoom("export", "--model", "r/student", "--out", "student.onnx")
    assert code == 0, err
    exported = Localizer.load("student.onnx")
    assert exported.options.threshold == student.options.threshold
    signal_of_one = "signals/walk0.csv"
    np.testing.assert_allclose(
        exported(signal_of_one, top=5).scores, student(signal_of_one, top=5).scores, rtol=1e-3, atol=1e-5
    )

    # Once more: nothing to do. With another teacher: not silently.
    before = stamps(Path("r/student"))
    options = GatherOptions(test=("walk5",))
    again = temporalzoom.fit(
        "signals", "annotations.csv", "r", options=options, members=2, overrides=list(FEW), student=True
    )
    assert again.student == Path("r/student") and stamps(Path("r/student")) == before
    judged = Path("r/members/all-0/predictions.json")
    judged.write_text(judged.read_text() + "\n")
    code, _, err = tzoom(*command, "--student")
    assert code == 2 and "another configuration: data.soft_labels was" in err and len(err.strip().split("error:")) == 2


def test_without_a_test_its_score_says_what_it_is(walks, monkeypatch, tzoom):
    run_members_here(monkeypatch)
    code, _, err = tzoom(*COMMAND, "--members", "1", "--student", "--set", "inference.threshold={wave: 0.3}")
    assert code == 0 and "then its student (tzn)" in err, err
    code, out, err = tzoom("eval", "--model", "r/student", "--json")
    assert (
        code == 0 and "scored on the recordings that it was trained on" in err and 0 <= json.loads(out)["average"] <= 1
    )
    shown = read_info(find_checkpoint(Path("r/student"))).inference.threshold
    assert shown["wave"] == 0.3 and shown["nod"] != 0.2  # what was given holds, the rest is found


def test_a_dry_run_speaks_of_it(walks, tzoom):
    code, out, err = tzoom(*COMMAND, "--student", "--dry-run")
    assert code == 0 and "# student: as member 0" in out, err
    assert not Path("r/members").exists()


@pytest.mark.slow
def test_a_stopped_student_goes_on(walks):
    """Ctrl-C in a real process while the student trains: it ends where it would have ended."""
    steps = "--set=training.steps=150"
    whole = [sys.executable, "-m", "temporalzoom", *COMMAND, "--members", "1", steps, "--student"]
    process = subprocess.Popen(whole, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    begun, deadline = Path("r/student/metrics.jsonl"), time.monotonic() + 300
    while not (begun.is_file() and begun.stat().st_size) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "Traceback" not in err and "go on with: tzoom fit signals" in err, err
    stopped = find_checkpoint(Path("r/student"))
    assert 0 < read_info(stopped).step < 150
    members = stamps(Path("r/members"))
    again = subprocess.run(whole, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0 and "--model r/student" in again.stdout, again.stderr
    assert read_info(find_checkpoint(Path("r/student"))).step == 150
    assert stamps(Path("r/members")) == members
