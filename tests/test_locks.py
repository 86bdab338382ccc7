"""One process at work in a folder, with the locks of the system and without."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temporalzoom import locks
from temporalzoom.errors import InputError
from temporalzoom.locks import FILE, alone_in

SOURCE = str(Path(locks.__file__).parents[1])
HOLD = """
import sys, time
for name in sys.argv[2:]: sys.modules[name] = None
from pathlib import Path
from temporalzoom.locks import alone_in
with alone_in(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(60)
"""
SYSTEMS = pytest.mark.parametrize("blocked", [(), ("fcntl", "msvcrt")], ids=["system", "file"])


def start(program: str, *arguments: object) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": SOURCE}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@SYSTEMS
def test_a_second_process_is_refused_and_a_killed_one_frees_the_folder(tmp_path, blocked, monkeypatch):
    for name in blocked:
        monkeypatch.setattr(locks, name, None)
    folder = tmp_path / "run"
    other = start(HOLD, folder, *blocked)
    try:
        assert other.stdout.readline() == "in\n"
        with (
            pytest.raises(InputError, match=rf"^{folder}: another process \({other.pid}\) writes there"),
            alone_in(folder),
        ):
            pass
    finally:
        other.kill()
        other.wait()
    with alone_in(folder):
        assert (folder / FILE).read_text() == f"{os.getpid()}\n"
        (folder / "kept").touch()
    assert [file.name for file in folder.iterdir()] == ["kept"]


@SYSTEMS
def test_nothing_stays_of_a_folder_in_which_nothing_was_written(tmp_path, blocked, monkeypatch):
    for name in blocked:
        monkeypatch.setattr(locks, name, None)
    with alone_in(tmp_path / "a" / "b"):
        pass
    assert not (tmp_path / "a" / "b").exists()


TRAIN = """
import sys
sys.modules["fcntl"] = None
import signal
for name in ("SIGALRM", "SIGKILL", "SIGHUP"):
    if hasattr(signal, name): delattr(signal, name)
import os
for name in ("killpg", "setsid", "fork"):
    if hasattr(os, name): delattr(os, name)
import torch
torch.set_num_threads(1)
from temporalzoom.cli import main
main()
"""


def test_commands_work_where_fcntl_and_signals_are_missing(tmp_path):
    """As on Windows."""

    def run(*arguments: object) -> str:
        process = start(TRAIN, *arguments)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return out

    assert "localize" in run("--help")
    sizes = ("sequences=3", "test_sequences=2", "length=64", "dimension=8")
    run("data", "make-zoombench", "--out", tmp_path / "bench", *sizes)
    tiny = ("training.steps=2", "model.width=16", "model.heads=2", "model.name=uniform-1", "training.batch_size=2")
    run("train", tmp_path / "bench" / "config.yaml", *tiny, "--out", tmp_path / "run")
    feature = next((tmp_path / "bench").rglob("*.npy"))
    assert feature.stem in run("localize", feature, "--model", tmp_path / "run", "--threshold", 0)
    import temporalzoom.workflows.sweep_member  # imports nothing that is missing there either

    assert "import fcntl" not in Path(temporalzoom.workflows.sweep_member.__file__).read_text()


def test_two_trainings_into_one_folder(tmp_path, tiny_overrides):
    """The second is refused in one line; the first goes on."""
    program = "import torch; torch.set_num_threads(1)\nfrom temporalzoom.cli import main; main()"
    common = ("train", "zoombench", *tiny_overrides, "training.steps=4000", "--out", tmp_path / "run")
    first = start(program, *common)
    try:
        for _ in range(600):
            if (tmp_path / "run" / "metrics.jsonl").exists():
                break
            time.sleep(0.1)
        second = start(program, *common)
        _, err = second.communicate(timeout=120)
        assert second.returncode == 2 and "another process" in err and "Traceback" not in err
        assert first.poll() is None
    finally:
        first.terminate()
        _, err = first.communicate(timeout=60)
    assert first.returncode == 143 and "Traceback" not in err
