"""`tzoom distill`: a student that keeps most of its teacher, and a table that says what that costs."""

import json

import pytest

from temporalzoom.config import load_config
from temporalzoom.runs.checkpoint import find_checkpoint, list_checkpoints, read_info
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.training.progress import TrainingProgress

SMALL = """zoombench data.sequences=6 data.test_sequences=2 data.length=96 model.width=16 model.heads=2 model.levels=2
training.batch_size=2 training.length=64 training.steps=4 training.warmup_steps=1 training.log_every=1
inference.min_score=1e-6""".split()


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    from temporalzoom import train

    run = tmp_path_factory.mktemp("teacher") / "run"
    train(load_config(SMALL[0], SMALL[1:]), run)
    return run


def test_a_student_beside_its_teacher_and_a_baseline(teacher, tmp_path, tzoom):
    code, out, err = tzoom("distill", teacher, "--out", tmp_path / "student", "--compare", "--repeats", "1", "--json")
    assert code == 0, err
    rows = json.loads(out)
    assert rows == json.loads((tmp_path / "student" / "distillation.json").read_text())
    assert {name: row["model"] for name, row in rows.items()} == {
        "teacher": "tzn", "student": "tzn", "uniform-6": "uniform-6",
    }  # fmt: skip
    for row in rows.values():
        assert row["training"]["step_flops"] > 0 and row["training"]["step_peak_bytes"] > 0
        assert row["training"]["flops"] == 4 * row["training"]["step_flops"] and row["training"]["seconds"] > 0
        assert row["inference"]["flops"] > 0 and row["inference"]["seconds"] > 0
        if rows["teacher"]["mAP"]:
            assert row["retention"] == pytest.approx(row["mAP"] / rows["teacher"]["mAP"])
    config = read_info(find_checkpoint(tmp_path / "student")).config
    assert config.model.paper.allocation == "taught-exit" and config.model.paper.depths == (2, 4, 6)
    terms = read_metrics(tmp_path / "student" / "metrics.jsonl")[-1]
    assert terms["policy"] > 0 and terms["prediction"] > 0
    code, out, err = tzoom("eval", "--model", tmp_path / "student")  # an ordinary run
    assert code == 0 and "mAP" in out, err


def test_a_student_goes_on_with_its_own_teacher_only(teacher, tmp_path, tzoom, monkeypatch):
    command = ("distill", teacher, "--repeats", "1", "--baseline", teacher)
    code, out, _ = tzoom(*command, "--out", tmp_path / "whole")
    assert code == 0 and "retention" in out and "baseline" in out

    original = TrainingProgress.update

    def interrupt(self, step, terms):
        original(self, step, terms)
        if step == 2:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(TrainingProgress, "update", interrupt)
    code, _, err = tzoom(*command, "--out", tmp_path / "stopped")
    assert code == 130 and "stopped at step 2" in err and "go on with: tzoom distill" in err
    monkeypatch.setattr(TrainingProgress, "update", original)

    code, _, err = tzoom("distill", tmp_path / "whole", "--out", tmp_path / "stopped", "--resume")
    assert code == 2 and "a teacher must be a tzn" in err
    code, _, err = tzoom("train", tmp_path / "stopped" / "config.yaml", "--out", tmp_path / "stopped", "--resume")
    assert code == 2 and "use tzoom distill" in err
    other = tmp_path / "stopped" / "teacher.json"
    kept = other.read_text()
    other.write_text(json.dumps(json.loads(kept) | {"weights": "others"}))
    code, _, err = tzoom(*command, "--out", tmp_path / "stopped", "--resume")
    assert code == 2 and "cannot resume with another teacher" in err
    other.write_text(kept)
    assert tzoom(*command, "--out", tmp_path / "stopped", "--resume")[0] == 0
    one, two = (list_checkpoints(tmp_path / name)[-1] / "weights.safetensors" for name in ("whole", "stopped"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such run"),
        (["RUN", "--baseline", "RUN", "--compare"], "give either --baseline"),
        (["RUN", "--baseline", "nowhere"], "nowhere: no such run"),
        (["RUN", "--resume"], "goes on with what tzoom distill began"),
        (["RUN", "model.deep_layers=3"], "model.deep_layers: has no effect here"),
        (["RUN", "model.paper.depths=[0,2]"], "an exit comes after at least one layer"),
    ],
)
def test_what_is_refused(arguments, message, teacher, tmp_path, tzoom):
    given = [str(teacher) if word == "RUN" else word for word in arguments]
    code, out, err = tzoom("distill", *given, "--out", tmp_path / "student")
    assert (code, out) == (2, "") and message in err
    assert len(err.splitlines()) == 1 and not list_checkpoints(tmp_path / "student")
