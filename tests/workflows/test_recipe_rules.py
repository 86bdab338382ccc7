"""Recipes of known data sets are what the rules of fit choose on them, and what they change of it."""

from pathlib import Path

import pytest
import yaml

from temporalzoom.config import load_config, recipe_text
from temporalzoom.config.recipes import parse_parts
from temporalzoom.workflows.recipe_rules import rules_part

WHERE = {
    "sbhar": {"data.root": "sbhar"},
    "tug": {"data.root": "tug"},
    "rats": {"data.annotations": "rats/coarse.json", "data.features": "rats/pose.npz"},
    "salads": {"data.annotations": "salads50/annotations.json", "data.features": "salads50/scores.npz"},
}


def second_part(name: str) -> dict:
    data, rules, changes = parse_parts(recipe_text(name), name)
    assert data["data"]["source"] and changes
    return rules


def test_the_recipe_of_the_benchmark_holds_what_the_rules_choose(tzoom):
    code, out, err = tzoom("recipes", "zoombench", "--rules")
    assert code == 0, err
    assert yaml.safe_load(out) == second_part("zoombench")
    assert all("#" in line for line in out.splitlines() if line.startswith("  "))


@pytest.mark.slow
@pytest.mark.parametrize("name", WHERE)
def test_recipes_of_real_data_hold_what_the_rules_choose(name, shared_data: Path):
    where = [f"{key}={shared_data / file}" for key, file in WHERE[name].items()]
    assert yaml.safe_load(rules_part(load_config(name, where))) == second_part(name)


def test_rules_are_those_of_a_recipe(tzoom):
    code, _, err = tzoom("recipes", "--rules")
    assert code == 2 and "tzoom recipes NAME --rules" in err
    code, _, err = tzoom("recipes", "zoombench", "training.steps=5")
    assert code == 2 and "training.steps=5: a recipe is printed as it is" in err


def test_later_parts_of_a_file_are_laid_over_earlier_ones(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("base: zoombench\ntraining: {steps: 7}\n---\ntraining: {steps: 8, batch_size: 3}\n---\n")
    config = load_config(file, ["training.batch_size=5"])
    assert config.training.steps == 8 and config.training.batch_size == 5 and config.model.width == 64
