"""The file that defines a sweep: what it makes, and how it fails."""

from pathlib import Path

import pytest

from temporalzoom.config import load_config
from temporalzoom.workflows.sweep_file import read_sweep

SWEEP = """
base: {bench: configs/tiny.yaml}
systems: {uniform: [bdr.enabled=false], tzn: [model.name=tzn, model.share=0.2]}
seeds: [0, 7]
thresholds: [0.1, 0.5]
"""


def write_sweep(folder: Path, text: str = SWEEP) -> Path:
    """A sweep file, and the configuration that it is based on."""
    (folder / "configs").mkdir()
    (folder / "configs" / "tiny.yaml").write_text("training: {steps: 9}\ndata: {features: ../f}\n")
    (folder / "sweep.yaml").write_text(text)
    return folder / "sweep.yaml"


def test_members_are_all_combinations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = read_sweep(write_sweep(Path()))  # relative to the file, and then absolute
    by_name = {member.name: member.config for member in plan.members}
    names = ["bench/uniform/seed-0", "bench/uniform/seed-7", "bench/tzn/seed-0", "bench/tzn/seed-7"]
    assert list(by_name) == names and plan.thresholds == (0.1, 0.5)
    base, features = "training.steps=9", f"data.features={tmp_path / 'f'}"
    assert by_name[names[1]] == load_config(None, [base, features, "bdr.enabled=false", "seed=7"])
    assert by_name[names[2]] == load_config(None, [base, features, "model.name=tzn", "model.share=0.2"])


def test_a_base_may_be_a_recipe(tmp_path):
    plan = read_sweep(write_sweep(tmp_path, "base: {bench: zoombench}\nsystems: {plain: }\nseeds: [3]\n"))
    assert plan.members[0].config == load_config("zoombench", ["seed=3"])


def test_thresholds_and_overrides_may_be_left_out(tmp_path):
    text = "base: {a: configs/tiny.yaml, b: configs/tiny.yaml}\nsystems: {plain: }\nseeds: [3]\n"
    plan = read_sweep(write_sweep(tmp_path, text))
    assert [member.name for member in plan.members] == ["a/plain/seed-3", "b/plain/seed-3"]
    assert plan.thresholds == (0.3, 0.4, 0.5, 0.6, 0.7)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seeds: [0, 7]", "seeds: [0, x]", ["seeds", "'x'", "whole numbers"]),
        ("seeds: [0, 7]", "seeds: [0, 0]", ["seeds", "[0, 0]", "once"]),
        ("seeds: [0, 7]", "seeds: [-1]", ["seeds", "-1"]),
        ("seeds: [0, 7]", "seeds: [true]", ["seeds", "True"]),
        ("seeds: [0, 7]", "seeds: [1.5]", ["seeds", "1.5"]),
        ("seeds: [0, 7]", "seeds: [99999999999]", ["seed", "99999999999"]),
        ("seeds: [0, 7]", "seeds: 3", ["seeds", "3"]),
        ("seeds: [0, 7]", "", ["seeds", "None"]),
        ("seeds:", "seed:", ["unknown key 'seed'", "seeds"]),
        ("[0.1, 0.5]", "[0, 0.5]", ["thresholds", "[0, 0.5]"]),
        ("[0.1, 0.5]", "[1.5]", ["thresholds", "[1.5]"]),
        ("[0.1, 0.5]", "[half]", ["thresholds", "half"]),
        ("[0.1, 0.5]", "", ["thresholds", "None"]),
        ("{bench: configs/tiny.yaml}", "{bench: none.yaml}", ["base.bench", "none.yaml"]),
        ("{bench: configs/tiny.yaml}", "{bench: [1]}", ["base.bench", "[1]"]),
        ("{bench: configs/tiny.yaml}", "configs/tiny.yaml", ["base", "configs/tiny.yaml"]),
        ("{bench:", "{a/b:", ["base", "a/b"]),
        ("uniform:", "..:", ["systems", "'..'"]),
        ("uniform:", "3:", ["systems", "3"]),
        ("[bdr.enabled=false]", "bdr.enabled=false", ["systems.uniform", "bdr.enabled=false", "list"]),
        ("[bdr.enabled=false]", "[bdr.enabld=false]", ["systems.uniform", "bdr.enabld", "bdr.enabled"]),
        ("[bdr.enabled=false]", "[training.steps=many]", ["systems.uniform", "training.steps", "many"]),
        ("[bdr.enabled=false]", "[seed=3]", ["systems.uniform", "seed=3", "seeds"]),
        ("systems:", "systems: [", ["YAML"]),
    ],
)
def test_a_bad_file_ends_in_one_line(tmp_path, tzoom, old, new, words):
    assert old in SWEEP
    path = write_sweep(tmp_path, SWEEP.replace(old, new, 1))
    code, out, err = tzoom("sweep", path, "--out", tmp_path / "out")
    assert code == 2 and not out and len(err.strip().splitlines()) == 1, err
    for word in [str(path), *words]:
        assert word in err
    assert not (tmp_path / "out").exists()


def test_a_missing_or_empty_file(tmp_path, tzoom):
    code, _, err = tzoom("sweep", tmp_path / "none.yaml", "--out", tmp_path / "out")
    assert code == 2 and "none.yaml" in err
    (tmp_path / "empty.yaml").write_text("")
    code, _, err = tzoom("sweep", tmp_path / "empty.yaml", "--out", tmp_path / "out")
    assert code == 2 and "empty.yaml" in err and "base, systems, seeds" in err


def test_help_has_an_example(tzoom):
    code, out, _ = tzoom("sweep", "--help")
    assert code == 0 and "Example" in out and "tzoom sweep" in out
