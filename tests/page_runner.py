"""Run a page: its commands, made small, and its snippets, in their order, in a folder like the one it speaks of."""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.core import TyperGroup

from members_here import run_members_here
from pages import REPOSITORY, SHELLS, Block, blocks, commands, page_commands
from small_demo import make_demo_small
from temporalzoom import config as config_room
from temporalzoom.cli import app
from temporalzoom.config import load_config
from temporalzoom.experiments import bench
from temporalzoom.workflows.sweep_file import read_sweep

# Programs that are not run, and why: what they name is checked all the same.
NOT_RUN = {
    "pip": "would change the installation that the tests run in",
    "torchrun": "starts several processes; tests/training/test_several_processes.py does",
    "make": "installs first, and would run these tests; of what `make -n` shows, every `tzoom` is run",
}
# The lowest score lets a network that has learned nothing find something.
FEW_STEPS = """
training.steps=2 training.batch_size=2 training.length=48 training.warmup_steps=1 model.width=16
inference.min_score=1e-6
""".split()
FEW_SEQUENCES = "data.sequences=4 data.test_sequences=2 data.length=320".split()
FEW_FRAMES = "training.length=8 backbone.size=32 backbone.trainable=1".split()
CLIPS = 4
SMALL = (
    "data.sequences=3 data.test_sequences=2 data.length=96 "
    "model.width=16 model.heads=2 training.batch_size=2 training.length=64"
)
# By the name of a script of benchmarks/. Of options that are given twice the last one holds.
SMALL_BENCHMARKS = {
    "scaling": "--lengths 40 80 --width 16 --input-width 8 --repeats 1",
    "full_size": "--length 50 --input-width 8 --widths 16 8 --baseline-width 16 --heads 2 --product 32 --repeats 2 "
    "--peers temporalmaxer",
    "evaluation": "--segments 50 --classes 3 --repeats 1 --scnn nowhere",
    "training_cost": f"--steps 1 --repeats 2 {SMALL}",
    "supervision": f"--seeds 1 2 --steps 3 {SMALL}",
    "zoombench": f"--seeds 1 --out zoombench {SMALL} training.steps=3",
    "fit": "--members 1 --set training.steps=2 --set training.batch_size=2 --set training.length=48 "
    "--set model.width=16 --set inference.min_score=1e-6",
    "members": "--set training.steps=2 --set training.batch_size=2 --set training.length=48 --set model.width=16 "
    "--set inference.min_score=1e-6",
    "onnx_speed": "--length 64 --width 16 --classes 3 --repeats 2",
}
Run = Callable[..., tuple[int, str, str]]


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """`tzoom` and its arguments -> the command, such as `data check`, and its values; a usage error is raised."""
    command: Any = typer.main.get_command(app)
    context, names, arguments = None, [], words[1:]
    while isinstance(command, TyperGroup):
        context = command.context_class(command, parent=context, info_name=words[0])
        name, command, arguments = command.resolve_command(context, arguments)
        names.append(name)
    return " ".join(names), command.make_context(names[-1], list(arguments), parent=context).params


def settings_of(values: dict[str, Any]) -> list[str]:
    return [*(values.get("overrides") or ()), *(values.get("settings") or ())]


@dataclass
class PageRun:
    """A page that is run in `folder`, the working folder, by `tzoom`. Afterwards: what ran, what did not and what is
    quoted from the package, one entry each per command and snippet of the page."""

    folder: Path
    tzoom: Run
    patch: pytest.MonkeyPatch
    ran: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)

    def follow(self, page: Path) -> None:
        found = blocks(page.read_text(encoding="utf-8"))
        self._remove_what_is_made(page_commands(page))
        space: dict[str, Any] = {}
        for block in found:
            where = f"{page.name}, line {block.line}"
            if block.language == "yaml":
                shrink_yaml(load_yaml(block, self.folder))
            elif block.language == "python":
                self._snippet(block.text, where, space)
            elif block.language in (*SHELLS, ""):
                for words in commands(block):
                    self._command(words, where)

    def _remove_what_is_made(self, page: list[list[str]]) -> None:
        """What the page itself makes is not there yet."""
        for words in page:
            if words[0] == "tzoom" and parsed(words)[0] in ("fit", "train", "extract", "distill"):
                shutil.rmtree(self.folder / parsed(words)[1]["out"], ignore_errors=True)

    def _snippet(self, code: str, where: str, space: dict[str, Any]) -> None:
        if is_quoted(code):
            self.quoted.append(where)
            return
        with self.patch.context() as patch:
            patch.setattr(config_room, "load_config", in_few_steps)
            exec(compile(code, where, "exec"), space)
        self.ran.append(where)

    def _command(self, words: list[str], where: str) -> None:
        shown = shlex.join(words)
        if words[0] == "make":
            for line in make_lines(words):
                if Path(line[0]).name == "tzoom":
                    self._tzoom(["tzoom", *line[1:]], where)
        if words[0] in NOT_RUN:
            self.not_run.append(shown)
            return
        {"tzoom": self._tzoom, "python": self._benchmark}[words[0]](words, where)
        self.ran.append(shown)

    def _tzoom(self, words: list[str], where: str) -> None:
        with self.patch.context() as patch:
            make_demo_small(patch)
            if parsed(words)[0] in ("bench", "fit"):
                run_members_here(patch)
                patch.setattr(bench, "RESAMPLES", 50)
            code, out, err = self.tzoom(*smaller(words, self.folder)[1:])
        assert code == 0, f"{where}: {shlex.join(words)}: {err}"
        assert out.strip(), f"{where}: {shlex.join(words)}: printed nothing"

    def _benchmark(self, words: list[str], where: str) -> None:
        """`python benchmarks/NAME.py`, in this process: to start one takes longer. tests/test_benchmarks.py starts
        them."""
        script = REPOSITORY / words[1]
        with (
            self.patch.context() as patch,
            redirect_stdout(io.StringIO()) as out,
            redirect_stderr(io.StringIO()) as err,
        ):
            patch.setattr(sys, "argv", [*words[1:], *SMALL_BENCHMARKS[script.stem].split()])
            patch.syspath_prepend(str(script.parent))  # as Python does
            run_members_here(patch)
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit as stop:
                assert not stop.code, f"{where}: {shlex.join(words)}: {err.getvalue() or stop.code}"
        assert out.getvalue().strip(), f"{where}: {shlex.join(words)}: printed nothing"


