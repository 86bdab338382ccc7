"""The component ablation: seven configurations that differ in nothing but which components are on."""

import shlex
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from temporalzoom.config import load_config
from temporalzoom.datasets.zoombench import make_zoombench
from temporalzoom.inference.localizer import Localizer

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
BASE = CONFIGS / "zoombench_tzn.yaml"
PATHS = sorted((CONFIGS / "components").glob("*.yaml"))
SWITCHES = (("bdr", "enabled"), ("tzn", "uncertainty"), ("tzn", "depth"), ("tzn", "pruning"))
TINY = """
data.zoombench.sequences=3 data.zoombench.test_sequences=2 data.zoombench.length=80 data.zoombench.dimension=8
model.width=16 model.heads=2 training.steps=2 training.batch_size=2 training.length=50
""".split()


class Components(NamedTuple):
    bdr: bool
    uncertainty: bool
    depth: bool

    @property
    def name(self) -> str:
        return "full" if all(self) else "_".join(name for name, on in self._asdict().items() if on)


COMBINATIONS = [Components(*on) for on in product((True, False), repeat=3) if any(on)]


def without_switches(tree: dict) -> dict:
    return {section: {k: v for k, v in keys.items() if (section, k) not in SWITCHES} for section, keys in tree.items()}


def test_there_are_exactly_the_seven_combinations():
    assert {path.stem for path in PATHS} == {combination.name for combination in COMBINATIONS}
    assert len(PATHS) == 7


@pytest.mark.parametrize("components", COMBINATIONS, ids=lambda c: c.name)
def test_only_the_switches_differ(components):
    path = CONFIGS / "components" / f"{components.name}.yaml"
    tree = yaml.safe_load(path.read_text())
    assert without_switches(tree) == without_switches(yaml.safe_load(BASE.read_text()))
    # Pruning goes with depth: without depth, every position gets the whole deep path.
    assert tuple(tree[section][key] for section, key in SWITCHES) == (*components, components.depth)


def test_with_all_components_it_is_the_demo_s_model():
    assert load_config(CONFIGS / "components" / "full.yaml") == load_config(BASE)


@pytest.mark.parametrize("components", COMBINATIONS, ids=lambda c: c.name)
def test_its_command_trains_and_the_run_evaluates(components, tmp_path, tzoom, monkeypatch):
    path = CONFIGS / "components" / f"{components.name}.yaml"
    comment, *rest = path.read_text().splitlines()
    assert not any(line.startswith("#") for line in rest)
    program, *arguments = shlex.split(comment.removeprefix("# "), comments=True)
    run = f"runs/components/{components.name}"
    assert [program, *arguments] == ["tzoom", "train", f"configs/components/{path.name}", "--out", run]
    (tmp_path / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(tmp_path)

    code, _, error = tzoom(*arguments, *TINY)
    assert code == 0, error
    code, printed, error = tzoom("eval", "--model", run)
    assert code == 0 and "mAP" in printed, error

    localizer = Localizer.load(tmp_path / run)
    sample = make_zoombench(load_config(path, TINY).data.zoombench, subset="test").samples[0]
    outputs = localizer.outputs(sample.features)
    assert outputs.depth is not None
    assert (outputs.distances is not None) == components.bdr
    assert bool(outputs.depth.log_variance.any()) == components.uncertainty
    assert bool((outputs.depth.tau != 1).any()) == components.depth
    if not components.depth:
        assert outputs.depth.active.all()
