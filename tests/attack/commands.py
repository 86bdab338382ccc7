"""Every command with wrong files and wrong options, in this process: exit code 0, or 2 and a line that says why."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import specimens
import targets
from fuzzing import Target
from mutations import NUMBERS, WORDS

from temporalzoom.cli import main
from temporalzoom.errors import InputError
from temporalzoom.formats import write_segments
from temporalzoom.segments import Segments

Draw = random.Random


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def run(arguments: list[str]) -> Outcome:
    """`tzoom ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["tzoom", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def rule(arguments: Any) -> None:
    code, out, err = run(arguments)
    assert "\x1b" not in out + err and "Traceback" not in err, (code, err)
    assert code in (0, 2), (code, out, err)
    if code == 2:
        assert "error: " in err or "Usage: " in err or "failed: " in err or "Error" in err, err
        raise InputError("refused")


@cache
def workspace() -> Path:
    """A folder with everything that commands read: features, annotations, predictions, a run, a video."""
    folder = Path(mkdtemp(prefix="tzoom-attack-"))
    (folder / "features").mkdir()
    for name, length in (("walk1", 250), ("walk2", 225)):
        features = np.random.default_rng(0).normal(size=(length, 8)).astype(np.float32)
        np.save(folder / "features" / f"{name}.npy", features)
    (folder / "run").mkdir()
    for name, content in specimens.checkpoint().items():
        (folder / "run" / name).write_bytes(content)
    (folder / "video.mp4").write_bytes(specimens.videos()["x.mp4"])
    write_segments(folder / "found.json", specimens.SEGMENTS)
    write_segments(folder / "short.csv", {"video": Segments([0.1, 0.4], [0.3, 0.6], ["run", "=jump"], [0.9, 0.2])})
    (folder / "a.json").write_text(json.dumps(specimens.ANNOTATIONS))
    return folder


def annotation_file(draw: Draw, folder: Path) -> str:
    makers = [t.make for t in targets.TARGETS if t.name.startswith(("import:", "annotations:", "predictions:"))]
    return str(draw.choice(makers)(draw, folder))


def signal_file(draw: Draw, folder: Path) -> str:
    makers = [t.make for t in targets.TARGETS if t.name.startswith(("signals:", "features:"))]
    return str(draw.choice(makers)(draw, folder))


def odd(draw: Draw, *sound: str) -> str:
    return (
        draw.choice((*NUMBERS, *(word for word in WORDS if "\0" not in word)))
        if draw.random() < 0.4
        else draw.choice(sound)
    )


def an_option(draw: Draw, options: dict[str, tuple[str, ...]]) -> list[str]:
    chosen = draw.sample(list(options), min(draw.randrange(3), len(options)))
    return [part for name in chosen for part in (name, odd(draw, *options[name]))]


def data_import(draw: Draw, folder: Path) -> list[str]:
    options = {
        "--fps": ("10", "25"), "--duration": ("10", "walk1=10"), "--test": ("walk1",), "--columns": ("label=class",),
        "--time-unit": ("seconds", "frames"), "--decimal": ("comma",), "--point-events": ("0.5",), "--tier": ("run",),
        "--sheet": ("segments",), "--starts-at": ("2024-04-03 10:00:00",), "--behaviours": ("run",),
    }  # fmt: skip
    return ["data", "import", annotation_file(draw, folder), "--out", str(folder / "o.json"), *an_option(draw, options)]


def evaluate(draw: Draw, folder: Path) -> list[str]:
    predictions = targets.json_file("p.json", (specimens.PREDICTIONS,))(draw, folder)
    truth = targets.json_file("t.json", (specimens.ANNOTATIONS,))(draw, folder)
    files = ["--predictions", str(predictions), "--truth", str(truth)]
    if draw.random() < 0.5:
        files[draw.choice((1, 3))] = str(workspace() / "found.json")
    options = {
        "--tiou": ("0.5", "0.3,0.5"),
        "--subset": ("train", "test"),
        "--protocol": ("anet", "th14"),
        "--threshold": ("0.5",),
    }
    return ["eval", *files, *an_option(draw, options), *draw.choice(((), ("--json",), ("--proposals",)))]


def localize(draw: Draw, folder: Path) -> list[str]:
    options = {
        "--threshold": ("0", "0.5"), "--merge-gap": ("1",), "--min-length": ("0.1",), "--top": ("3",), "--fps": ("10",),
        "--stride": ("4",), "--window": ("8",), "--set": ("inference.sigma=0.3", "inference.max_length=100"),
    }  # fmt: skip
    recording = signal_file(draw, folder) if draw.random() < 0.6 else str(workspace() / "features" / "walk1.npy")
    suffix = draw.choice((".json", ".csv", ".tsv", ".xlsx", ".vtt", ".srt", ".eaf", ".rttm", ".boris.tsv", ".x", ""))
    out = [] if draw.random() < 0.5 else ["--out", str(folder / f"found{suffix}")]
    return ["localize", recording, "--model", str(workspace() / "run"), *out, *an_option(draw, options)]


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


def train(draw: Draw, folder: Path) -> list[str]:
    targets.json_file("a.json", (specimens.ANNOTATIONS,))(draw, folder)
    settings = [*specimens.TINY[4:], "data.source=folder", "data.stride=1", "training.steps=1", "training.log_every=1"]
    sound = workspace() if draw.random() < 0.4 else folder
    settings += [f"data.annotations={sound}/a.json", f"data.features={workspace()}/features"]
    shutil.rmtree(folder / "run", ignore_errors=True)
    (folder / "mine.yaml").write_text("seed: 0\n")
    return ["train", str(folder / "mine.yaml"), "--out", str(folder / "run"), *settings, *options_of_data(draw)]


def options_of_data(draw: Draw) -> list[str]:
    keys = (
        "data.stride",
        "data.window",
        "data.fps",
        "data.prefix",
        "data.train_subset",
        "training.length",
        "model.width",
    )
    return [f"{draw.choice(keys)}={odd(draw, '4', '16')}"] if draw.random() < 0.4 else []


def clips(draw: Draw, folder: Path) -> list[str]:
    options = {"--top": ("1",), "--padding": ("0.1",), "--label": ("run",), "--threshold": ("0.5",), "--fps": ("25",)}
    video = str(targets.video_file(draw, folder)) if draw.random() < 0.5 else str(workspace() / "video.mp4")
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
        str(targets.video_file(draw, folder)),
        "--out",
        str(folder / "features"),
        *an_option(draw, options),
    ]


COMMANDS = (
    Target("tzoom data import", data_import, rule, 3),
    Target("tzoom eval", evaluate, rule, 2),
    Target("tzoom localize", localize, rule, 2),
    Target("tzoom budget", budget, rule, 2),
    Target("tzoom train", train, rule, 1),
    Target("tzoom clips", clips, rule, 0.5),
    Target("tzoom extract", extract, rule, 0.3),
)