def smaller(words: list[str], folder: Path) -> list[str]:
    """The command with few steps, sequences and clips; what lies in `/data` lies in `folder/data`."""
    words = [word.replace("=/data/", f"={folder}/data/") for word in words]
    name, values = parsed(words)
    if name in ("train", "data check", "cost") and values["config"] is not None:
        words = [*words, *(f"--set={setting}" for setting in few(name, values))]
    if name == "bench" and not values["show"]:
        sequences = FEW_SEQUENCES if values["data_set"].startswith("zoombench") else []
        words = [*words, "--seeds", "0", *(f"--set={setting}" for setting in (*FEW_STEPS, *sequences))]
    if name == "fit":
        count = [] if values["members"] else ["--members", "2"]
        words = [*words, *count, *(f"--set={setting}" for setting in FEW_STEPS)]
    if name in ("cost", "distill"):
        words = [*words, "--repeats", "1"]
    if name == "data make-zoombench-video":
        words = [*words, "--clips", str(CLIPS), "--seconds", "6", "--size", "64"]
    if name == "localize":  # the last of the clips
        words = [re.sub(r"clip_\d+\.mp4", f"clip_{CLIPS - 1:04d}.mp4", word) for word in words]
    if name == "clips":  # the rendered matches have other actions
        words = ["shake" if word == "serve" else word for word in words]
    if name == "cuts" or values.get("cuts"):  # a network at twenty frames per second
        words = [word if word != "videos/" else "videos/match8.mp4" for word in words]
    return words


def few(name: str, values: dict[str, Any]) -> list[str]:
    """Settings that make a command with a configuration small."""
    data = load_config(values["config"], settings_of(values)).data
    steps = FEW_STEPS if name == "train" else []
    frames = FEW_FRAMES if name == "train" and getattr(data, "videos", None) is not None else []
    return [*steps, *frames, *(FEW_SEQUENCES if data.source.startswith("zoombench") else [])]


def in_few_steps(path: Any = None, overrides: Any = ()) -> Any:
    """`load_config` for a snippet: its own width, but few steps and sequences."""
    settings = [setting for setting in FEW_STEPS if not setting.startswith("model.")]
    if load_config(path, overrides).data.source.startswith("zoombench"):
        settings += FEW_SEQUENCES
    return load_config(path, [*overrides, *settings])


def is_quoted(code: str) -> bool:
    """Shown, not run: a part of the package as it is."""
    return any(code.strip() in path.read_text(encoding="utf-8") for path in (REPOSITORY / "src").rglob("*.py"))


def load_yaml(block: Block, folder: Path) -> Path:
    """A configuration or a sweep, saved under the name of its first line and read."""
    name = re.match(r"# (\S+\.yaml)\n", block.text)
    path = folder / (name[1] if name else f"line-{block.line}.yaml")
    path.write_text(block.text, encoding="utf-8")
    if "systems" in yaml.safe_load(block.text):
        assert len(read_sweep(path).members) > 1
    else:
        load_config(path)
    return path


def shrink_yaml(path: Path) -> None:
    """Of a sweep the last system and the first seed are kept, with few steps and sequences."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    if "systems" in tree:
        name, given = list(tree["systems"].items())[-1]
        few_systems = {name: [*given, *FEW_STEPS, *FEW_SEQUENCES]}
        path.write_text(yaml.safe_dump({**tree, "systems": few_systems, "seeds": tree["seeds"][:1]}))


def make_lines(words: list[str]) -> list[list[str]]:
    """The commands that `make TARGET` would run, as words."""
    command = [*words, "--dry-run", "--no-print-directory"]
    # Inside of `make test` there are options of that one.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    lines = [shlex.split(line) for line in done.stdout.replace("\\\n", " ").splitlines()]
    assert any(lines), f"{shlex.join(words)}: nothing to do"
    return [line for line in lines if line]
