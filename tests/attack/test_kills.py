"""Writers that are killed at any moment, or find the disk full: what is there is whole, and the same command again
comes out as if nothing had happened, bit for bit."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import specimens
from fuzzing import todays_seed
from safetensors.numpy import load_file

from temporalzoom.formats import write_segments

KILLS = 3  # of each command; with 11 commands about 30
EVERY = os.environ.get("TZOOM_ATTACK_WRITES") == "all"  # every write of every command, which takes hours, not a few
SMALL = [*specimens.TINY, "training.steps=12", "training.checkpoint_every=3", "training.keep_checkpoints=2"]
Server = Callable[..., Any]
Whole = Callable[[str], tuple[Path, float, int | None]]


@pytest.fixture(scope="module")
def tzoom_child(tmp_path_factory) -> Iterator[Server]:
    """`tzoom_child(folder, *arguments, kill=None, size=None, writes=None, disk="", times=1)`: see fork_server.py."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    library = tmp_path_factory.mktemp("library") / "full_disk.so"
    compiler = shutil.which("cc") if sys.platform == "linux" else None
    if compiler is not None:
        source = str(Path(__file__).with_name("full_disk.c"))
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), source, "-ldl"], check=True)
        environment["LD_PRELOAD"] = str(library)
    command = [sys.executable, str(Path(__file__).with_name("fork_server.py"))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdin is not None and process.stdout is not None
    assert json.loads(process.stdout.readline()) == "ready"

    def ask(
        folder: Path,
        *arguments: object,
        kill: float | None = None,
        size: int | None = None,
        writes: int | None = None,
        disk: Path | str = "",
        times: int = 1,
    ) -> Any:
        order = {"arguments": [*map(str, arguments)], "folder": str(folder), "times": times}
        order |= {"kill": kill, "size": size, "writes": writes, "disk": str(disk)}
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait(timeout=30)


@pytest.fixture(scope="module")
def material(tmp_path_factory) -> Path:
    """What the commands read."""
    folder = tmp_path_factory.mktemp("material")
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from small_walks import write_walks

    write_walks(folder, 4)
    for name, content in specimens.videos().items():
        (folder / "videos" / name.replace("x.", f"{name[2:]}.")).parent.mkdir(exist_ok=True)
        (folder / "videos" / name.replace("x.", f"{name[2:]}.")).write_bytes(content)
    (folder / "run").mkdir()
    for name, content in specimens.checkpoint().items():
        (folder / "run" / name).write_bytes(content)
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32))
    write_segments(folder / "found.json", specimens.SEGMENTS)
    (folder / "truth.json").write_text(json.dumps(specimens.ANNOTATIONS))
    (folder / "mine.yaml").write_text("seed: 3\n")
    (folder / "sweep.yaml").write_text(
        f"base:\n  bench: {folder}/mine.yaml\nsystems:\n  one: {json.dumps(SMALL)}\nseeds: [0, 1]\n"
    )
    return folder


def training(*more: str) -> Callable[[Path], list[str]]:
    """Goes on where there is a checkpoint, as the message of an interrupted training says."""

    def arguments(out: Path) -> list[str]:
        going = ["--resume"] if any((out / "run" / "checkpoints").glob("step-*[0-9]")) else []
        settings = SMALL if "model.name=actionformer" not in more else [s for s in SMALL if "model.head=" not in s]
        return ["train", "mine.yaml", *settings, *more, "--out", str(out / "run"), *going]

    return arguments


@pytest.fixture(scope="module")
def undisturbed(material: Path, tzoom_child: Server, tmp_path_factory) -> Whole:
    """`undisturbed(name)`: the folder in which the command was left alone, how long it took, and how often it wrote,
    None where nobody counts. Once each."""

    @cache
    def run(name: str) -> tuple[Path, float, int | None]:
        folder = tmp_path_factory.mktemp("undisturbed")
        done = tzoom_child(material, *COMMANDS[name](folder), disk=folder)
        assert done["code"] == 0, done["err"]
        return folder, done["seconds"], None if done["writes"] is None else done["writes"][0]

    return run


SLOW = ("fit", "train tzn", "train actionformer", "sweep")
FEW = [f"--set={setting}" for setting in ("training.steps=4", "training.length=64", "training.batch_size=2")]
FEW += [f"--set={setting}" for setting in ("model.width=16", "training.warmup_steps=1", "inference.certainty=0")]
COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "train uniform": training(),
    "train tzn": training("model.name=tzn", "model.width=16", "model.heads=2"),
    "train actionformer": training("model.name=actionformer", "model.width=16", "model.heads=2", "model.levels=2"),
    "extract": lambda out: ["extract", "videos", "--out", str(out / "features"), "--stride", "2", "--window", "4"],
    "sweep": lambda out: ["sweep", "sweep.yaml", "--out", str(out / "sweep")],
    "export": lambda out: ["export", "--model", "run", "--out", str(out / "x.onnx")],
    "localize csv": lambda out: ["localize", "x.npy", "--model", "run", "--out", str(out / "x.csv")],
    "localize xlsx": lambda out: ["localize", "x.npy", "--model", "run", "--out", str(out / "x.xlsx")],
    "report": lambda out: [
        "eval",
        "--predictions",
        "found.json",
        "--truth",
        "truth.json",
        "--report",
        str(out / "r.html"),
    ],
    "import": lambda out: ["data", "import", "annotations.csv", "--out", str(out / "a.json")],
    "fit": lambda out: ["fit", "signals", "annotations.csv", "--out", str(out / "fit"), "--members", "2", *FEW],
}


