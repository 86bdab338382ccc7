"""Put the results of `tzoom bench` into the README, docs/real-data.md and docs/detectors.md, between their markers.

    python benchmarks/result_tables.py runs/bench/sbhar/results.json --write

Without a file, the stored ones in benchmarks/results are taken; a file given is stored there first. Without --write it
only prints. A name such as --name sbhar-stride-12 tells variants of one data set apart.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.experiments.real_data_tables import markdown

PROJECT = Path(__file__).resolve().parents[1]
STORED = PROJECT / "benchmarks" / "results"
PAGES = (PROJECT / "README.md", PROJECT / "docs" / "real-data.md", PROJECT / "docs" / "detectors.md")
MARKED = re.compile(r"(<!-- results:([\w.-]+) [^\n]*-->\n).*?(<!-- /results -->)", re.S)


def filled(page: str, results: dict[str, dict[str, Any]]) -> str:
    """The page with every marked block replaced by the table of that name; blocks without results stay."""

    def block(match: re.Match[str]) -> str:
        found = results.get(match[2])
        return match[0] if found is None else f"{match[1]}{markdown(found)}\n{match[3]}"

    return MARKED.sub(block, page)


def stored_results() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(STORED.glob("*.json"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", help="a results.json of `tzoom bench`")
    parser.add_argument("--name", help="how it is stored; default: the data set and the benchmark")
    parser.add_argument("--write", action="store_true", help="change the pages instead of printing")
    options = parser.parse_args()
    if options.results is not None:
        new = json.loads(options.results.read_text(encoding="utf-8"))
        kind = new.get("benchmark", "ours")
        parts = (new["data_set"], None if kind == "ours" else kind, "folds" if new.get("folds") else None)
        name = options.name or "-".join(filter(None, parts))
        if not options.write:
            print(markdown(new))
            return
        with replacing(STORED / f"{name}.json") as file:
            json.dump(new, file, indent=1)
    for page in PAGES:
        text = filled(page.read_text(encoding="utf-8"), stored_results())
        if options.write:
            with replacing(page) as file:
                file.write(text)
    if not options.write:
        for results in stored_results().values():
            print(markdown(results), end="\n\n")


if __name__ == "__main__":
    main()
