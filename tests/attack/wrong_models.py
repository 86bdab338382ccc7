"""Wrong configurations, sweeps, checkpoints, ONNX files, and videos."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import specimens
from mutations import NUMBERS, WORDS, mutated_bytes, mutated_json, mutated_text, mutated_tree
from wrong_texts import written

Draw = random.Random


def sidecar_file(draw: Draw, folder: Path) -> Path:
    written(folder, "x.json", mutated_json(specimens.SIDECAR, draw))
    return folder / "x.npy"


def yaml_file(draw: Draw, folder: Path) -> Path:
    texts = (
        specimens.configuration(),
        "base: zoombench\ntraining:\n  steps: 5\n",
        "seed: 1\ninference: {threshold: {a: 1}}\n",
    )
    text = mutated_text(draw.choice(texts), draw)
    if draw.random() < 0.2:
        tags = (
            "!!bool",
            "!!int",
            "!!timestamp",
            "!!binary",
            "!!set",
            "!!omap",
            "&a",
            "*a",
            "<<:",
            "? ",
            "| ",
            "--- ",
            "%",
        )
        place = draw.randrange(len(text) + 1)
        text = text[:place] + draw.choice(tags) + " " + text[place:]
    return written(folder, "mine.yaml", text.encode("utf-8", "surrogatepass"))


def override(draw: Draw, folder: Path) -> list[str]:
    from temporalzoom.config import config_fields

    keys = sorted(config_fields())
    values = (
        *NUMBERS,
        *WORDS,
        "[1, 2]",
        "{a: 1}",
        "{a: {b: 1}}",
        "tzn",
        "uniform-3",
        "true",
        "~",
        "!!bool x",
        "&a [*a]",
    )
    made = [f"{draw.choice(keys)}={draw.choice(values)}" for _ in range(draw.choice((1, 1, 2, 3)))]
    return [mutated_text(text, draw) if draw.random() < 0.15 else text for text in made]


def sweep_file(draw: Draw, folder: Path) -> Path:
    return written(folder, "sweep.yaml", mutated_text(specimens.SWEEP, draw).encode("utf-8", "surrogatepass"))


def description(draw: Draw, folder: Path) -> Any:
    return mutated_tree(specimens.description(), draw)


def checkpoint_folder(draw: Draw, folder: Path) -> Path:
    """A checkpoint of which the description, or the weights, went wrong."""
    run = folder / "checkpoint"
    run.mkdir(exist_ok=True)
    files = dict(specimens.checkpoint())
    del files["x.onnx"]
    if draw.random() < 0.5:
        files["checkpoint.json"] = mutated_json(specimens.description(), draw)
    elif draw.random() < 0.5:
        files["average.safetensors"] = mutated_bytes(files["average.safetensors"], draw)
    else:
        content = files["average.safetensors"]
        (length,) = struct.unpack("<Q", content[:8])
        header = mutated_json(json.loads(content[8 : 8 + length]), draw)
        files["average.safetensors"] = struct.pack("<Q", len(header)) + header + content[8 + length :]
    for name, content in files.items():
        if "safetensors" not in name or name.startswith("average"):
            written(run, name, content)
    return run


def onnx_file(draw: Draw, folder: Path) -> Path:
    import onnx

    content = specimens.checkpoint()["x.onnx"]
    if draw.random() < 0.3:
        return written(folder, "x.onnx", mutated_bytes(content, draw))
    graph = onnx.load_model_from_string(content)
    entry = draw.choice(graph.metadata_props)
    try:
        entry.value = mutated_json(json.loads(entry.value), draw).decode("utf-8", "replace")
        entry.key = draw.choice(("temporalzoom.x", entry.key, entry.key, entry.key))
    except ValueError:
        entry.value = ""
    return written(folder, "x.onnx", graph.SerializeToString())


def onnx_properties(draw: Draw, folder: Path) -> dict[str, str]:
    texts = {f"temporalzoom.{key}": json.dumps(value) for key, value in specimens.description().items()}
    key = draw.choice(list(texts))
    texts[key] = mutated_json(json.loads(texts[key]), draw).decode("utf-8", "replace")
    return texts


def members_folder(draw: Draw, folder: Path) -> Path:
    tree = {"format": 1, "folders": ["members/a"], "thresholds": {"run": 0.5}, "tiou": 0.5, "validated": ["members/a"]}
    written(folder, "members.json", mutated_json(tree, draw))
    return folder


def video_file(draw: Draw, folder: Path) -> Path:
    """Bytes go wrong, more often near the ends, where headers and indices are."""
    name, content = draw.choice(list(specimens.videos().items()))
    ends = draw.choice((60, 800, len(content)))
    head, rest = content[:ends], content[ends:]
    return written(
        folder, name, mutated_bytes(head, draw) + rest if draw.random() < 0.7 else head + mutated_bytes(rest, draw)
    )
