"""Every command against wrong files and options: exit code 0, or 2 and one line; never a traceback."""

import pytest
import typer
from commands import COMMANDS
from fuzzing import Target, attack, todays_seed

from temporalzoom.cli.app import app

INPUTS = 25  # of a target of weight 1


@pytest.mark.slow
@pytest.mark.parametrize("target", COMMANDS, ids=lambda target: target.name)
def test_exit_code_0_or_2(target: Target, tmp_path):
    tally = attack(target, tmp_path, todays_seed(), round(INPUTS * target.weight))
    assert not tally.failures, "\n\n".join(tally.failures[:3])
    assert tally.refused > 0 or target.weight < 1  # a dozen inputs may all be right


def test_every_command_is_attacked():
    known = {" ".join(target.name.split(" --")[0].split()[1:]) for target in COMMANDS}
    listed = set()
    for name, command in typer.main.get_command(app).commands.items():
        listed |= {f"{name} {below}" for below in command.commands} if hasattr(command, "commands") else {name}
    assert listed == known
