"""Every `tzoom` command on a page is run, in a folder that looks like the one the page speaks of."""

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from temporalzoom.cli import main
from temporalzoom.config import config_fields, load_config

REPOSITORY = Path(__file__).resolve().parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
FASTER = {"training": {"steps": 2, "batch_size": 2}, "model": {"width": 16, "heads": 2}}


def config_keys() -> list[str]:
    """Every setting; not the sections."""
    keys = config_fields()
    return [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]


def indented_blocks(page: Path) -> str:
    return "\n".join(re.findall(r"^ {4}(.*)$", page.read_text(), re.M))


def commands(page: Path) -> list[list[str]]:
    """The `tzoom ...` lines of a page, without their comments ("| or ..." stands for another way of saying it)."""
    lines = [line for line in indented_blocks(page).splitlines() if line.startswith("tzoom ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.fixture
def tennis(tmp_path, monkeypatch) -> Path:
    """The README's example, with recordings match7, match8, match9."""
    random = np.random.default_rng(0)
    (tmp_path / "features").mkdir()
    database = {}
    for name, subset in (("match7", "train"), ("match8", "train"), ("match9", "test")):
        np.save(tmp_path / "features" / f"{name}.npy", random.normal(size=(100, 6)).astype(np.float32))
        annotations = [{"label": "serve", "segment": [2.0, 3.5]}, {"label": "rally", "segment": [3.5, 9.0]}]
        database[name] = {"subset": subset, "duration": 16.5, "fps": 25, "annotations": annotations}
    (tmp_path / "annotations.json").write_text(json.dumps({"database": database}))
    config = re.search(r"# tennis\.yaml\n(.*?)\n\n", indented_blocks(PAGES[0]) + "\n\n", re.S)
    assert config is not None
    settings = yaml.safe_load(config[1].split("tzoom", 1)[0])
    settings["training"].update(FASTER["training"])
    (tmp_path / "tennis.yaml").write_text(yaml.safe_dump(settings | {"model": settings["model"] | FASTER["model"]}))
    found = {"match9": [{"label": "serve", "segment": [2.1, 3.4], "score": 0.9}]}
    (tmp_path / "P.json").write_text(json.dumps({"results": found}))
    (tmp_path / "T.json").write_text(json.dumps({"database": {"match9": database["match9"]}}))
    (tmp_path / "configs").mkdir()
    for path in (REPOSITORY / "configs").glob("*.yaml"):
        settings = yaml.safe_load(path.read_text())
        if settings["data"]["source"] == "zoombench":
            settings["data"]["zoombench"] = {"sequences": 4, "test_sequences": 2, "length": 96}
        settings["model"].update(FASTER["model"])
        settings["training"].update(FASTER["training"])
        (tmp_path / "configs" / path.name).write_text(yaml.safe_dump(settings))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_runs(page, tennis, monkeypatch, capsys):
    for arguments in commands(page):
        if arguments[0] == "demo":
            continue  # has its own test
        for index, argument in enumerate(arguments):
            if argument == "train":
                assert Path(arguments[index + 1]).is_file(), arguments
        monkeypatch.setattr(sys, "argv", ["tzoom", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        assert not stop.value.code, (arguments, printed.err)
        assert printed.out.strip(), arguments


def test_pages_have_commands():
    assert sum(len(commands(page)) for page in PAGES) >= 10


def test_every_setting_is_documented():
    page = (REPOSITORY / "docs" / "configuration.md").read_text()
    missing = [key for key in config_keys() if f"`{key}`" not in page]
    assert not missing


def test_documented_defaults_are_the_defaults():
    page = (REPOSITORY / "docs" / "configuration.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)` \| `([^`]*)` \|", page, re.M)
    assert len(rows) == len(config_keys())
    tree = load_config().model_dump(mode="json")
    for key, default in rows:
        value = tree
        for word in key.split("."):
            value = value[word]
        assert yaml.safe_load(default) == value or str(value) == default, key


@pytest.mark.parametrize("path", sorted((REPOSITORY / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_config_says_how_to_run_it_and_loads(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith(f"# tzoom train configs/{path.name}")
    load_config(path)
