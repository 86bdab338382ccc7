"""Where numbers come from, in a repository made for it."""

import json
import subprocess
from pathlib import Path

import pytest

from temporalzoom.experiments.data_sets import training_config
from temporalzoom.experiments.provenance import (
    contains,
    head,
    last_change,
    outdated,
    provenance,
    stored_tree,
    trained_by,
)


def git(folder: Path, *words: str) -> str:
    person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", *person, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def package(tmp_path) -> Path:
    """A package in a repository: a commit with everything, one of models, one of docs."""
    folder = tmp_path / "repository" / "src" / "temporalzoom"
    (folder / "models").mkdir(parents=True)
    (folder / "viewer").mkdir()
    (folder / "__init__.py").write_text("")
    git(tmp_path, "init", "-q", "repository")
    for number, file in enumerate(("models/a.py", "models/b.py", "viewer/c.py")):
        (folder / file).write_text(str(number))
        git(folder, "add", "-A", ".")
        git(folder, "commit", "-q", "-m", file)
    return folder


def test_results_of_an_earlier_program_are_outdated(package):
    first, second, third = (git(package, "rev-parse", f"HEAD~{back}") for back in (2, 1, 0))
    assert head(package) == third and last_change(package) == second
    assert contains(third, second, package) and not contains(first, second, package)

    def result(commit, trained=None, dirty=False):
        return {"provenance": {"commit": commit, "dirty": dirty, "trained_by": [trained or commit]}}

    assert outdated(result(third), package) is None and outdated(result(second), package) is None
    assert outdated(result(first), package) == first[:10]
    assert outdated(result(third, first), package) == first[:10]  # measured again, trained before
    assert outdated({}, package) == "unknown" and outdated(result(None), package) == "unknown"
    assert outdated({"provenance": {"commit": third, "trained_by": [None, third]}}, package) == "unknown"
    assert outdated(result("0" * 40), package) == "0" * 10  # of a history that is gone
    assert "not committed" in outdated(result(third, dirty=True), package)


def test_a_package_in_a_foreign_repository_has_no_commit(package, tmp_path):
    installed = package.parent.parent / ".venv" / "temporalzoom"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    assert head(installed) is None and head(tmp_path) is None and last_change(tmp_path) is None


def test_what_is_stored_about_a_program(package, tmp_path):
    found = provenance(package)
    assert found["commit"] == git(package, "rev-parse", "HEAD") and found["dirty"] is False
    assert found["version"] and len(found["date"]) == 10
    (package.parent / "notes.txt").write_text("not of the package")
    assert provenance(package)["dirty"] is False
    (package / "models" / "a.py").write_text("changed")
    assert provenance(package)["dirty"] is True
    assert provenance(tmp_path)["commit"] is None and provenance(tmp_path)["dirty"] is None


def test_trainings_are_asked_for_their_own_commit(tmp_path):
    for name, stored in {"a": {"commit": "1"}, "b": {"commit": "2", "dirty": True}, "c": {"commit": "1"}}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "provenance.json").write_text(json.dumps(stored))
    folders = [tmp_path / name for name in ("a", "b", "c", "without")]
    assert trained_by(folders[:1]) == ["1"] and trained_by(folders) == ["1", None]


def test_stored_settings_name_no_place_of_a_machine(tmp_path):
    tree = stored_tree(training_config("rats", tmp_path / "rats", 0))
    assert str(tmp_path) not in json.dumps(tree) and tree["data"]["annotations"] == "coarse.json"
    assert tree["model"]["name"] == "tzn" and tree["training"]["steps"] == 400
