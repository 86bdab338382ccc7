"""Put the results of `tzoom bench` into the README, docs/real-data.md and docs/detectors.md, between their markers.

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
from temporalzoom.experiments.provenance import outdated
from temporalzoom.experiments.reading import DEFAULT_TABLE
from temporalzoom.experiments.registry import command_of, read_results
from temporalzoom.experiments.rendering import Grid, markdown

PROJECT = Path(__file__).resolve().parents[1]
STORED = PROJECT / "benchmarks" / "results"
PAGES = (PROJECT / "README.md", PROJECT / "docs" / "real-data.md", PROJECT / "docs" / "detectors.md")
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


if __name__ == "__main__":
    main()
