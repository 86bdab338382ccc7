"""`tzoom bench`: systems, seeds, intervals."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from temporalzoom.cli.app import Overrides, bench_app, notes, screen
from temporalzoom.errors import InputError

Folder = Annotated[Path, typer.Option("--data", help="The data set's folder, as its authors publish it")]
BenchOut = Annotated[Path | None, typer.Option(help="Folder of the trainings and results.json; runs/bench/<name>")]
Seeds = Annotated[str, typer.Option(help="Seeds, comma-separated")]


DataSet = Annotated[str, typer.Option("--data", help="zoombench, sbhar, sbhar-stem or tug")]
Root = Annotated[Path | None, typer.Option(help="The data set's folder; zoombench has none")]
Systems = Annotated[str | None, typer.Option(help="Only these systems, comma-separated")]
Folds = Annotated[
    int | None, typer.Option(min=2, help="Cross-validate: all subjects in turn, dealt to so many folds, are the test")
]
Stem = Annotated[bool, typer.Option("--stem", help="Learned convolutions over the samples in the place of windows")]


@bench_app.command("sbhar", epilog="Example: tzoom bench sbhar --data data/sbhar --seeds 0,1,2")
def bench_sbhar(
    data: Folder,
    overrides: Overrides = None,
    out: BenchOut = None,
    seeds: Seeds = "0,1,2",
    systems: Systems = None,
    folds: Folds = None,
    stem: Stem = False,
) -> None:
    """Daily activities and transitions, phone at the waist (SBHAR/HAPT, UCI split)."""
    _bench("sbhar-stem" if stem else "sbhar", data, overrides, out, seeds, systems=systems, folds=folds)


@bench_app.command("tug", epilog="Example: tzoom bench tug --data data/tug --seeds 0,1,2")
def bench_tug(
    data: Folder,
    overrides: Overrides = None,
    out: BenchOut = None,
    seeds: Seeds = "0,1,2",
    systems: Systems = None,
    folds: Folds = None,
) -> None:
    """Timed-up-and-go runs, phone in the pocket; the last seven subjects are the test."""
    _bench("tug", data, overrides, out, seeds, systems=systems, folds=folds)


@bench_app.command("rats", epilog="Example: tzoom bench rats --data data/rats --seeds 0,1,2")
def bench_rats(
    data: Folder, overrides: Overrides = None, out: BenchOut = None, seeds: Seeds = "0,1,2", systems: Systems = None
) -> None:
    """Social behaviour of two rats from pose keypoints with gaps; recordings 45 to 58 are the test."""
    _bench("rats", data, overrides, out, seeds, systems=systems)


@bench_app.command("retrofit", epilog="Example: tzoom bench retrofit --data tug --root data/tug --seeds 0,1,2")
def bench_retrofit(
    data: DataSet,
    overrides: Overrides = None,
    root: Root = None,
    out: BenchOut = None,
    seeds: Seeds = "0,1,2",
    systems: Systems = None,
) -> None:
    """The field's detectors and uniform-6, each without and with BDR."""
    _bench(data, root, overrides, out, seeds, "retrofit", systems)


@bench_app.command("systems", epilog="Example: tzoom bench systems --data zoombench --seeds 0,1,2")
def bench_systems(
    data: DataSet,
    overrides: Overrides = None,
    root: Root = None,
    out: BenchOut = None,
    seeds: Seeds = "0,1,2",
    systems: Systems = None,
) -> None:
    """The field's detectors beside ours: accuracy, executed FLOPs, time, weights."""
    _bench(data, root, overrides, out, seeds, "systems", systems)


@bench_app.command("strides", epilog="Example: tzoom bench strides --data data/sbhar --seeds 0,1,2")
def bench_strides(
    data: Folder, overrides: Overrides = None, out: BenchOut = None, seeds: Seeds = "0,1,2", systems: Systems = None
) -> None:
    """SBHAR with a position every 25, 12 and 6 samples: what finer strides bring, and cost."""
    _bench("sbhar-stem", data, overrides, out, seeds, "strides", systems)


def _bench(
    name: str,
    data: Path | None,
    overrides: list[str] | None,
    out: Path | None,
    seeds: str,
    benchmark: str = "ours",
    systems: str | None = None,
    folds: int | None = None,
) -> None:
    from temporalzoom.experiments.real_data import results_file, run_bench
    from temporalzoom.experiments.real_data_tables import tables
    from temporalzoom.workflows.recipes import BENCHMARKS
    from temporalzoom.workflows.sweep import SweepInterrupted

    try:
        numbers = [int(seed) for seed in seeds.split(",")]
    except ValueError:
        raise InputError(f"--seeds {seeds!r}: expected whole numbers, such as 0,1,2") from None
    # Systems that two benchmarks share are trained once: their runs stand in the same folder.
    folder = out or Path("runs/bench") / name
    try:
        results = run_bench(
            name,
            data,
            folder,
            benchmark=BENCHMARKS[benchmark],
            seeds=numbers,
            systems=None if systems is None else systems.split(","),
            folds=folds,
            overrides=overrides or (),
            console=notes,
        )
    except SweepInterrupted as stop:
        again = shlex.join(sys.argv[1:])
        notes.print(f"{stop}\ngo on with: tzoom {again}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(130) from None
    for table in tables(results):
        screen.print(table)
    screen.print(f"wrote {folder / results_file(BENCHMARKS[benchmark], folds)}", highlight=False, soft_wrap=True)
