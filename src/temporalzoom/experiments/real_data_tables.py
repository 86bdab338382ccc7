"""What a benchmark on real recordings found, as a table for the terminal and for Markdown pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table

from temporalzoom.metrics.significance import marked
from temporalzoom.workflows.recipes import BENCHMARKS

SHOWN = ("0.5", "0.7", "0.8", "0.9")
COLUMNS = ("system", *(f"@{t}" for t in SHOWN), "avg .3:.7", "FLOPs", "time", "weights")


def level_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """One row per system: mean over seeds and interval of mAP in percent, and what it costs beside uniform-6."""
    rows = []
    for name, system in results["systems"].items():
        levels = [system["mAP"][t] for t in SHOWN] + [system["average"]]
        flops = "-" if system["flops_ratio"] is None else f"{system['flops_ratio'][0]:.2f}x"
        latency = f"{system['latency_ratio'][0]:.2f}x" if "latency_ratio" in system else "-"
        cells = [marked(mean, low, high, scale=1) for mean, low, high in levels]
        rows.append([name, *cells, flops, latency, f"{system['parameters'] / 1e6:.1f} M"])
    return rows


def difference_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """One row per comparison: the difference, its interval, and a star where it is significant in the whole table."""
    return [
        [name, *(marked(c["value"], c["low"], c["high"], c["p_holm"], scale=1) for c in _cells(differences))]
        for name, differences in results["differences"].items()
    ]


def describe(results: Mapping[str, Any]) -> str:
    """What the numbers are."""
    seeds, folds = len(results["seeds"]), results.get("folds")
    recordings = f"{results['test_recordings']} {'test ' if folds is None else ''}recordings"
    unseen = "" if folds is None else f", each scored by a network that has not seen its subject ({folds} folds)"
    return (
        f"{results['data_set']}: {recordings}, {results['test_instances']} instances{unseen}; "
        f"mAP in percent, mean over {seeds} seed{'s' if seeds > 1 else ''}, 95 % interval by bootstrap over recordings"
        f"{' and seeds' if seeds > 1 else ''}"
    )


def command(results: Mapping[str, Any]) -> str:
    """What measures this."""
    kind = results.get("benchmark", "ours")
    data_set = results["data_set"]
    words = [data_set.replace("-", " --")] if kind == "ours" else [kind]
    if kind != "ours" and BENCHMARKS[kind].data_set is None:
        words += ["--data", data_set]
    if set(results["systems"]) != set(BENCHMARKS[kind].systems):
        words.append("--systems " + ",".join(results["systems"]))
    if results["seeds"] != [0, 1, 2]:  # what the command takes by itself
        words.append("--seeds " + ",".join(map(str, results["seeds"])))
    if results.get("folds") is not None:
        words.append(f"--folds {results['folds']}")
    return " ".join(["tzoom bench", *words, *results.get("overrides", ())])


def tables(results: Mapping[str, Any]) -> list[Table]:
    """For the terminal: levels, differences, costs. Intervals stand below their values: 80 columns suffice."""
    levels = _table(describe(results), "system", *COLUMNS[2:6])
    baseline = BENCHMARKS[results.get("benchmark", "ours")].baseline
    costs = _table(f"executed FLOPs and time of one forward pass, of {baseline}; seconds", "system", *COLUMNS[6:])
    retrofit = any("added_lines" in system for system in results["systems"].values())
    for column in ("train", "localize", *(["BDR lines"] if retrofit else [])):
        costs.add_column(column, justify="right")
    for name, row in zip(results["systems"], level_rows(results), strict=True):
        levels.add_row(name, *map(_two_lines, row[2:6]))
        system = results["systems"][name]
        seconds = (f"{system['training_seconds']:.0f}", f"{system['localization_seconds']:.1f}")
        costs.add_row(name, *row[6:], *seconds, *([str(system.get("added_lines", "-"))] if retrofit else []))
    differences = _table("differences, paired by recording; * significant (Holm, 5 %)", "difference", *COLUMNS[2:6])
    for row in difference_rows(results):
        differences.add_row(row[0].replace(" - ", "\n- "), *map(_two_lines, row[2:]))
    return [levels, differences, costs]


def _two_lines(cell: str) -> str:
    """`+4.4 [+1.2, +7.9] *` -> the value with its star above the interval."""
    value, bracket, rest = cell.partition(" [")
    interval, star = rest.removesuffix(" *"), " *" if rest.endswith("*") else ""
    return f"{value}{star}\n[{interval}" if bracket else value


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def markdown(results: Mapping[str, Any]) -> str:
    """The same for a page."""

    def table(columns: tuple[str, ...], rows: list[list[str]]) -> list[str]:
        return [
            "| " + " | ".join(columns) + " |",
            "|---|" + "---:|" * (len(columns) - 1),
            *("| " + " | ".join(cell.replace("*", "\\*") for cell in row) + " |" for row in rows),
        ]

    lines = [
        describe(results) + f" (`{command(results)}`):",
        "",
        *table(COLUMNS, level_rows(results)),
        *added_code(results),
        "",
        "Differences, paired by recording; \\* significant (Holm over the table, 5 %):",
        "",
        *table(("difference", *COLUMNS[1:6]), difference_rows(results)),
    ]
    return "\n".join(lines)


def added_code(results: Mapping[str, Any]) -> list[str]:
    """Of a retrofit: how many lines of code BDR added to each model; targets, loss and refinement are the spine's."""
    lines = {name: system["added_lines"] for name, system in results["systems"].items() if "added_lines" in system}
    counts = ", ".join(f"{name.removesuffix('+bdr')} {count}" for name, count in lines.items())
    return ["", f"Lines of code that BDR adds to the model: {counts}."] if lines else []


def _cells(differences: Mapping[str, Any]) -> list[Mapping[str, float]]:
    return [differences[key] for key in (*SHOWN, "average")]
