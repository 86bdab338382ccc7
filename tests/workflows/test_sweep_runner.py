"""The runner of sweeps alone, with real processes that need no torch: how many, which, and what becomes of them."""

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from temporalzoom.config import first_difference, load_config
from temporalzoom.errors import InputError
from temporalzoom.workflows import evaluate, sweep
from temporalzoom.workflows.sweep import Member, SweepInterrupted, last_step, run_sweep
from temporalzoom.workflows.sweep_member import training_seconds

REPOSITORY = Path(__file__).resolve().parents[2]
QUIET = Console(quiet=True)


def tiny(*overrides):
    return load_config(None, ["training.steps=9", *overrides])


def wait_until(condition, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def use_child(monkeypatch, code: str) -> None:
    prelude = "import json, os, pathlib, sys, time; folder = pathlib.Path(sys.argv[1])\n"
    finish = """
def finish():
    settings = json.loads((folder / "member.json").read_text())
    result = {"average": 0.5, "thresholds": settings["thresholds"], "omp": os.environ["OMP_NUM_THREADS"]}
    (folder / "result.json").write_text(json.dumps(result))
"""
    monkeypatch.setattr(sweep, "CHILD", (sys.executable, "-c", prelude + finish + code))


def members(count: int) -> list[Member]:
    return [Member(f"m/{index}", tiny(f"seed={index}")) for index in range(count)]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_as_many_run_at_a_time_as_there_are_workers(tmp_path, monkeypatch, workers):
    # A child ends when all workers were busy at once, as they never are if fewer run; it tells if more do.
    code = f"""
started = folder.parent.parent / "started"
started.mkdir(exist_ok=True)
(started / folder.name).touch()
while len(list(started.iterdir())) < {workers}: time.sleep(0.01)
running = [f for f in started.iterdir() if not (folder.parent / f.name / "result.json").exists()]
assert len(running) <= {workers}, running
finish()
"""
    use_child(monkeypatch, code)
    result = run_sweep(members(5), tmp_path, workers=workers, threads=3, console=QUIET)
    assert list(result.done) == [f"m/{index}" for index in range(5)] and not result.failed
    assert {scores["omp"] for scores in result.done.values()} == {"3"}


@pytest.mark.parametrize(("cores", "threads", "expected"), [(2, 1, 2), (8, 3, 2), (2, 4, 1)])
def test_by_default_the_cores_are_filled_and_not_overfilled(tmp_path, monkeypatch, cores, threads, expected):
    monkeypatch.setattr(sweep, "usable_cores", lambda: cores)
    use_child(monkeypatch, f"assert {threads} == int(os.environ['OMP_NUM_THREADS'])\nfinish()")
    seen = []
    original = sweep._Run.start
    alive: list[sweep._Run] = []

    def start(run):
        original(run)
        alive.append(run)
        seen.append(sum(other.process.returncode is None for other in alive))

    monkeypatch.setattr(sweep._Run, "start", start)
    assert len(run_sweep(members(4), tmp_path, threads=threads, console=QUIET).done) == 4
    assert max(seen) == expected


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('so far'); sys.exit(3)", "exit code 3: so far"),
        ("raise KeyError('x')", "exit code 1: KeyError: 'x'"),
        ("print('last', flush=True); print(); sys.stdout.flush(); os.kill(os.getpid(), 9)", "killed by signal 9"),
        ("os.kill(os.getpid(), 15)", "killed by signal 15 (Terminated)"),
        ("pass", "ended without result.json"),
    ],
)
def test_why_a_member_failed_is_told(tmp_path, monkeypatch, code, reason):
    use_child(monkeypatch, f"if folder.name == '1':\n    {code}\nelse:\n    finish()")
    result = run_sweep(members(3), tmp_path, workers=1, console=QUIET)
    assert list(result.done) == ["m/0", "m/2"] and list(result.failed) == ["m/1"]
    assert result.failed["m/1"].startswith(reason)
    use_child(monkeypatch, "assert folder.name == '1'; finish()")  # the others are not run again
    again = run_sweep(members(3), tmp_path, workers=1, console=QUIET)
    assert list(again.done) == ["m/0", "m/1", "m/2"] and not again.failed


