"""Run a table: a sweep of its trainings (systems x seeds), then its measures over their predictions, stored as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.experiments.data_sets import (
    data_set_named,
    default_seeds,
    fold_settings,
    quick_settings,
    training_config,
)
from temporalzoom.experiments.measures import THRESHOLDS, Bench, Predictions, pooled
from temporalzoom.experiments.provenance import provenance, record, stored_tree, trained_by
from temporalzoom.experiments.reading import DEFAULT_TABLE
from temporalzoom.experiments.registry import find_table
from temporalzoom.experiments.sizing import matched_sizes
from temporalzoom.formats import read_predictions
from temporalzoom.workflows.sweep import PREDICTIONS, RESULT, Member, run_sweep

RESAMPLES = 10_000
QUICK_RESAMPLES = 100


def run_bench(
    data_set: str,
    out: Path,
    *,
    table: str = DEFAULT_TABLE,
    root: Path | None = None,
    seeds: Sequence[int] | None = None,
    systems: Sequence[str] | None = None,
    folds: int | None = None,
    overrides: Sequence[str] = (),
    quick: bool = False,
    workers: int | None = None,
    resamples: int | None = None,
    console: Console | None = None,
) -> dict[str, Any]:
    """Train what is not trained yet, measure it, write `results_file`. Returns what that holds.

    root: the data set's folder. seeds: default those of its published tables. systems: of those of the table, default
    all. folds: cross-validate; every recording is then scored, by a network that has not seen its subject, and a system
    has one training per seed and fold. overrides: settings for all systems alike, after their own. quick: a smoke test,
    one seed, few steps and sequences; what it stores says so.
    """
    data_set_named(data_set)
    found = find_table(table)
    settings = _chosen(found.trainings(data_set), systems, table)
    seeds = default_seeds(data_set, quick) if seeds is None else seeds
    parts = fold_settings(data_set, folds)
    changes = [*(quick_settings(data_set) if quick else ()), *overrides]
    members = _members(data_set, root, settings, seeds, parts, changes)
    truth = _truth(next(iter(members.values())))  # also: errors before hours of training
    sizes = matched_sizes(settings, lambda own: training_config(data_set, root, seeds[0], own, changes))
    if sizes:
        members = _members(data_set, root, settings, seeds, parts, changes, sizes)
    done = _train([one for several in members.values() for one in several], out, data_set, workers, console)
    first = {system: members[system, seeds[0]][0] for system in settings}
    bench = Bench(
        data_set,
        truth,
        configs={system: one.config for system, one in first.items()},
        folders={system: out / one.name for system, one in first.items()},
        predictions={s: [_predictions(members[s, seed], out) for seed in seeds] for s in settings},
        runs={s: [pooled([done[one.name] for one in members[s, seed]]) for seed in seeds] for s in settings},
        resamples=resamples or (QUICK_RESAMPLES if quick else RESAMPLES),
        console=console,
        parts={s: [[out / one.name for one in members[s, seed]] for seed in seeds] for s in settings},
    )
    trained = trained_by([out / one.name for several in members.values() for one in several])
    results: dict[str, Any] = {
        "data_set": data_set,
        "table": table,
        "seeds": list(seeds),
        "folds": folds,
        **({"quick": True} if quick else {}),
        "overrides": list(overrides),
        "test_recordings": len(truth),
        "test_instances": sum(map(len, truth.values())),
        "resamples": bench.resamples,
        "provenance": {**provenance(), "trained_by": trained},
        **found.measure(bench),
        "configurations": {system: stored_tree(config) for system, config in bench.configs.items()},
    }
    written = out / results_file(table, folds, quick)
    with replacing(written) as file:
        json.dump(results, file, indent=1)
    draw = getattr(found, "draw", None)
    if draw is not None:
        draw(results, written.with_suffix(".svg"))
    return results


def results_file(table: str, folds: int | None, quick: bool = False) -> str:
    """Where the results of a table stand: tables of one data set share a folder, and the trainings in it."""
    name = "results.json" if table == DEFAULT_TABLE else f"results-{table}.json"
    name = name if folds is None else f"folds-{folds}-{name}"
    return f"quick-{name}" if quick else name


def _chosen(
    trainings: dict[str, tuple[str, ...]], systems: Sequence[str] | None, table: str
) -> dict[str, tuple[str, ...]]:
    for system in systems or ():
        if system not in trainings:
            raise InputError(f"--systems: table {table} has no {system!r}; there are {', '.join(trainings)}")
    return {name: trainings[name] for name in systems} if systems else trainings


def _members(
    data_set: str,
    root: Path | None,
    systems: Mapping[str, Sequence[str]],
    seeds: Sequence[int],
    parts: Mapping[str, Sequence[str]],
    overrides: Sequence[str],
    sizes: Mapping[str, Sequence[str]] | None = None,
) -> dict[tuple[str, int], list[Member]]:
    """By system and seed: one training, or one of each fold. Seed after seed: an early stop leaves all systems.

    sizes: settings of some systems that were found for them, and hold whatever the overrides say.
    """

    def member(system: str, seed: int, part: str) -> Member:
        try:
            config = training_config(
                data_set, root, seed, systems[system], overrides, (sizes or {}).get(system, ()), parts[part]
            )
        except InputError as error:
            raise InputError(f"{system}: {error}") from None
        return Member(f"{system}/seed-{seed}{part}", config)

    return {(system, seed): [member(system, seed, part) for part in parts] for seed in seeds for system in systems}


def _truth(members: Sequence[Member]) -> Predictions:
    truth: Predictions = {}
    for one in members:
        test = load_data(one.config.data, one.config.seed, train=False).test
        assert test is not None
        truth |= test.truth()
    return truth


def _train(
    members: Sequence[Member], out: Path, data_set: str, workers: int | None, console: Console | None
) -> dict[str, dict[str, Any]]:
    """By name of the member: what its `result.json` holds."""
    for one in members:
        folder = out / one.name
        if not (folder / RESULT).exists() and not any((folder / "checkpoints").glob("step-*")):
            record(folder)
    sweep = run_sweep(members, out, workers=workers, thresholds=THRESHOLDS, curve=True, console=console)
    if sweep.failed:
        name, reason = next(iter(sweep.failed.items()))
        raise InputError(f"bench {data_set}: {len(sweep.failed)} trainings failed, the first {name}: {reason}")
    return sweep.done


def _predictions(members: Sequence[Member], out: Path) -> Predictions:
    found = [read_predictions(out / one.name / PREDICTIONS) for one in members]
    return {name: segments for part in found for name, segments in part.items()}
