"""`tzoom` in this process with wrong arguments: the rule, the files that commands read, and odd options."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import specimens
import targets
from mutations import NUMBERS, WORDS

from members_here import run_members_here
from small_walks import write_walks
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
        pytest.MonkeyPatch.context() as processes,
    ):
        try:
            run_members_here(processes)
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def rule(arguments: Any) -> None:
    code, out, err = run(arguments)
    assert "\x1b" not in out + err and "Traceback" not in err, (code, err)
    # A sweep of which members fail, and a data check that finds problems, end with 1.
    assert code in (0, 2) or (code == 1 and arguments[0] in ("sweep", "data")), (code, out, err)
    if code:
        assert "error: " in err or "Usage: " in err or "failed: " in err or "Error" in err or code == 1, err
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
    write_walks(folder / "walks", 4)
    data = f"data: {{source: folder, stride: 1, annotations: {folder}/a.json, features: {folder}/features}}\n"
    (folder / "mine.yaml").write_text(data)
    return folder


def settings_of(draw: Draw) -> list[str]:
    """Overrides, most of them wrong."""
    makers = [t.make for t in targets.TARGETS if t.name == "configuration: overrides"]
    made = makers[0](draw, Path()) if draw.random() < 0.6 else []
    return [str(part) for part in made if "\0" not in str(part)]


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