def test_a_member_that_another_sweep_trains_is_waited_for_and_that_is_said(tmp_path, monkeypatch):
    code = """
from temporalzoom.locks import alone_in
with alone_in(folder, wait=True):
    (folder / "inside").touch()
    while not (folder.parent / "go").exists(): time.sleep(0.01)
    finish()
"""
    use_child(monkeypatch, code)
    said, results = [io.StringIO(), io.StringIO()], []
    sweeps = [
        threading.Thread(
            target=lambda out=out: results.append(run_sweep(members(1), tmp_path, console=Console(file=out)))
        )
        for out in said
    ]
    sweeps[0].start()
    wait_until((tmp_path / "m" / "0" / "inside").exists)
    sweeps[1].start()
    wait_until(lambda: "waits" in said[1].getvalue())
    (tmp_path / "m" / "go").touch()
    for each in sweeps:
        each.join()
    assert [list(result.done) for result in results] == [["m/0"], ["m/0"]]
    assert re.search(r"m/0: waits, another process \(\d+\) is training it", said[1].getvalue())
    assert "waits" not in said[0].getvalue()


def test_a_folder_that_cannot_be_made_fails_its_member_only(tmp_path, monkeypatch):
    use_child(monkeypatch, "finish()")
    (tmp_path / "file").write_text("")
    result = run_sweep([Member("file/x", tiny()), *members(1)], tmp_path, console=QUIET)
    assert list(result.done) == ["m/0"] and "cannot be written" in result.failed["file/x"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on_once_and_handlers_put_back(tmp_path, monkeypatch, number):
    use_child(
        monkeypatch,
        "try:\n    (folder / 'ready').touch(); time.sleep(100)\nexcept KeyboardInterrupt:\n    time.sleep(0.3)\n"
        "    print('saved'); sys.exit(130)",
    )
    ready = [tmp_path / "m" / str(index) / "ready" for index in range(2)]

    def interrupt():
        wait_until(lambda: all(path.exists() for path in ready))
        os.kill(os.getpid(), number)

    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(SweepInterrupted, match="0 of 3 members done"):
        run_sweep(members(3), tmp_path, workers=2, console=QUIET)
    thread.join()
    assert [(tmp_path / "m" / str(i) / "log.txt").read_text() for i in range(2)] == ["saved\n"] * 2
    assert not (tmp_path / "m" / "2").exists()
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_second_signal_does_not_wait(tmp_path, monkeypatch):
    stubborn = "import signal; signal.signal(2, lambda *_: (folder / 'told').touch())\n(folder / 'ready').touch()\n"
    use_child(monkeypatch, stubborn + "(folder / 'pid').write_text(str(os.getpid()))\nwhile True: time.sleep(1)")
    folder = tmp_path / "m" / "0"

    def interrupt():
        for file in ("pid", "told"):
            wait_until((folder / file).exists)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_sweep(members(1), tmp_path, console=QUIET)
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)


def test_a_terminal_sees_bars(tmp_path, monkeypatch):
    code = """
(folder / "metrics.jsonl").write_text('{"step": 4}\\n{"st')
(sys.exit(1) if folder.name == '1' else time.sleep(1) or finish())
"""
    use_child(monkeypatch, code)
    monkeypatch.setattr(sweep, "DISPLAY_SECONDS", 0)
    with open(tmp_path / "screen", "w") as screen:
        console = Console(file=screen, force_terminal=True, width=100, legacy_windows=False)
        run_sweep(members(2), tmp_path, workers=1, console=console)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", (tmp_path / "screen").read_text())
    assert re.search(r"m/0 +\S* *4/9", text) and re.search(r"members +\S* *2/2 +1 failed", text)
    assert "m/1: failed, exit code 1" in text


