"""Several processes that train together: the weights of one process, and an orderly end whatever happens to one."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file
from together import CASES, run_case, start

from temporalzoom.runs.checkpoint import list_checkpoints
from temporalzoom.training.metrics_log import read_metrics

pytestmark = pytest.mark.slow
SMALL = """zoombench --device cpu data.sequences=6 data.test_sequences=2 data.length=80 model.width=16 model.heads=2
training.batch_size=3 training.length=50 training.warmup_steps=2 training.log_every=1 training.accumulate=2""".split()


def difference(first: Path, second: Path, which: str = "weights") -> float:
    """The largest of all weights and buffers of the last checkpoints. Without the biases of keys: attention does not
    depend on them, their gradients are nothing but rounding, which the optimizer blows up."""
    one, two = (load_file(list_checkpoints(run)[-1] / f"{which}.safetensors") for run in (first, second))
    assert one.keys() == two.keys()
    apart = {name: (one[name].double() - two[name].double()).abs() for name in one if one[name].numel()}
    for name, values in apart.items():
        if name.endswith("query_key_value.bias"):
            values.view(3, -1)[1] = 0
        elif name.endswith("key_value.bias"):
            values.view(2, -1)[0] = 0
    return max(float(values.max()) for values in apart.values())


def train_command(count: int, *arguments: object) -> list[str]:
    own = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    return [*own, "-m", "temporalzoom", "train", *map(str, arguments)]


def said(err: str) -> list[str]:
    """What the program itself said: without progress, and without torchrun's own report."""
    return [line for line in err.splitlines() if re.match(r"error:|stopped|go on with", line)]


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Every case in two processes, and in one."""
    out = tmp_path_factory.mktemp("together")
    workers = start(*[[str(Path(__file__).with_name("together.py")), str(out / "two")]] * 2)
    for case in CASES:
        run_case(case, out / "one")
    for worker in workers:
        output, err = worker.communicate(timeout=240)
        assert worker.returncode == 0, err
        assert output == ""
    return out


@pytest.mark.parametrize("case", CASES)
def test_two_processes_give_the_weights_of_one(together, case):
    """In half precision gradients are rounded to three digits, in another order each: only the losses are near."""
    one, two = together / "one" / case, together / "two" / case
    lines = zip(*(read_metrics(run / "metrics.jsonl") for run in (one, two)), strict=True)
    for before, after in lines:
        assert before["loss"] == pytest.approx(after["loss"], rel=1e-2 if case == "half" else 1e-4)
    if case != "half":
        assert difference(one, two) < 1e-5 and difference(one, two, "average") < 1e-5


def wait_for_step(run: Path, step: int, process: subprocess.Popen[str]) -> None:
    while not any(line["step"] >= step for line in read_metrics(run / "metrics.jsonl")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def test_a_run_that_is_stopped_and_loses_a_process_goes_on_with_any_number(tmp_path, tzoom):
    """Two processes until a termination, two until one is killed, one until the end: the weights of one process that
    nothing happened to."""
    settings = [*SMALL, "training.steps=60", "training.checkpoint_every=2"]
    assert tzoom("train", *settings, "--out", tmp_path / "one")[0] == 0
    run = tmp_path / "run"
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    process = subprocess.Popen(train_command(2, *settings, "--out", run), **piped)
    wait_for_step(run, 3, process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=240)
    assert process.returncode != 0 and out == ""
    stopped, again = said(err)
    step = int(re.match(r"stopped at step (\d+); saved ", stopped)[1])
    assert 3 <= step < 60 and list_checkpoints(run)[-1].name == f"step-{step:07d}"
    assert again.startswith("go on with: torchrun --nproc-per-node 2 -m temporalzoom train zoombench")

    process = subprocess.Popen(train_command(2, *settings, "--out", run, "--resume"), **piped)
    wait_for_step(run, step + 2, process)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ranks = {_rank(int(number)): int(number) for number in workers}
    os.kill(ranks["1"], signal.SIGKILL)
    out, err = process.communicate(timeout=240)
    assert process.returncode != 0 and out == ""
    (line,) = said(err)
    assert line.startswith("error: one of the 2 processes of this training has ended") and "--resume" in line
    assert not (run / "lock").exists()

    assert tzoom("train", *settings, "--out", run, "--resume")[0] == 0
    assert difference(tmp_path / "one", run) < 1e-5


def _rank(process: int) -> str:
    environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    return next((entry[5:].decode() for entry in environment if entry.startswith(b"RANK=")), "")


def ended(*arguments: list[str]) -> list[tuple[int, str]]:
    workers = start(*[["-m", "temporalzoom", *own] for own in arguments])
    errors = [worker.communicate(timeout=240)[1] for worker in workers]
    return [(worker.returncode, err) for worker, err in zip(workers, errors, strict=True)]


def test_what_is_wrong_is_said_once(tmp_path):
    """In two processes, while the third waits for them."""
    fine = ["train", *SMALL, "--out", str(tmp_path / "run")]
    all_three = ended(fine, *[["train", "missing.yaml", "--device", "cpu"]] * 2)
    assert {code for code, _ in all_three} == {2}
    (message,) = [line for _, err in all_three for line in err.splitlines()]
    assert message.startswith("error: missing.yaml")
    assert not (tmp_path / "run").exists()
