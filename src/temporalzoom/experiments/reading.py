"""How stored results of compared systems read: levels and costs, differences, notes, and the command that made them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from typing import Any

from temporalzoom.experiments.data_sets import default_seeds
from temporalzoom.experiments.rendering import Cell, Grid, Interval
from temporalzoom.metrics.significance import holm

SHOWN = ("0.5", "0.7", "0.8", "0.9")
LEVELS = (*(f"@{t}" for t in SHOWN), "avg .3:.7")
DEFAULT_TABLE = "ours"  # what the command takes by itself

Results = Mapping[str, Any]


def describe(results: Results) -> str:
    """What the numbers are."""
    seeds, folds = len(results["seeds"]), results.get("folds")
    recordings = f"{results['test_recordings']} {'test ' if folds is None else ''}recordings"
    unseen = "" if folds is None else f", each scored by a network that has not seen its subject ({folds} folds)"
    smoke = "a quick run that shows that the table works, and nothing else; " if results.get("quick") else ""
    return (
        f"{results['data_set']}: {smoke}{recordings}, {results['test_instances']} instances{unseen}; "
        f"mAP in percent, mean over {seeds} seed{'s' if seeds > 1 else ''}, 95 % interval by bootstrap over recordings"
        f"{' and seeds' if seeds > 1 else ''}; executed FLOPs and time of a forward pass: {results['baseline']} = 1"
    )


def command(results: Results, systems: Collection[str]) -> str:
    """What measures this. systems: all those of the table."""
    words = ["tzoom", "bench", results["data_set"]]
    if results["table"] != DEFAULT_TABLE:
        words += ["--table", results["table"]]
    if set(results["systems"]) != set(systems):
        words += ["--systems", ",".join(results["systems"])]
    quick = bool(results.get("quick"))
    if tuple(results["seeds"]) != default_seeds(results["data_set"], quick):
        words += ["--seeds", ",".join(map(str, results["seeds"]))]
    if quick:
        words.append("--quick")
    if results.get("folds") is not None:
        words += ["--folds", str(results["folds"])]
    return shlex.join([*words, *(word for setting in results.get("overrides", ()) for word in ("--set", setting))])


def compared_systems(results: Results, *notes: str) -> list[Grid]:
    """What most tables show: levels and costs, then differences. notes: below the levels."""
    grids = [levels_grid(results, *notes, *map_notes(results)), differences_grid(results)]
    return [grid for grid in grids if grid.rows]


def levels_grid(results: Results, *notes: str) -> Grid:
    """One row per system: mean over seeds and interval of mAP in percent, and what it costs beside the baseline."""
    rows = []
    for name, system in results["systems"].items():
        levels = [Interval(*system["mAP"][t]) for t in SHOWN] + [Interval(*system["average"])]
        flops = "-" if system["flops_ratio"] is None else f"{system['flops_ratio'][0]:.2f}x"
        latency = f"{system['latency_ratio'][0]:.2f}x" if "latency_ratio" in system else "-"
        rows.append([name, *levels, flops, latency, f"{system['parameters'] / 1e6:.1f} M"])
    return Grid(describe(results), ("system", *LEVELS, "FLOPs", "time", "weights"), rows, notes)


def corrected_differences(results: Results) -> list[tuple[str, list[Interval]]]:
    """By comparison, the differences that a table shows; p after Holm's correction over all of them, and no others."""
    cells = [[differences[key] for key in (*SHOWN, "average")] for differences in results["differences"].values()]
    adjusted = holm([[cell["p"] for cell in row] for row in cells]).adjusted.tolist() if cells else []
    return [
        (name, [Interval(c["value"], c["low"], c["high"], p) for c, p in zip(row, p_values, strict=True)])
        for name, row, p_values in zip(results["differences"], cells, adjusted, strict=True)
    ]


def differences_grid(results: Results) -> Grid:
    """One row per comparison, with stars."""
    rows: list[list[Cell]] = [[name, *cells] for name, cells in corrected_differences(results)]
    count = len(rows) * len(LEVELS)
    title = f"Differences, paired by recording; * significant (Holm over these {count}, 5 %)"
    return Grid(title, ("difference", *LEVELS), rows)


def map_notes(results: Results) -> list[str]:
    """What `bmn` could not be given, where it is in the table: it is no comparison at equal size."""
    found = {name: system["map"] for name, system in results["systems"].items() if "map" in system}
    if not found:
        return []
    reach = next(iter(found.values()))
    baseline, own = results["baseline"], reach["trained"]
    others = reach.get(baseline)
    crops = f" ({baseline}: {others['crops']} of {others['length']})" if others else ""
    width = f" ({baseline}: {others['width']})" if others else ""
    longer = f"{100 * reach['longer']:.0f} % of the test instances are" if reach["longer"] else "no test instance is"
    return [
        f"{' and '.join(found)}: the map grows with length times duration, hence {own['crops']} crops of "
        f"{own['length']} positions per step of training{crops} and width {own['width']}{width}; {longer} longer than "
        f"the {reach['durations']} positions that it can hold."
    ]
