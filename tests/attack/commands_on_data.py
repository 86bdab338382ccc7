"""Commands that work on data, with wrong files and options: what their arguments are."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import wrong_models
from command_line import an_option, annotation_file, odd, settings_of, signal_file, workspace
from wrong_texts import tables, text_file

Draw = random.Random


def data_import(draw: Draw, folder: Path) -> list[str]:
    options = {
        "--fps": ("10", "25"), "--duration": ("10", "walk1=10"), "--test": ("walk1",), "--columns": ("label=class",),
        "--time-unit": ("seconds", "frames"), "--decimal": ("comma",), "--point-events": ("0.5",), "--tier": ("run",),
        "--sheet": ("segments",), "--starts-at": ("2024-04-03 10:00:00",), "--behaviours": ("run",),
    }  # fmt: skip
    return ["data", "import", annotation_file(draw, folder), "--out", str(folder / "o.json"), *an_option(draw, options)]


def budget(draw: Draw, folder: Path) -> list[str]:
    options = {
        "--bin": ("1", "10"),
        "--duration": ("20", "walk1=20"),
        "--threshold": ("0.5",),
        "--merge-gap": ("1",),
        "--fps": ("10",),
    }
    out = [] if draw.random() < 0.6 else ["--out", str(folder / "b.csv")]
    return ["budget", annotation_file(draw, folder), *out, *an_option(draw, options)]


def clips(draw: Draw, folder: Path) -> list[str]:
    options = {"--top": ("1",), "--padding": ("0.1",), "--label": ("run",), "--threshold": ("0.5",), "--fps": ("25",)}
    video = str(wrong_models.video_file(draw, folder)) if draw.random() < 0.5 else str(workspace() / "video.mp4")
    found = annotation_file(draw, folder) if draw.random() < 0.4 else str(workspace() / "short.csv")
    return ["clips", video, found, "--out", str(folder / "clips"), *an_option(draw, options)]


def extract(draw: Draw, folder: Path) -> list[str]:
    options = {
        "--stride": ("4",),
        "--window": ("8",),
        "--fps": ("10",),
        "--option": ("size=16",),
        "--backbone": ("motion",),
    }
    return [
        "extract",
        str(wrong_models.video_file(draw, folder)),
        "--out",
        str(folder / "features"),
        *an_option(draw, options),
    ]


def data_check(draw: Draw, folder: Path) -> list[str]:
    config = wrong_models.yaml_file(draw, folder) if draw.random() < 0.3 else workspace() / "mine.yaml"
    more = [] if draw.random() < 0.5 else [f"data.annotations={annotation_file(draw, folder)}"]
    return ["data", "check", str(config), *more, *settings_of(draw)]


def make_zoombench(draw: Draw, folder: Path) -> list[str]:
    knobs = ("length", "sequences", "dimension", "classes", "longest", "mean_gap", "noise", "seed", "nothing")
    small = ["length=60", "sequences=2", "test_sequences=1"]
    wrong = [f"{draw.choice(knobs)}={odd(draw, '3', '8', '0.5')}" for _ in range(draw.randrange(3))]
    return ["data", "make-zoombench", *small, *wrong, "--out", str(folder / "bench")]


def make_zoombench_context(draw: Draw, folder: Path) -> list[str]:
    knobs = ("length", "sequences", "dimension", "between", "aborted", "stray", "interrupted", "noise", "longest", "no")
    small = ["length=200", "sequences=2", "test_sequences=1"]
    wrong = [f"{draw.choice(knobs)}={odd(draw, '3', '8', '0.5')}" for _ in range(draw.randrange(3))]
    return ["data", "make-zoombench-context", *small, *wrong, "--out", str(folder / "context")]


def make_zoombench_video(draw: Draw, folder: Path) -> list[str]:
    shutil.rmtree(folder / "clips", ignore_errors=True)
    wrong = {"--clips": ("1", "x"), "--seconds": ("0", "nan"), "--seed": ("-1",), "--size": ("7",), "--fps": ("0",)}
    small = ["--clips", "2", "--seconds", "6", "--size", "32", "--fps", "10"]
    chosen = draw.sample(list(wrong), draw.randrange(2))
    more = [part for name in chosen for part in (name, draw.choice(wrong[name]))]
    return ["data", "make-zoombench-video", "--out", str(folder / "clips"), *small, *more]


def cuts(draw: Draw, folder: Path) -> list[str]:
    options = {"--threshold": ("0.5", "2"), "--nothing": ("1",)}
    return ["cuts", str(wrong_models.video_file(draw, folder)), *an_option(draw, options)]


FEW = ("training.steps=2", "training.length=64", "training.batch_size=2", "training.warmup_steps=1", "model.width=16")


def fit(draw: Draw, folder: Path) -> list[str]:
    """Mostly with --dry-run; a few train."""
    options = {
        "--members": ("1", "2"), "--time": ("90s", "1h"), "--background": ("nod",), "--test": ("walk1", "*"),
        "--subject": ("p(.)", "("), "--fps": ("25",), "--label-column": ("label",), "--columns": ("label=class",),
        "--time-unit": ("seconds", "frames"), "--point-events": ("0.5",), "--tier": ("run",), "--decimal": ("comma",),
    }  # fmt: skip
    walks = workspace() / "walks"
    shutil.rmtree(folder / "run", ignore_errors=True)
    shutil.rmtree(folder / "signals", ignore_errors=True)
    annotations, recordings = str(walks / "annotations.csv"), walks / "signals"
    if draw.random() < 0.4:
        annotations = str(text_file(tables)(draw, folder)) if draw.random() < 0.5 else annotation_file(draw, folder)
    if draw.random() < 0.4:
        shutil.copytree(recordings, folder / "signals")
        (folder / "signals" / "walk0.csv").unlink()
        made = Path(signal_file(draw, folder))
        shutil.copy(made, folder / "signals" / f"walk0{made.suffix}") if made.is_file() else None
        recordings = folder / "signals"
    few = [f"--set={setting}" for setting in FEW]
    own = [f"--set={setting}" for setting in settings_of(draw)] if draw.random() < 0.3 else []
    how = ["--members", "1"] if draw.random() < 0.15 else ["--dry-run"]
    return [
        "fit",
        str(recordings),
        annotations,
        "--out",
        str(folder / "run"),
        *few,
        *own,
        *how,
        *an_option(draw, options),
    ]


def settings(draw: Draw, folder: Path) -> list[str]:
    section = [] if draw.random() < 0.5 else [odd(draw, "training", "model")]
    return ["settings", *section, *settings_of(draw), *draw.choice(((), ("--markdown",)))]


def recipes(draw: Draw, folder: Path) -> list[str]:
    name = odd(draw, "thumos14", "zoombench", "sbhar", "tug", "paper")
    return ["recipes", name, *settings_of(draw), *draw.choice(((), (), ("--rules",)))]
