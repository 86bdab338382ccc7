"""Put the results of `tzoom bench` into the README, docs/real-data.md and docs/detectors.md, between their markers, and
write docs/results: one page per table, with every data set that it is about, and what was not run.

    python benchmarks/result_tables.py runs/bench/sbhar/results.json --write

Without a file, the stored ones in benchmarks/results are taken; a file given is stored there first. Without --write it
only prints. A name such as --name sbhar-stride-12 tells variants of one data set apart. Results of a program that has
changed since (models, training, inference, bdr, runs) are marked as such. A marker that says `only @0.5 FLOPs` holds
the first table alone, reduced to these columns, without intervals.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.experiments.data_sets import DATA_SETS
from temporalzoom.experiments.provenance import outdated
from temporalzoom.experiments.reading import DEFAULT_TABLE
from temporalzoom.experiments.registry import command_of, data_sets_of, find_table, read_results, table_names
from temporalzoom.experiments.rendering import Grid, markdown

PROJECT = Path(__file__).resolve().parents[1]
STORED = PROJECT / "benchmarks" / "results"
PAGES = (PROJECT / "README.md", PROJECT / "docs" / "real-data.md", PROJECT / "docs" / "detectors.md")
RESULTS = PROJECT / "docs" / "results"
GENERATED = "<!-- written by `python benchmarks/result_tables.py --write`: changes here are lost -->"
NOT_RUN = "Not run yet"
MARKED = re.compile(r"(<!-- results:([\w.-]+) [^\n]*-->\n).*?(<!-- /results -->)", re.S)
REDUCED = re.compile(r" only ([^\n]+?) by ")


def rendered(results: dict[str, Any], columns: Sequence[str] = ()) -> str:
    """Stored results for a page: who measured them, or that they are old, then the tables. columns: see `reduced`."""
    grids = read_results(results)
    return f"{origin(results)}\n\n{markdown([reduced(grids[0], columns)] if columns else grids)}"


def reduced(grid: Grid, columns: Sequence[str]) -> Grid:
    """A table for a first look: names and these columns, numbers without intervals."""
    kept = [0, *(grid.columns.index(name) for name in columns)]
    rows = [[cell if isinstance(cell, str) else f"{cell.value:.1f}" for cell in row] for row in grid.rows]
    title = grid.title.replace(", 95 % interval by bootstrap over recordings and seeds", "")
    if "time" not in columns:
        title = title.replace("executed FLOPs and time of a forward pass", "executed FLOPs")
    return Grid(title, tuple(grid.columns[k] for k in kept), [[row[k] for k in kept] for row in rows])


def origin(results: dict[str, Any]) -> str:
    """One line: the command and the commit, or that it is to be run again."""
    earlier = outdated(results)
    if earlier is not None:
        return f"measured by an earlier version ({earlier}); to be run again: `{command_of(results)}`"
    source = results["provenance"]
    return f"measured by `{command_of(results)}` ({source['commit'][:10]}, {source['date']})"


def filled(page: str, results: dict[str, dict[str, Any]]) -> str:
    """The page with every marked block replaced by the table of that name; blocks without results stay."""

    def block(match: re.Match[str]) -> str:
        found, only = results.get(match[2]), REDUCED.search(match[1])
        columns = only[1].split() if only else ()
        return match[0] if found is None else f"{match[1]}{rendered(found, columns)}\n{match[3]}"

    return MARKED.sub(block, page)


def result_pages(stored: dict[str, dict[str, Any]]) -> dict[str, str]:
    """By the name of a file in docs/results: a page for each table, and `README.md`, which lists them."""
    pages = {f"{table}.md": table_page(table, stored) for table in table_names()}
    lines = ["# Results", "", GENERATED, ""]
    lines += ["One page per table of `tzoom bench`, from the stored results in `benchmarks/results`.", ""]
    lines += [f"| table | about | {' | '.join(DATA_SETS)} |", "|---|---|" + "---|" * len(DATA_SETS)]
    for table in table_names():
        about = data_sets_of(find_table(table))
        cells = [_state(of_table(stored, table, name)) if name in about else "-" for name in DATA_SETS]
        lines.append(f"| [{table}]({table}.md) | {find_table(table).SUMMARY} | {' | '.join(cells)} |")
    return {"README.md": "\n".join([*lines, ""]), **pages}


def table_page(table: str, stored: dict[str, dict[str, Any]]) -> str:
    """Every data set that a table is about: what was measured, or that nothing was, and the command for it."""
    lines = [f"# Table {table}", "", GENERATED, "", f"{find_table(table).SUMMARY}.", ""]
    lines += ["How to read it: [real recordings](../real-data.md#how-to-read-the-tables).", ""]
    for data_set in data_sets_of(find_table(table)):
        lines += [f"## {data_set}", ""]
        found = of_table(stored, table, data_set)
        command = f"tzoom bench {data_set}" + ("" if table == DEFAULT_TABLE else f" --table {table}")
        lines += [text for results in found for text in (rendered(results), "")] or [f"{NOT_RUN}: `{command}`", ""]
    return "\n".join(lines)


def of_table(stored: dict[str, dict[str, Any]], table: str, data_set: str) -> list[dict[str, Any]]:
    """What was stored of a table on a data set: one result, or one more with folds."""
    return [found for found in stored.values() if found["table"] == table and found["data_set"] == data_set]


def _state(found: list[dict[str, Any]]) -> str:
    """A word for the overview; whether it is of an earlier version is said on the page."""
    if not found:
        return "not run"
    seeds = len(found[0]["seeds"])
    return f"{found[0]['test_recordings']} recordings, {seeds} seed{'s' if seeds > 1 else ''}"


def stored_results() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(STORED.glob("*.json"))}


def stored_name(results: dict[str, Any]) -> str:
    """`sbhar`, `tug-systems`, `sbhar-folds`: the data set, the table, and whether it is over folds."""
    table = results["table"] if results["table"] != DEFAULT_TABLE else None
    return "-".join(filter(None, (results["data_set"], table, "folds" if results.get("folds") else None)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", help="a results file of `tzoom bench`")
    parser.add_argument("--name", help="how it is stored; default: the data set and the table")
    parser.add_argument("--write", action="store_true", help="change the pages instead of printing")
    options = parser.parse_args()
    if options.results is not None:
        new = json.loads(options.results.read_text(encoding="utf-8"))
        if not options.write:
            print(rendered(new))
            return
        if new.get("quick"):
            raise SystemExit(f"{options.results}: of a quick run, which shows that a table works: no result to store")
        with replacing(STORED / f"{options.name or stored_name(new)}.json") as file:
            json.dump(new, file, indent=1)
    if not options.write:
        for results in stored_results().values():
            print(rendered(results), end="\n\n")
        return
    for page in PAGES:
        text = filled(page.read_text(encoding="utf-8"), stored_results())
        with replacing(page) as file:
            file.write(text)
    for name, text in result_pages(stored_results()).items():
        with replacing(RESULTS / name) as file:
            file.write(text)


if __name__ == "__main__":
    main()
