"""The tables of README and docs are what the stored results say."""

import importlib.util
import json
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("result_tables", PROJECT / "benchmarks" / "result_tables.py")
assert spec is not None and spec.loader is not None
result_tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(result_tables)


@pytest.mark.parametrize("page", result_tables.PAGES, ids=lambda page: page.name)
def test_pages_and_stored_results_agree(page):
    text = page.read_text(encoding="utf-8")
    names = [name for _, name, _ in result_tables.MARKED.findall(text)]
    assert names and set(names) <= set(result_tables.stored_results())
    assert result_tables.filled(text, result_tables.stored_results()) == text


def test_a_changed_number_changes_the_page():
    stored = result_tables.stored_results()
    name, results = next(iter(stored.items()))
    changed = json.loads(json.dumps(results))
    changed["systems"]["tzn"]["mAP"]["0.7"][0] += 1
    page = f"before\n<!-- results:{name} by a command -->\nold\n<!-- /results -->\nafter\n"
    once = result_tables.filled(page, stored)
    assert once.startswith("before\n<!--") and once.endswith("<!-- /results -->\nafter\n") and "old" not in once
    assert result_tables.filled(once, stored) == once
    assert result_tables.filled(page, {name: changed}) != once
    assert result_tables.filled(page, {}) == page  # nothing known: nothing touched