def test_a_relative_data_path_means_the_same_file_to_the_child(tmp_path, monkeypatch):
    use_child(monkeypatch, "finish()")
    monkeypatch.chdir(tmp_path)
    config = tiny()
    config = config.model_copy(update={"data": config.data.model_copy(update={"features": Path("f")})})
    run_sweep([Member("x", config)], "out", console=QUIET)
    assert load_config(tmp_path / "out" / "x" / "config.yaml").data.features == tmp_path / "f"
    use_child(monkeypatch, "1 / 0")
    assert run_sweep([Member("x", config)], "out", console=QUIET).done  # and is recognized


@pytest.mark.parametrize("names", [["a", "a"], [""], ["/a"], ["a/../../b"]])
def test_bad_names(tmp_path, names):
    with pytest.raises(InputError, match="member"):
        run_sweep([Member(name, tiny()) for name in names], tmp_path, console=QUIET)


@pytest.mark.parametrize("options", [{"workers": 0}, {"threads": 0}])
def test_bad_counts(tmp_path, options):
    with pytest.raises(InputError, match="at least 1"):
        run_sweep([], tmp_path, **options)


def test_the_first_difference():
    assert first_difference(tiny(), tiny()) is None
    assert first_difference(tiny(), tiny("seed=2", "bdr.radius=null")) == ("seed", 0, 2)
    assert first_difference(tiny(), tiny("data.stride=2")) == ("data.stride", None, 2.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ('{"step": 1}', 0),  # not yet a whole line
        ('{"step": 1}\n', 1),
        ('{"step": 1}\n{"step": 2, "lo', 1),
        ('{"step": 7, "x": 1}\n' * 1000 + '{"step": 8}\n', 8),
        ("nonsense\n", 0),
    ],
)
def test_the_last_step(tmp_path, text, expected):
    assert last_step(tmp_path / "metrics.jsonl") == 0
    (tmp_path / "metrics.jsonl").write_text(text)
    assert last_step(tmp_path / "metrics.jsonl") == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [([], 0), ([0.5], 0.5), ([1, 2, 4], 4), ([1, 2, 0.5, 3, 1], 2 + 3 + 1), ([2, 2], 2)]
)
def test_training_seconds_are_summed_over_resumed_stretches(seconds, expected):
    assert training_seconds([{"step": i, "seconds": s} for i, s in enumerate(seconds)]) == expected


def test_failures_are_listed_and_the_exit_code_is_one(tmp_path, tzoom, monkeypatch):
    use_child(monkeypatch, "print('the [last] line'); sys.exit(3)")
    (tmp_path / "base.yaml").write_text("seed: 0")
    (tmp_path / "sweep.yaml").write_text("base: {b: base.yaml}\nsystems: {s: []}\nseeds: [0, 7]\n")
    code, out, _ = tzoom("sweep", tmp_path / "sweep.yaml", "--out", tmp_path / "out")
    assert code == 1 and "b/s/seed-0" in out and "b/s/seed-7" in out and out.count("exit code 3: the [last] line") == 2


def test_the_runner_leaves_memory_to_its_members():
    code = "import sys, temporalzoom.workflows.sweep_file; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_default_thresholds_are_those_of_every_evaluation():
    assert sweep.THRESHOLDS == evaluate.DEFAULT_THRESHOLDS


def test_the_script_on_the_page(tmp_path, capsys, monkeypatch):
    use_child(monkeypatch, "finish()")
    monkeypatch.chdir(tmp_path)
    page = (REPOSITORY / "docs" / "sweeps.md").read_text()
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], {})
    assert capsys.readouterr().out == "{'width-32': 0.5, 'width-64': 0.5} {}\n"
    assert load_config(tmp_path / "runs" / "widths" / "width-32" / "config.yaml").model.width == 32
