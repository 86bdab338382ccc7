"""Sweeps with real processes: the same results as training by hand, through crashes, kills and interruptions."""

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from temporalzoom.config import changed, dump_config, load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.formats import read_predictions
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics.cost import count_parameters, count_run
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.training import train
from temporalzoom.workflows import evaluate, sweep
from temporalzoom.workflows.sweep import Member, last_step, run_sweep

REPOSITORY = Path(__file__).resolve().parents[2]
QUIET = Console(quiet=True)
TINY = """
data.source=zoombench data.sequences=4 data.test_sequences=2 data.length=80
model.name=uniform-1 model.width=16 model.heads=2 model.levels=2 inference.certainty=0
training.steps=9 training.batch_size=2 training.length=50 training.warmup_steps=2 training.learning_rate=0.003
training.log_every=1
""".split()
PAGE = (REPOSITORY / "docs" / "sweeps.md").read_text()


def block(language: str) -> str:
    """The first block of the page in that language."""
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.S)[1]


def tiny(*overrides):
    return changed(load_config(None, TINY), overrides)


def write_sweep(folder: Path, text: str, *overrides: str) -> Path:
    """A sweep file, and the configuration that it is based on."""
    (folder / "configs").mkdir(exist_ok=True)
    (folder / "configs" / "tiny.yaml").write_text(dump_config(tiny(*overrides)))
    (folder / "sweep.yaml").write_text(text)
    return folder / "sweep.yaml"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from temporalzoom.cli import main; main()", *map(str, arguments)]


def by_hand(config, folder: Path, thresholds=sweep.THRESHOLDS):
    """Train and evaluate in this process. Returns the run's localizer, its test subset and the evaluation."""
    data = load_data(config.data, config.seed)
    train(config, data.train, folder, console=QUIET)
    localizer = Localizer.load(folder)
    return localizer, data.test, evaluate.evaluate_split(localizer, data.test, thresholds, QUIET)


def without_times(scores):
    return {key: value for key, value in scores.items() if not key.endswith("_seconds")}


def assert_same_as_by_hand(member: Path, config, folder: Path, thresholds=sweep.THRESHOLDS) -> None:
    localizer, test, expected = by_hand(config, folder, thresholds)
    result = json.loads((member / "result.json").read_text())
    scores = without_times(expected.summary())
    assert {key: result[key] for key in scores} == scores
    predictions = read_predictions(member / "predictions.json")
    assert {name: list(found) for name, found in predictions.items()} == {
        name: list(found) for name, found in expected.predictions.items() if len(found)
    }
    for file in ("weights.safetensors", "average.safetensors"):
        assert (find_checkpoint(member) / file).read_bytes() == (find_checkpoint(folder) / file).read_bytes()
    flops = [count_run(localizer.model, lambda s=s: localizer.outputs(s.features)).total for s in test.samples]
    assert result["flops"] == sum(flops) == sum(result["flops_by_part"].values()) > 0
    assert result["parameters"] == count_parameters(localizer.model)
    assert result["steps"] == config.training.steps and result["training_seconds"] > 0


