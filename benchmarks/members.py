"""What several members bring, what their differences bring, and what fusing alone brings, beside what they cost.

    python benchmarks/members.py tug gesture --root ../shared/data --out runs/members-benchmark

Per data set four runs are made, all on the same folds: `tzoom fit` as it is (three networks that differ), three `tzn`
that differ in their seeds and folds only, and three `actionformer` alike. Printed is mAP on the test recordings of the
first network alone and of all three fused, beside the FLOPs of a minute of recording, relative to one `actionformer`,
and the difference to three fused `actionformer` with 95 % intervals over recordings.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fit import SHOWN, TIOUS, baseline_settings, console, difference, make, scores
from temporalzoom.config import load_config
from temporalzoom.inference.members import TIOU
from temporalzoom.runs.members import Members, read_members, write_members
from temporalzoom.workflows.cost_members import members_cost
from temporalzoom.workflows.evaluate import Evaluation, evaluate
from temporalzoom.workflows.fit import MEMBERS, fit
from temporalzoom.workflows.sweep import Member, run_sweep

COUNT = 3
ALIKE = ("model.name=tzn", "bdr.enabled=true")


def measure(name: str, root: Path, out: Path, overrides: list[str]) -> dict[str, dict[str, float]]:
    recordings, annotations, options = make(name, root, out / name / "files")

    def fitted(folder: str, *settings: str) -> Path:
        given = [*settings, *overrides]
        made = fit(
            recordings, annotations, out / name / folder, options=options, members=COUNT, overrides=given,
            console=console,
        )  # fmt: skip
        return made.run

    runs = {"fit": fitted("fit")}
    stride = load_config(runs["fit"] / MEMBERS / "0" / "config.yaml").data.stride
    runs["tzn"] = fitted("alike", *ALIKE, f"data.stride={stride:g}")
    runs["actionformer"] = peers(runs["tzn"], out / name / "actionformer", overrides)
    systems: dict[str, Evaluation] = {}
    costs: dict[str, float] = {}
    for kind, run in runs.items():
        members = read_members(run)
        assert members is not None
        *single, together = members_cost(run, members, repeats=1, console=console)
        if kind != "fit":
            systems[f"one {kind}"] = evaluate(members.paths(run)[0], TIOUS, subset="test", console=console)
            costs[f"one {kind}"] = single[0].flops / single[0].recorded
        label = "three that differ (tzoom fit)" if kind == "fit" else f"three {kind}"
        systems[label] = evaluate(run, TIOUS, console=console)
        costs[label] = together.flops / together.recorded
    unit = costs["one actionformer"]
    show(name, systems, {system: cost / unit for system, cost in costs.items()})
    rows = {}
    for system, evaluation in systems.items():
        values = dict(zip(("avg", *map(str, SHOWN)), scores(evaluation), strict=True))
        rows[system] = {"flops": costs[system] / unit, **values}
    return rows


def peers(like: Path, out: Path, overrides: list[str]) -> Path:
    """`actionformer` on the folds of the members of another run, as one run."""
    members = read_members(like)
    assert members is not None
    runs = []
    for number, folder in enumerate(members.paths(like)):
        config = load_config(folder / "config.yaml")
        where = [f"data.annotations={config.data.annotations}", f"data.test_subset={config.data.test_subset}"]
        settings = [*baseline_settings(config, config.data.features), *where, f"seed={number}", *overrides]
        runs.append(Member(str(number), load_config(None, settings)))
    run_sweep(runs, out, thresholds=TIOUS, validate=members.folders == members.validated, console=console)
    write_members(out, Members(tuple(member.name for member in runs), members.thresholds, TIOU))
    return out


def show(name: str, systems: dict[str, Evaluation], costs: dict[str, float]) -> None:
    table = Table(title=f"{name}: {len(next(iter(systems.values())).truth)} test recordings; mAP in %")
    for column in ("system", "FLOPs", "avg .3:.7", *(f"@{tiou}" for tiou in SHOWN), "avg - three actionformer"):
        table.add_column(column)
    control = systems["three actionformer"]
    for system, evaluation in systems.items():
        gap = "" if evaluation is control else difference(evaluation, control)[0]
        table.add_row(system, f"{costs[system]:.2f}x", *(f"{100 * value:.1f}" for value in scores(evaluation)), gap)
    Console(width=150).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="sbhar tug rats-coarse rats-fine salads gesture zoombench")
    parser.add_argument("--root", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--out", type=Path, default=Path("runs/members-benchmark"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings for all systems")
    arguments = parser.parse_args()
    for name in arguments.data:
        rows = measure(name, arguments.root, arguments.out.absolute(), arguments.set)
        (arguments.out / name / "result.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
