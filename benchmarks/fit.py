"""`tzoom fit` without any setting, on data sets that it was not told about, beside `actionformer`.

    python benchmarks/fit.py tug sbhar gesture --root ../shared/data --members 3 --out runs/fit-benchmark

Every data set is written as a user would have it, signals and a file of annotations, and fitted. `actionformer` is as
published but for its width, 128 as that of the members, on the same recordings, at the same stride, with the training
defaults of this package. Prints mAP on the test recordings: each member alone, all of them fused, and the difference of
fused members and `actionformer` with 95 % intervals over recordings.

With --student two more rows: the student of `tzoom fit --student`, and the same configuration trained on the same
recordings by their annotations `alone`, without a teacher. The difference of the two is what teaching is worth.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from temporalzoom.config import Config, load_config
from temporalzoom.datasets.sources import open_source
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from temporalzoom.formats import read_annotations
from temporalzoom.metrics.bootstrap import bootstrap_interval, bootstrap_map, draw_recordings
from temporalzoom.runs.members import read_members
from temporalzoom.workflows.evaluate import Evaluation, evaluate
from temporalzoom.workflows.fit import DATA, fit
from temporalzoom.workflows.gather import GatherOptions
from temporalzoom.workflows.sweep import Member, run_sweep

TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SHOWN = (0.5, 0.7, 0.8, 0.9)
RESAMPLES = 1000
console = Console(stderr=True)


def entry(recording, length: int, rate: float, subset: str) -> dict:
    """Of the annotation file, as a user has it."""
    end = length / rate
    rows = [
        {"label": label, "segment": [min(start, end), min(stop, end)]} for start, stop, label, _ in recording.segments
    ]
    subject = {"subject": recording.extra["subject"]} if "subject" in recording.extra else {}
    return {"subset": subset, "fps": rate, "duration": end, "annotations": rows, **subject}


def inertial(name: str, root: Path, folder: Path) -> None:
    """SBHAR with UCI's split, TUG with its last seven people as the test."""
    data = load_config(name, [f"data.root={root / name}"]).data
    annotations, store = open_source(data)
    signals = {recording: store.read(recording) for recording in annotations.recordings}
    database = {n: entry(r, len(signals[n]), r.fps, r.subset) for n, r in annotations.recordings.items()}
    write(folder, signals, database)


def rats(kind: str, root: Path, folder: Path) -> None:
    """Poses of two rats; recordings 45 to 58 are the test."""
    signals = np.load(root / "rats" / "pose.npz")
    recordings = read_annotations(root / "rats" / f"{kind}.json").recordings
    database = {
        name: entry(r, len(signals[name]), 1.0, "test" if int(name.removeprefix("rat")) >= 45 else "train")
        for name, r in recordings.items()
    }
    write(folder, {name: signals[name] for name in database}, database)


def salads(root: Path, folder: Path) -> None:
    """50Salads: class scores per second; the first fold is the test."""
    signals = np.load(root / "salads50" / "scores.npz")
    recordings = read_annotations(root / "salads50" / "annotations.json").recordings
    database = {name: entry(r, len(signals[name]), 1.0, r.subset) for name, r in recordings.items()}
    for name, values in database.items():
        values["subject"] = name.split("-")[0]
    write(folder, {name: signals[name] for name in database}, database)


# Other tempi and densities of the embedded benchmark than those that rules and recipes were made on.
GENERATORS = {
    "zoombench": ZoomBench(sequences=480, test_sequences=96),
    "zoombench-fast": ZoomBench(test_sequences=96, shortest=0.3, longest=3.0, mean_gap=0.8, stride=2, window=4),
    "zoombench-slow": ZoomBench(test_sequences=96, length=1024, shortest=4.0, longest=60.0, mean_gap=10.0),
    "zoombench-dense": ZoomBench(test_sequences=96, mean_gap=0.4, back_to_back=0.5, overlap=0.3),
    "zoombench-sparse": ZoomBench(test_sequences=96, length=1024, mean_gap=20.0, flashes_per_minute=20.0),
    "zoombench-many": ZoomBench(test_sequences=96, classes=24),
}


def zoombench(bench: ZoomBench, folder: Path) -> None:
    signals, database = {}, {}
    for subset in ("train", "test"):
        for sample in make_zoombench(bench, 7, subset).samples:
            signals[sample.name] = sample.signal
            rows = [{"label": label, "segment": [start, end]} for start, end, label, _ in sample.segments]
            rate = sample.grid.fps / sample.grid.stride
            database[sample.name] = {"subset": subset, "fps": rate, "annotations": rows}
    write(folder, signals, database)


def write(folder: Path, signals: dict, database: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "signals.npz", **signals)
    (folder / "annotations.json").write_text(json.dumps({"database": database}))


def make(name: str, root: Path, folder: Path) -> tuple[Path, Path | None, GatherOptions]:
    """What a user would give to `tzoom fit`."""
    if name == "gesture":
        return root / "gesture_phase", None, GatherOptions(background=("Rest",), subject="^[abc]", test=("c*",))
    if not (folder / "annotations.json").is_file():
        if name in ("sbhar", "tug"):
            inertial(name, root, folder)
        elif name.startswith("rats-"):
            rats(name.removeprefix("rats-"), root, folder)
        elif name == "salads":
            salads(root, folder)
        else:
            zoombench(GENERATORS[name], folder)
    return folder / "signals.npz", folder / "annotations.json", GatherOptions()


