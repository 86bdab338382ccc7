"""Sweeps whose members run in this process: to start one of its own takes longer than to train for a few steps.

Processes are the subject of tests/workflows/test_sweep.py, test_sweep_runner.py and test_fit.py, of one test of
`bench`, and of the page about sweeps.
"""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.workflows import sweep
from temporalzoom.workflows.sweep_member import run_member


class MemberHere:
    """What the runner takes for a process: it has ended by the time it was started."""

    def __init__(self, command: list[str], stdout: Any, **_: object) -> None:
        self.returncode = 0
        try:
            run_member(Path(command[-1]), Console(quiet=True))
        except InputError as error:
            stdout.write(f"error: {error}\n".encode())
            self.returncode = 2

    def poll(self) -> int:
        return self.returncode


def run_members_here(patch: pytest.MonkeyPatch) -> None:
    pipes = {"DEVNULL": subprocess.DEVNULL, "STDOUT": subprocess.STDOUT}
    patch.setattr(sweep, "subprocess", SimpleNamespace(Popen=MemberHere, **pipes))
    patch.setattr(sweep, "POLL_SECONDS", 0.0)
