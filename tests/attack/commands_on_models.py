"""Commands that work on models, with wrong files and options: what their arguments are."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import specimens
import wrong_models
from command_line import an_option, odd, settings_of, signal_file, workspace
from wrong_texts import json_file

Draw = random.Random


def evaluate(draw: Draw, folder: Path) -> list[str]:
    predictions = json_file("p.json", (specimens.PREDICTIONS,))(draw, folder)
    truth = json_file("t.json", (specimens.ANNOTATIONS,))(draw, folder)
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


def train(draw: Draw, folder: Path) -> list[str]:
    json_file("a.json", (specimens.ANNOTATIONS,))(draw, folder)
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


def wrong_run(draw: Draw, folder: Path) -> str:
    """A run folder or an ONNX file; half of them sound."""
    if draw.random() < 0.4:
        return str(workspace() / "run")
    maker = draw.choice((wrong_models.checkpoint_folder, wrong_models.checkpoint_folder, wrong_models.members_folder))
    return str(maker(draw, folder))


def report(draw: Draw, folder: Path) -> list[str]:
    arguments = evaluate(draw, folder)
    kept = [part for part in arguments if part not in ("--json", "--proposals")]
    return [*kept, "--report", str(folder / draw.choice(("page.html", "page", "a/b.html")))]


def evaluate_model(draw: Draw, folder: Path) -> list[str]:
    options = {"--tiou": ("0.5",), "--subset": ("test",), "--budget": ("0.5",), "--set": ("inference.sigma=0.3",)}
    return ["eval", "--model", wrong_run(draw, folder), *an_option(draw, options)]


def export(draw: Draw, folder: Path) -> list[str]:
    out = folder / draw.choice(("x.onnx", "x.onnx", "x.txt", "nowhere/x.onnx"))
    return ["export", "--model", wrong_run(draw, folder), "--out", str(out), *an_option(draw, {"--budget": ("0.5",)})]


def cost(draw: Draw, folder: Path) -> list[str]:
    options = {"--threads": ("1",), "--repeats": ("1",), "--baseline": ("mine.yaml",)}
    network = ["--model", wrong_run(draw, folder)] if draw.random() < 0.5 else [str(workspace() / "mine.yaml")]
    few = ["--repeats", "1"] if draw.random() < 0.5 else []
    return ["cost", *network, *settings_of(draw)[:1], *few, *an_option(draw, options)]


def sweep(draw: Draw, folder: Path) -> list[str]:
    shutil.rmtree(folder / "sweep", ignore_errors=True)
    if draw.random() < 0.6:
        path = wrong_models.sweep_file(draw, folder)
        path.write_bytes(path.read_bytes().replace(b"zoombench", str(folder / "absent.yaml").encode()))
    else:
        system = json.dumps([*specimens.TINY, *settings_of(draw)])
        path = folder / "sweep.yaml"
        (folder / "mine.yaml").write_text("seed: 0\n")
        path.write_text(f"base:\n  bench: {folder}/mine.yaml\nsystems:\n  one: {system}\nseeds: [{odd(draw, '0')}]\n")
    return ["sweep", str(path), "--out", str(folder / "sweep"), *an_option(draw, {"--workers": ("1",)})]


def bench(draw: Draw, folder: Path) -> list[str]:
    """Only what is refused, or listed: a table trains for minutes."""
    wrong = ("--table", "--seeds", "--systems", "--folds")
    if draw.random() < 0.3:
        return ["bench", "--list"]
    option = draw.choice(wrong)
    value = draw.choice(("x", "", "-1", "nan", "a,b", "1e9", "[/red]", "\x1b[2J", "../x"))
    data = draw.choice(("sbhar", "zoombench", "nothing", "tug"))
    return ["bench", data, "--root", str(folder / "absent"), option, value, "--out", str(folder / "bench")]


def demo(draw: Draw, folder: Path) -> list[str]:
    """Only what is refused: the rest takes minutes."""
    (folder / "file").write_text("x")
    return draw.choice((
        ["demo", "--seed", draw.choice(("-1", "x", "1.5", "nan"))], ["demo", "--out", str(folder / "file")],
        ["demo", "--out", str(folder / "file" / "below")], ["demo", "--nothing"], ["demo", "--help"],
    ))  # fmt: skip