def run(name: str, root: Path, out: Path, members: int, overrides: list[str], student: bool = False) -> None:
    recordings, annotations, options = make(name, root, out / name / "files")
    began = time.monotonic()
    fitted = fit(
        recordings,
        annotations,
        out / name / "run",
        options=options,
        members=members,
        overrides=overrides,
        student=student,
        console=console,
    )
    minutes = (time.monotonic() - began) / 60
    peer = baseline(fitted.run, out / name, overrides)
    folders = read_members(fitted.run).paths(fitted.run)
    systems = {folder.name: evaluate(folder, TIOUS, subset="test", console=console) for folder in folders}
    systems["fused"] = evaluate(fitted.run, TIOUS, console=console)
    systems["actionformer"] = evaluate(peer, TIOUS, subset="test", console=console)
    if fitted.student is not None:
        systems["student"] = evaluate(fitted.student, TIOUS, subset="test", console=console)
        systems["alone"] = evaluate(untaught(fitted.student, out / name), TIOUS, subset="test", console=console)
    title = f"{name}: fitted in {minutes:.1f} min; {len(systems['fused'].truth)} test recordings; mAP in %"
    table = Table(title=title)
    for column in ("system", "avg .3:.7", *(f"@{tiou}" for tiou in SHOWN)):
        table.add_column(column)
    for system, evaluation in systems.items():
        table.add_row(system, *(f"{100 * value:.1f}" for value in scores(evaluation)))
    differences = difference(systems["fused"], systems["actionformer"])
    table.add_row("fused - actionformer", *differences)
    if fitted.student is not None:
        table.add_row("student - alone", *difference(systems["student"], systems["alone"]))
    table.add_row("held out, one member each", *(f"{100 * value:.1f}" for value in scores(fitted.held_out)))
    Console(width=150).print(table)
    stored = {system: dict(zip(("avg", *map(str, SHOWN)), scores(e), strict=True)) for system, e in systems.items()}
    (out / name / "result.json").write_text(json.dumps({"minutes": minutes, **stored}, indent=1))


def baseline(run: Path, out: Path, overrides: list[str]) -> Path:
    """`actionformer`, trained on all recordings that the members were trained on."""
    first = load_config(run / "members" / "0" / "config.yaml")
    where = [f"data.annotations={run / DATA / 'annotations.json'}"]
    settings = [*baseline_settings(first, run / DATA / "signals"), *where, *overrides]
    run_sweep([Member("actionformer", load_config(None, settings))], out, thresholds=TIOUS, console=console)
    return out / "actionformer"


def baseline_settings(first: Config, features: Path | None) -> list[str]:
    """As published, at the stride of the first member."""
    data = first.data
    return [
        f"data.features={features}", "data.raw=true",
        f"data.stride={data.stride:g}", f"data.window={2 * data.stride:g}", f"data.missing={data.missing}",
        f"training.length={first.training.length}", f"training.batch_size={first.training.batch_size}",
        f"training.steps={max(first.training.steps, 1200)}", "model.name=actionformer", "model.width=128",
        "model.standardize=true", "bdr.enabled=false", "augment.drop=0", "augment.warp=0",
        f"model.levels={first.model.levels}",
    ]  # fmt: skip


def untaught(student: Path, out: Path) -> Path:
    """The student without its teachers: everything else is the same, its seed too."""
    config = load_config(student / "config.yaml")
    alone = config.model_copy(update={"data": config.data.model_copy(update={"soft_labels": None})})
    run_sweep([Member("alone", alone)], out, thresholds=TIOUS, console=console)
    return out / "alone"


def scores(evaluation: Evaluation) -> list[float]:
    found = evaluation.detection.mAP
    return [float(np.mean([found[tiou] for tiou in TIOUS[:5]])), *(found[tiou] for tiou in SHOWN)]


def difference(one: Evaluation, other: Evaluation) -> list[str]:
    draws = draw_recordings(len(one.truth), RESAMPLES)
    results = [bootstrap_map(e.truth, e.predictions, TIOUS, draws=draws) for e in (one, other)]
    words = []
    for tious in (TIOUS[:5], *((tiou,) for tiou in SHOWN)):
        (first, samples), (second, others) = (result.over(tious) for result in results)
        low, high = bootstrap_interval(samples - others)
        words.append(f"{100 * (first - second):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]")
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = ("sbhar", "tug", "rats-coarse", "rats-fine", "salads", "gesture", *GENERATORS)
    parser.add_argument("data", nargs="+", choices=known, metavar="DATA", help=", ".join(known))
    parser.add_argument("--root", type=Path, default=Path("../shared/data"), help="folder of the data sets")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--student", action="store_true", help="also the student, and the same network untaught")
    parser.add_argument("--out", type=Path, default=Path("runs/fit-benchmark"))
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings for all systems")
    arguments = parser.parse_args()
    for name in arguments.data:
        run(name, arguments.root, arguments.out.absolute(), arguments.members, arguments.set, arguments.student)


if __name__ == "__main__":
    main()
