"""Commands that work on models, with wrong files and options: what their arguments are."""

from __future__ import annotations

import json
import random
import shutil
from functools import cache
from pathlib import Path

import specimens
import wrong_models
from command_line import an_option, odd, run, settings_of, signal_file, workspace
from mutations import WORDS
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


@cache
def trained() -> str:
    """A run on the features of the workspace."""
    out = workspace() / "trained"
    done = run(["train", str(workspace() / "mine.yaml"), *specimens.TINY[4:], "--out", str(out)])
    assert done.code == 0, done.err
    return str(out)


def wrong_run(draw: Draw, folder: Path) -> str:
    """A run folder or an ONNX file; half of them sound."""
    if draw.random() < 0.5:
        return trained()
    maker = draw.choice((wrong_models.checkpoint_folder, wrong_models.checkpoint_folder, wrong_models.members_folder))
    return str(maker(draw, folder))


def report(draw: Draw, folder: Path) -> list[str]:
    """A page of one sound and one wrong file; where both are sound, of labels that could be markup."""
    predictions, truth = workspace() / "found.json", workspace() / "a.json"
    wrong = draw.randrange(3)
    if wrong == 0:
        predictions = json_file("p.json", (specimens.PREDICTIONS,))(draw, folder)
    elif wrong == 1:
        truth = json_file("t.json", (specimens.ANNOTATIONS,))(draw, folder)
    else:
        word = json.dumps(draw.choice(WORDS))[1:-1]
        truth = folder / "t.json"
        truth.write_text(json.dumps(specimens.ANNOTATIONS).replace("run", word), encoding="utf-8")
    page = folder / draw.choice(("page.html", "page.html", "page.html", "page", "a/b.html"))
    options = {"--threshold": ("0.5", "run=0.5", "x=0.5"), "--subset": ("train",), "--tiou": ("0.5",)}
    files = ["--predictions", str(predictions), "--truth", str(truth)]
    return ["eval", *files, "--report", str(page), *(an_option(draw, options) if draw.random() < 0.3 else [])]


def evaluate_model(draw: Draw, folder: Path) -> list[str]:
    options = {"--tiou": ("0.5",), "--subset": ("test",), "--budget": ("0.5",), "--set": ("inference.sigma=0.3",)}
    return ["eval", "--model", wrong_run(draw, folder), *an_option(draw, options)]


def export(draw: Draw, folder: Path) -> list[str]:
    out = folder / draw.choice(("x.onnx", "x.onnx", "x.txt", "nowhere/x.onnx"))
    return ["export", "--model", wrong_run(draw, folder), "--out", str(out), *an_option(draw, {"--budget": ("0.5",)})]


def cost(draw: Draw, folder: Path) -> list[str]:
    """Of small networks: others take minutes, as they should."""
    wrong = {"--threads": ("0", "x"), "--repeats": ("0", "nan"), "--baseline": ("nothing.yaml", "../x", "[/red]")}
    network = [str(workspace() / "mine.yaml"), *specimens.TINY[4:]]
    if draw.random() < 0.5:
        network = ["--model", wrong_run(draw, folder)]
    chosen = draw.sample(list(wrong), draw.choice((0, 0, 1)))
    small = ["--threads", "1", "--repeats", "1", "--baseline-model", trained()]
    return ["cost", *network, *small, *(part for name in chosen for part in (name, draw.choice(wrong[name])))]


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


def distill(draw: Draw, folder: Path) -> list[str]:
    """Teachers that are none, and options that are refused: a student takes seconds."""
    (folder / "file").write_text("x")
    wrong = (
        ["--out", str(folder / "file")], ["--resume"], ["--repeats", draw.choice(("0", "x", "nan", "-1"))],
        ["--baseline", draw.choice(("nothing", "../x", "[/red]"))], ["--compare", "--baseline", trained()],
        ["--set", "model.paper.depths=" + draw.choice(("[0,2]", "[]", "[4,2]", "x"))], ["--set", "model.deep_layers=3"],
        ["--device", "[/red]"], ["--nothing"],
    )  # fmt: skip
    out = ["--out", str(folder / "student")]
    return ["distill", wrong_run(draw, folder), *out, *draw.choice(wrong)]


def demo(draw: Draw, folder: Path) -> list[str]:
    """Only what is refused: the rest takes minutes."""
    (folder / "file").write_text("x")
    return draw.choice((
        ["demo", "--seed", draw.choice(("-1", "x", "1.5", "nan"))], ["demo", "--out", str(folder / "file")],
        ["demo", "--out", str(folder / "file" / "below")], ["demo", "--nothing"], ["demo", "--help"],
    ))  # fmt: skip
