"""examples/retrofit: both detectors run, the one with BDR places boundaries better, and its lines are counted."""

import importlib.util
import re
from pathlib import Path

import pytest

from temporalzoom.experiments.tables.retrofit import EXAMPLE, added_lines

REPOSITORY = Path(__file__).resolve().parents[2]


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "examples" / "retrofit" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_bdr_makes_the_boundaries_of_the_example_better():
    before, after = (example(name).boundary_error() for name in ("detector", "detector_with_bdr"))
    assert after < 0.5 * before and after < 1.0


def test_the_lines_are_those_of_the_diff(tmp_path):
    assert REPOSITORY / "examples" / "retrofit" == EXAMPLE and 5 < added_lines() <= 50
    (tmp_path / "detector.py").write_text("a = 1\nb = 2\nc = 3\n")
    assert added_lines(tmp_path) is None
    (tmp_path / "detector_with_bdr.py").write_text("a = 1\n\nnew = 0\nb = 20\nc = 3\n")
    assert added_lines(tmp_path) == 2  # one more, one changed; blank lines do not count


@pytest.mark.parametrize(("name", "signs"), [("detector", " -"), ("detector_with_bdr", " +")])
def test_the_page_shows_the_example(name, signs):
    page = (REPOSITORY / "docs" / "add-bdr.md").read_text(encoding="utf-8")
    diff = re.search(r"```diff\n(.*?)```", page, re.S)[1].splitlines()
    code = "\n".join(line[1:] for line in diff if line[:1] in signs)
    assert code in (EXAMPLE / f"{name}.py").read_text(encoding="utf-8")
    assert "examples/retrofit" in page
