"""What of a configuration reaches the network, and which runs are oracle ablations."""

import pytest

from temporalzoom.runs.network import model_from_config, oracle_reach
from temporalzoom.timegrid import TimeGrid

PRUNED = ("model.name=tzn", "model.pruning=true")
ORACLE = (*PRUNED, "model.paper.protection=oracle")


@pytest.mark.parametrize(
    ("overrides", "reach"),
    [
        (ORACLE, 3),
        ((*ORACLE, "model.paper.protect_frames=12.5"), 4),
        (PRUNED, None),
        (("model.name=tzn",), None),  # nothing is pruned, nothing to protect
        (("model.name=uniform-1",), None),
    ],
)
def test_who_looks_at_true_boundaries(tiny_config, overrides, reach):
    assert oracle_reach(tiny_config(*overrides), stride=4.0) == reach


def test_the_oracle_is_the_same_network(tiny_config):
    models = [model_from_config(tiny_config(*settings), 8, 2, TimeGrid(4, 8, 30)) for settings in (PRUNED, ORACLE)]
    shapes = [{name: tensor.shape for name, tensor in model.state_dict().items()} for model in models]
    assert shapes[0] == shapes[1] and models[0].protect == models[1].protect == 3