TIME_OF_DAY = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?")


def workbook(path: Path) -> bytes:
    """Every part of it, without the time at which it was made."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: TIME_OF_DAY.sub(b"", archive.read(name)) for name in sorted(archive.namelist())}
    return repr(parts).encode()


def content(folder: Path) -> dict[str, str]:
    """Digests by file. Left out: what holds seconds of this very run, and parts that a killed process left behind. Of
    pages and workbooks the time of day, and nothing else, is left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not path.is_file() or name.endswith((".part", ".log", ".lock", "decided.json")) or "tensorboard" in name:
            continue
        data = path.read_bytes().replace(str(folder).encode(), b"OUT")
        if path.suffix in (".json", ".jsonl", ".html", ".yaml", ".txt"):
            data = re.sub(rb'"[a-z_]*seconds": [0-9.e-]+', b"", data)
        if path.suffix == ".xlsx":
            data = workbook(path)
        if path.suffix == ".html":
            data = TIME_OF_DAY.sub(b"", data)
        found[name] = hashlib.sha256(data).hexdigest()[:16]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_any_moment(name: str, material: Path, tmp_path: Path, tzoom_child: Server, undisturbed: Whole):
    draw = random.Random(f"{name} {todays_seed()}")
    whole, seconds, _ = undisturbed(name)
    out = tmp_path / "killed"
    out.mkdir()
    moments = [draw.uniform(0.02, 1.0) * seconds for _ in range(KILLS)]
    for moment in moments:
        done = tzoom_child(material, *COMMANDS[name](out), kill=moment)
        assert done["code"] in (0, -9), (moments, done)
        if done["code"] == 0 and name.startswith("train"):
            shutil.rmtree(out / "run")
    again = tzoom_child(material, *COMMANDS[name](out))
    assert again["code"] == 0, (todays_seed(), moments, again["err"])
    assert content(out) == content(whole), (todays_seed(), moments)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line(name: str, material: Path, tmp_path: Path, tzoom_child: Server, undisturbed: Whole):
    """Files may not grow beyond some bytes, which fails as a full disk does. What is there is whole."""
    draw = random.Random(f"{name} {todays_seed()}")
    folder = undisturbed(name)[0]
    whole = content(folder)
    # Below the size of each file some write fails.
    sizes = sorted({path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 1})
    limits = [0, draw.randrange(1, min(sizes[-1], 4096)), *(size - 1 for size in sizes)]
    for number, size in enumerate(limits if EVERY else draw.sample(limits, 1 if name in SLOW else 2)):
        out = tmp_path / str(number)
        out.mkdir()
        done = tzoom_child(material, *COMMANDS[name](out), size=size)
        check_full(name, done, size, out, whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_is_full_at_some_write(
    name: str, material: Path, tmp_path: Path, tzoom_child: Server, undisturbed: Whole
):
    """From one of the writes of the whole run on, none is possible: one line, nothing torn; room made, the same command
    again comes out as if nothing had happened."""
    folder, _, count = undisturbed(name)
    if count is None:
        pytest.skip("needs Linux and a C compiler to count writes")
    assert count > 0
    whole, draw = content(folder), random.Random(f"{name} {todays_seed()}")
    chosen = list(range(count)) if EVERY else draw.sample(range(count), min(count, 1 if name in SLOW else 2))
    for number in chosen:
        out = tmp_path / str(number)
        out.mkdir()
        done = tzoom_child(material, *COMMANDS[name](out), writes=number, disk=out)
        if done["writes"][1]:  # seconds that are written have more digits in one run than in another
            check_full(name, done, number, out, whole)
            done = tzoom_child(material, *COMMANDS[name](out))
        assert done["code"] == 0, (todays_seed(), number, done)
        assert content(out) == whole, (todays_seed(), number)
        shutil.rmtree(out)


def check_full(name: str, done: dict[str, Any], size: int, out: Path, whole: dict[str, str]) -> None:
    # A sweep of which members fail ends with 1.
    assert done["code"] == (1 if name == "sweep" else 2) and "Traceback" not in done["err"], (size, done)
    assert re.search("error: |failed[:,]", done["err"]), (size, done)
    grows, left = (".jsonl", "log.txt"), content(out)
    others = {file for file in left if left[file] != whole.get(file, left[file]) and not file.endswith(grows)}
    torn = {file for file in others if not is_whole(out / file)}  # the best state so far need not be that of the end
    assert not torn, (size, torn)


def is_whole(path: Path) -> bool:
    """Whether a file that differs from that of the end can be read: it is of an earlier moment, and not half of one."""
    try:
        if path.suffix == ".json":
            json.loads(path.read_text())
        else:
            load_file(path)  # of safetensors
    except Exception:
        return False
    return True


@pytest.mark.slow
def test_a_full_disk_under_two_trainings(material: Path, tmp_path: Path, tzoom_child: Server, undisturbed: Whole):
    """Into one folder: one of them is refused, the other ends with one line; room made, it goes on, bit for bit."""
    command, whole = COMMANDS["train uniform"], undisturbed("train uniform")[0]
    largest = max(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    out = tmp_path / "both"
    out.mkdir()
    for size in (0, largest - 1):
        for done in tzoom_child(material, *command(out), size=size, times=2):
            assert done["code"] == 2 and "Traceback" not in done["err"] and "error: " in done["err"], (size, done)
    assert tzoom_child(material, *command(out))["code"] == 0
    assert content(out) == content(whole)
