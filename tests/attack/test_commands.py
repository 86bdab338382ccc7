"""Every command against wrong files and options: exit code 0, or 2 and one line; never a traceback."""

import pytest
from commands import COMMANDS
from fuzzing import Target, attack, todays_seed

INPUTS = 25  # of a target of weight 1


@pytest.mark.slow
@pytest.mark.parametrize("target", COMMANDS, ids=lambda target: target.name)
def test_exit_code_0_or_2(target: Target, tmp_path):
    tally = attack(target, tmp_path, todays_seed(), int(INPUTS * target.weight))
    assert not tally.failures, "\n\n".join(tally.failures[:3])
    assert 0 < tally.refused < tally.inputs
