"""Half written files: none is seen, and those of processes that were killed go away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from temporalzoom import atomic
from temporalzoom.atomic import replacing

KILLED = """
import os, sys
from temporalzoom.atomic import replacing
with replacing(sys.argv[1]) as file:
    file.write("half")
    file.flush()
    os._exit(9)
"""


@pytest.mark.skipif(os.name == "nt", reason="nobody can tell there whether a process lives")
def test_the_next_writer_sweeps_what_a_killed_one_left(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(Path(atomic.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a.json")], env=environment, check=False)
    [left] = tmp_path.iterdir()
    living = tmp_path / left.name.replace(left.name.split("-")[1], str(os.getpid()), 1)
    others = [tmp_path / ".something.part", tmp_path / "b.part", living]
    for file in others:
        file.touch()
    with replacing(tmp_path / "a.json") as file:
        file.write("whole")
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "a.json"])
    assert (tmp_path / "a.json").read_text() == "whole"
