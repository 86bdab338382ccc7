"""The sweep runner: many trainings, each in a process of its own, that can be stopped, continued, and survive a crash.

    members = [Member(f"zoombench/tzn/seed-{seed}", load_config("configs/zoombench_tzn.yaml", [f"seed={seed}"])) ...]
    result = run_sweep(members, Path("runs/sweep"))
    result.done["zoombench/tzn/seed-0"]["mAP"]["0.5"]

This file does not import torch: what one process does is in `sweep_member`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, dump_config, first_difference, load_config
from temporalzoom.errors import InputError
from temporalzoom.interrupts import interruptible
from temporalzoom.json_tree import null_to_nan, parse_json
from temporalzoom.locks import in_use
from temporalzoom.workflows.sweep_display import SweepDisplay

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)  # as in `evaluation`, which would load torch here
CONFIG, SETTINGS, RESULT, PREDICTIONS, LOG = "config.yaml", "member.json", "result.json", "predictions.json", "log.txt"
CURVE = "validation.json"  # as in `training.validation`, which would load torch here
CHILD = (sys.executable, "-m", "temporalzoom.workflows.sweep_member")
POLL_SECONDS, DISPLAY_SECONDS = 0.1, 0.5


@dataclass(frozen=True)
class Member:
    """One training of a sweep. Its name is also its folder, such as `sbhar/tzn/seed-0`."""

    name: str
    config: Config


@dataclass(frozen=True)
class SweepResult:
    """By name of the member: what its `result.json` holds, or why it failed."""

    done: dict[str, dict[str, Any]]
    failed: dict[str, str]


class SweepInterrupted(Exception):
    """The sweep was stopped by Ctrl-C (or a termination signal) after its members had saved their checkpoints."""

    def __init__(self, done: int, total: int) -> None:
        super().__init__(f"stopped with {done} of {total} members done; those under way have saved a checkpoint")


def run_sweep(
    members: Sequence[Member],
    out: str | Path,
    *,
    workers: int | None = None,
    threads: int = 1,
    thresholds: Sequence[float] = THRESHOLDS,
    validate: bool = False,
    curve: bool = False,
    console: Console | None = None,
) -> SweepResult:
    """Train and evaluate every member in `out/<name>`, `workers` at a time, in their order; what is done is skipped.

    workers: processes at a time, each with `threads` threads; None: as many as fill the cores. The thread count is
    fixed for each member because it decides the order of sums: results repeat bit for bit only with the same count.
    validate: each keeps the state that scores best on its own test recordings, which are validation data then.
    curve: each is scored now and then as it comes along, on recordings that are not its test (`curve.json`).
    A member that fails leaves the others alone, and is run again by the next call.
    """
    _check_names(members)
    if threads < 1 or (workers is not None and workers < 1):
        raise InputError(f"workers and threads must be at least 1, got {workers} and {threads}")
    workers = workers or max(1, usable_cores() // threads)
    members = [Member(member.name, _with_absolute_paths(member.config)) for member in members]
    runs = [
        _Run(member, Path(out) / member.name, threads, tuple(map(float, thresholds)), validate, curve)
        for member in members
    ]
    done = {run.member.name: result for run in runs if (result := run.finished_before()) is not None}
    failed: dict[str, str] = {}
    waiting = deque(run for run in runs if run.member.name not in done)
    running: list[_Run] = []
    announced = False
    shown_at = 0.0
    with interruptible() as stop, SweepDisplay(len(runs), len(done), console) as display:
        try:
            while running or (waiting and not stop.is_set()):
                while waiting and len(running) < workers and not stop.is_set():
                    run = waiting.popleft()
                    name = run.member.name
                    display.started(name, run.member.config.training.steps)
                    if who := in_use(run.folder):
                        display.waits(name, who)
                    try:
                        run.start()
                        running.append(run)
                    except (InputError, OSError) as error:  # a folder that cannot be written, no memory for a process
                        failed[name] = str(error)
                        display.failed(name, failed[name])
                time.sleep(POLL_SECONDS)
                if stop.is_set() and not announced:
                    display.stopping(len(running))
                    for run in running:
                        run.process.send_signal(signal.SIGINT)
                    announced = True
                for run in [run for run in running if run.process.poll() is not None]:
                    running.remove(run)
                    name, reason = run.member.name, run.failure()
                    if reason is None:
                        done[name] = run.result() or {}
                        display.finished(name, done[name])
                    elif announced:  # whatever ended it, the next call goes on from there
                        display.stopped(name)
                    else:
                        failed[name] = reason
                        display.failed(name, reason)
                if time.monotonic() - shown_at >= DISPLAY_SECONDS:
                    shown_at = time.monotonic()
                    for run in running:
                        display.step(run.member.name, last_step(run.folder / "metrics.jsonl"), run.curve())
        finally:  # nothing is left to end here, unless a second Ctrl-C or a fault of ours came
            for run in running:
                run.process.kill()
                run.process.wait()
    if len(done) + len(failed) < len(runs):
        raise SweepInterrupted(len(done), len(runs))
    names = [member.name for member in members]
    return SweepResult({name: done[name] for name in names if name in done}, failed)


class _Run:
    """A member, its folder, and its process once it has one."""

    process: subprocess.Popen[bytes]

    def __init__(
        self,
        member: Member,
        folder: Path,
        threads: int,
        thresholds: tuple[float, ...],
        validate: bool = False,
        curve: bool = False,
    ) -> None:
        self.member, self.folder, self.threads, self.thresholds = member, folder, threads, thresholds
        self.validate, self.watched = validate, curve

    def finished_before(self) -> dict[str, Any] | None:
        """The result of an earlier call. A folder with work done under another configuration is an error."""
        result = self.result()
        if result is None and not any((self.folder / "checkpoints").glob("step-*")):
            return None  # nothing is lost by starting over
        before = _read_json(self.folder / SETTINGS)
        made = load_config(self.folder / CONFIG).model_copy(update={"device": self.member.config.device})
        difference = first_difference(made, self.member.config)
        if difference is None and before is not None and before.get("threads") != self.threads:
            difference = "threads", before.get("threads"), self.threads
        if difference is not None:
            key, old, new = difference
            raise InputError(
                f"{self.folder}: was made with another configuration: {key} was {old!r}, now {new!r}; "
                "choose another folder for the sweep, or delete this one"
            )
        # Other thresholds: the member runs again, finds its training finished, and evaluates.
        return result if result is not None and result.get("thresholds") == list(self.thresholds) else None

    def start(self) -> None:
        with replacing(self.folder / CONFIG) as file:
            file.write(dump_config(self.member.config))
        with replacing(self.folder / SETTINGS) as file:
            settings: dict[str, Any] = {"name": self.member.name, "threads": self.threads}
            settings |= {"thresholds": self.thresholds, "validate": self.validate, "curve": self.watched}
            json.dump(settings, file, indent=1)
        count = str(self.threads)
        environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), count)
        with open(self.folder / LOG, "wb") as log:
            self.process = subprocess.Popen(
                [*CHILD, str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,  # a Ctrl-C in the terminal reaches the runner only, which passes it on once
            )

    def result(self) -> dict[str, Any] | None:
        tree = _read_json(self.folder / RESULT)
        return None if tree is None else null_to_nan(tree)

    def curve(self) -> str:
        """The last and the best score on validation data, where a training has been validated."""
        scores = list((_read_json(self.folder / CURVE) or {}).values()) if self.validate else []
        return f"validation {100 * scores[-1]:.1f}, best {100 * max(scores):.1f}" if scores else ""

    def failure(self) -> str | None:
        """Why the ended process failed, with the last line that it wrote; None if it did not."""
        code = self.process.returncode
        if code == 0:
            return None if self.result() is not None else f"ended without {RESULT}"
        how = f"exit code {code}" if code > 0 else f"killed by signal {-code} ({signal.strsignal(-code)})"
        lines = (self.folder / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"{how}: {last}" if last else how


def usable_cores() -> int:
    """Cores that this process may run on, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def last_step(metrics: Path, tail: int = 4096) -> int:
    """The step of the last whole line of a `metrics.jsonl`, 0 where there is none; reads its end only."""
    try:
        with open(metrics, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - tail))
            return int(parse_json(file.read().split(b"\n")[-2])["step"])  # what follows the last newline is half a line
    except (OSError, ValueError, LookupError, TypeError):
        return 0


def _check_names(members: Sequence[Member]) -> None:
    for name, count in Counter(member.name for member in members).items():
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts:
            raise InputError(f"member {name!r}: the name must be a folder below that of the sweep")
        if count > 1:
            raise InputError(f"member {name!r}: {count} members have this name")


def _with_absolute_paths(config: Config) -> Config:
    """The stored configuration must mean the same files wherever it is read; `load_config` has seen to it already."""
    paths = {key: Path(os.path.abspath(value)) for key, value in config.data if isinstance(value, Path)}
    return config.model_copy(update={"data": config.data.model_copy(update=paths)})


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        tree = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return tree if isinstance(tree, dict) else None
