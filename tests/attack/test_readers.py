"""Every reader against thousands of wrong inputs: one line, or a right result. Other inputs every day."""

import pytest
from fuzzing import Target, attack, todays_seed
from targets import TARGETS

INPUTS = 350  # of a target of weight 1


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_one_line_or_a_right_result(target: Target, tmp_path):
    tally = attack(target, tmp_path, todays_seed(), int(INPUTS * target.weight))
    assert not tally.failures, "\n\n".join(tally.failures[:3])
    assert tally.inputs == int(INPUTS * target.weight)
    assert 0 < tally.refused <= tally.inputs
