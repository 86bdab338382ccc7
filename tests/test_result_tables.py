"""The tables of README and docs are what the stored results say."""

import importlib.util
import json
from pathlib import Path

import pytest

from temporalzoom.experiments import provenance
from temporalzoom.experiments.registry import data_sets_of, find_table, table_names
from temporalzoom.experiments.tables.retrofit import added_lines

PROJECT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("result_tables", PROJECT / "benchmarks" / "result_tables.py")
assert spec is not None and spec.loader is not None
result_tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(result_tables)


EARLIER = "measured by an earlier version"


def without_origin(text: str) -> str:
    """Which commit measured a table, and whether that is old, changes with every commit of the models."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("measured by "))


@pytest.mark.parametrize("page", result_tables.PAGES, ids=lambda page: page.name)
def test_pages_and_stored_results_agree(page):
    text = page.read_text(encoding="utf-8")
    stored = result_tables.stored_results()
    names = [name for _, name, _ in result_tables.MARKED.findall(text)]
    assert names and set(names) <= set(stored)
    assert without_origin(result_tables.filled(text, stored)) == without_origin(text)
    # Nobody knows what measured results without a commit: they are marked, whatever has changed since.
    unknown = sum("provenance" not in stored[name] for name in names)
    assert text.count(f"{EARLIER} (unknown)") >= unknown


def test_every_table_has_a_page_that_lists_what_was_not_run():
    stored = result_tables.stored_results()
    pages = result_tables.result_pages(stored)
    written = {path.name for path in result_tables.RESULTS.glob("*.md")}
    assert written == set(pages) == {"README.md", *(f"{table}.md" for table in table_names())}
    for name, text in pages.items():
        assert without_origin((result_tables.RESULTS / name).read_text(encoding="utf-8")) == without_origin(text), name
    for table in table_names():
        for data_set in data_sets_of(find_table(table)):
            assert f"\n## {data_set}\n" in pages[f"{table}.md"]
            found = result_tables.of_table(stored, table, data_set)
            section = pages[f"{table}.md"].split(f"\n## {data_set}\n")[1].split("\n## ")[0]
            assert (result_tables.NOT_RUN in section) == (not found)
            assert section.count("test recordings") + section.count("has not seen its subject") == len(found)
    assert "not run" in pages["README.md"]


def test_quick_results_are_never_stored(tmp_path, monkeypatch):
    quick = next(iter(result_tables.stored_results().values())) | {"quick": True}
    (tmp_path / "quick.json").write_text(json.dumps(quick))
    monkeypatch.setattr("sys.argv", ["result_tables.py", str(tmp_path / "quick.json"), "--write"])
    with pytest.raises(SystemExit, match="of a quick run"):
        result_tables.main()
    assert "quick" in result_tables.rendered(quick) and "--quick" in result_tables.command_of(quick)


def test_a_changed_number_changes_the_page():
    stored = result_tables.stored_results()
    name, results = next(iter(stored.items()))
    changed = json.loads(json.dumps(results))
    changed["systems"]["tzn"]["mAP"]["0.7"][0] += 1
    page = f"before\n<!-- results:{name} by a command -->\nold\n<!-- /results -->\nafter\n"
    once = result_tables.filled(page, stored)
    assert once.startswith("before\n<!--") and once.endswith("<!-- /results -->\nafter\n") and "old\n" not in once
    assert result_tables.filled(once, stored) == once
    assert result_tables.filled(page, {name: changed}) != once
    assert result_tables.filled(page, {}) == page  # nothing known: nothing touched


@pytest.mark.parametrize("name", result_tables.stored_results())
def test_stored_results_are_named_by_what_they_are(name):
    results = result_tables.stored_results()[name]
    assert result_tables.stored_name(results) == name
    if results["table"] == "retrofit":  # the example is the same for all of them
        assert results["added_lines"] == added_lines()
    command = result_tables.command_of(results).split()
    assert command[:3] == ["tzoom", "bench", results["data_set"]]


def test_results_of_an_earlier_version_are_to_be_run_again(monkeypatch):
    results = dict(result_tables.stored_results()["sbhar-strides"])
    again = "to be run again: `tzoom bench sbhar --table strides --seeds 0,1`"
    assert result_tables.origin(results | {"provenance": None}) == f"{EARLIER} (unknown); {again}"
    results["provenance"] = {"commit": "0123456789abcdef", "dirty": False, "date": "2026-11-17", "trained_by": []}
    monkeypatch.setattr(provenance, "last_change", lambda package: "f" * 40)
    monkeypatch.setattr(provenance, "contains", lambda commit, other, folder: False)
    assert result_tables.origin(results) == f"{EARLIER} (0123456789); {again}"
    assert result_tables.rendered(results).startswith(f"{EARLIER} (0123456789)")
    monkeypatch.setattr(provenance, "contains", lambda commit, other, folder: True)
    assert result_tables.origin(results) == (
        "measured by `tzoom bench sbhar --table strides --seeds 0,1` (0123456789, 2026-11-17)"
    )


def test_a_reduced_table_has_the_same_numbers():
    stored = result_tables.stored_results()
    page = "<!-- results:tug only @0.9 FLOPs by a command -->\n<!-- /results -->\n"
    rows = [line.split(" | ") for line in result_tables.filled(page, stored).splitlines() if line.startswith("| ")]
    assert rows[0] == ["| system", "@0.9", "FLOPs |"]
    systems = stored["tug"]["systems"]
    assert [row[0][2:] for row in rows[1:]] == list(systems)
    assert [row[1] for row in rows[1:]] == [f"{system['mAP']['0.9'][0]:.1f}" for system in systems.values()]