def wait_until(condition, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


# The whole: four trainings


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The page's own sweep, with two of its systems and seeds, on a tiny benchmark; and what its command printed."""
    folder = tmp_path_factory.mktemp("sweep")
    tree = yaml.safe_load(block("yaml"))
    assert len(tree["base"]) * len(tree["systems"]) * len(tree["seeds"]) == 9  # as the page says
    tree["seeds"].pop()
    tree["systems"].pop("uniform-6+bdr")
    tree["base"] = {"zoombench": "configs/tiny.yaml"}
    write_sweep(folder, yaml.safe_dump(tree))
    line = shlex.split(block("sh").splitlines()[0])
    assert line[:3] == ["tzoom", "sweep", "sweep.yaml"] and line[3:] == ["--out", "runs/sweep"]
    ran = subprocess.run(command(*line[1:], "--workers", 2), capture_output=True, text=True, cwd=folder)
    return folder / "runs" / "sweep", tree, ran


@pytest.mark.slow
def test_two_systems_and_two_seeds_give_what_training_by_hand_gives(finished, tmp_path):
    out, tree, ran = finished
    names = [f"zoombench/{system}/seed-{seed}" for system in tree["systems"] for seed in tree["seeds"]]
    assert ran.returncode == 0 and len(names) == 4, ran.stderr
    assert all(name in ran.stdout for name in names) and "failed" not in ran.stderr, ran.stdout
    # Not a terminal: one line per member that ended.
    assert sorted(line.split(":")[0] for line in ran.stderr.splitlines()) == sorted(names)
    errors = set()
    for name in names:
        _, system, seed = name.split("/")
        config = tiny(*tree["systems"][system], f"seed={seed.removeprefix('seed-')}")
        assert_same_as_by_hand(out / name, config, tmp_path / name, tree["thresholds"])
        result = json.loads((out / name / "result.json").read_text())
        assert result["name"] == name and result["threads"] == 1
        assert list(result["mAP"]) == [str(threshold) for threshold in tree["thresholds"]]
        assert set(result["versions"]) == {"temporalzoom", "torch"}
        assert all((out / name / file).is_file() for file in re.findall(r"^\| `(\S+)` \|", PAGE, re.M))
        errors.add(result["boundary_error_frames"])
    assert len(errors) == 4  # no two of them are the same run


@pytest.mark.slow
def test_a_member_is_an_ordinary_run(finished, tzoom, monkeypatch):
    out, _, _ = finished
    monkeypatch.chdir(out.parent.parent)
    lines = block("sh").splitlines()
    assert len(lines) == 2
    code, printed, _ = tzoom(*shlex.split(lines[1])[1:])
    assert code == 0 and "mAP" in printed


@pytest.mark.slow
def test_what_is_done_is_skipped(finished, tzoom):
    out, _, _ = finished
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    code, printed, err = tzoom("sweep", out.parent.parent / "sweep.yaml", "--out", out)
    assert code == 0 and printed.count("zoombench/") == 4 and "4 of 4 members are done already" in err
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


@pytest.mark.slow
def test_another_configuration_in_the_same_folder_is_refused(finished, tzoom):
    out, tree, _ = finished
    sweep_file = out.parent.parent / "sweep.yaml"
    changed = tree | {"systems": {"tzn": [*tree["systems"]["tzn"], "training.learning_rate=0.5"]}}
    sweep_file.with_name("changed.yaml").write_text(yaml.safe_dump(changed))
    code, _, err = tzoom("sweep", sweep_file.with_name("changed.yaml"), "--out", out)
    assert code == 2 and "tzn/seed-0: was made with" in err and "training.learning_rate was 0.003, now 0.5" in err
    code, _, err = tzoom("sweep", sweep_file, "--out", out, "--threads", 2)
    assert code == 2 and "threads was 1, now 2" in err


@pytest.mark.slow
def test_other_thresholds_need_no_training(finished, tmp_path):
    out, tree, _ = finished
    shutil.copytree(out / "zoombench" / "uniform-6" / "seed-0", tmp_path / "member")
    lines = (tmp_path / "member" / "metrics.jsonl").read_bytes()
    before = json.loads((tmp_path / "member" / "result.json").read_text())
    member = Member("member", tiny(*tree["systems"]["uniform-6"]))
    result = run_sweep([member], tmp_path, thresholds=[0.3, 0.35], console=QUIET).done["member"]
    assert set(result["mAP"]) == {"0.3", "0.35"} and result["mAP"]["0.3"] == before["mAP"]["0.3"]
    assert result["training_seconds"] == before["training_seconds"]
    assert (tmp_path / "member" / "metrics.jsonl").read_bytes() == lines


# Crashes and interruptions


@pytest.mark.slow
def test_a_crash_and_a_kill_leave_the_others_alone(tmp_path):
    """One member has no data, one is killed while it trains: both are told, and the killed one runs again."""
    lost = tiny("data.source=folder", f"data.annotations={tmp_path / 'nowhere.json'}", "data.stride=4")
    good, long = tiny(), tiny("training.steps=40", "training.checkpoint_every=5")
    victim = tmp_path / "out" / "victim"

    def kill():
        wait_until(lambda: last_step(victim / "metrics.jsonl") >= 6)
        os.kill(int((victim / "lock").read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    members = [Member("lost", lost), Member("victim", long), Member("good", good)]
    with open(tmp_path / "printed", "w") as printed:
        result = run_sweep(members, tmp_path / "out", workers=2, console=Console(file=printed))
    killer.join()
    assert list(result.done) == ["good"] and list(result.failed) == ["lost", "victim"]
    assert result.failed["lost"].startswith("exit code 2: error: ") and "nowhere.json" in result.failed["lost"]
    assert result.failed["victim"].startswith("killed by signal 9")
    assert not (victim / "result.json").exists()
    lines = (tmp_path / "printed").read_text().splitlines()
    assert f"lost: failed, {result.failed['lost']}" in lines[0] and len(lines) == 3

    reached = read_info(find_checkpoint(victim)).step
    assert 5 <= reached < 40
    before = (tmp_path / "out" / "good" / "result.json").stat().st_mtime_ns
    again = run_sweep(members[1:], tmp_path / "out", workers=1, console=QUIET)
    assert list(again.done) == ["victim", "good"] and not again.failed
    assert (tmp_path / "out" / "good" / "result.json").stat().st_mtime_ns == before
    assert_same_as_by_hand(victim, long, tmp_path / "by hand")


@pytest.mark.slow
def test_a_stopped_sweep_goes_on_as_if_nothing_had_happened(tmp_path):
    text = "base: {bench: configs/tiny.yaml}\nsystems: {dropout: [model.dropout=0.3]}\nseeds: [3]\n"
    arguments = ("sweep", write_sweep(tmp_path, text, "training.steps=100"), "--out", tmp_path / "out", "--workers", 1)
    folder = tmp_path / "out" / "bench" / "dropout" / "seed-3"
    process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: last_step(folder / "metrics.jsonl") > 0 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    step = read_info(find_checkpoint(folder)).step
    assert 1 <= step < 100 and f"stopped at step {step}" in (folder / "log.txt").read_text()
    assert not (folder / "result.json").exists()
    assert "0 of 1 members done" in errors and "Traceback" not in errors

    again = shlex.split(errors.split("go on with: tzoom ")[1].splitlines()[0])
    assert again == list(map(str, arguments))
    resumed = subprocess.run(command(*again), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_as_by_hand(folder, tiny("training.steps=100", "model.dropout=0.3", "seed=3"), tmp_path / "by hand")


@pytest.mark.slow
def test_members_save_and_end_when_their_runner_is_killed(tmp_path):
    text = "base: {bench: configs/tiny.yaml}\nsystems: {long: []}\nseeds: [0]\n"
    sweep_file = write_sweep(tmp_path, text, "training.steps=1000000")
    folder = tmp_path / "out" / "bench" / "long" / "seed-0"
    process = subprocess.Popen(command("sweep", sweep_file, "--out", tmp_path / "out"), stderr=subprocess.DEVNULL)
    wait_until(lambda: last_step(folder / "metrics.jsonl") > 0 or process.poll() is not None)
    process.kill()
    process.wait()

    def is_free() -> bool:
        with open(folder / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    wait_until(is_free)
    assert f"stopped at step {read_info(find_checkpoint(folder)).step}" in (folder / "log.txt").read_text()
