"""ZoomBench as files: the JSON, the feature folder and the configuration that own data would have."""

from __future__ import annotations

from pathlib import Path

import yaml
from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.console import plain_console
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.zoombench import ZoomBench, make_zoombench
from temporalzoom.datasets.zoombench_context import ContextBench, make_zoombench_context
from temporalzoom.formats import Annotations, Recording, write_annotations
from temporalzoom.progress import track
from temporalzoom.signals.feature_files import write_features


def split_annotations(split: Split, subset: str) -> Annotations:
    """The annotations of a split, as a file would hold them."""
    recordings = {s.name: Recording(s.name, subset, s.duration, s.grid.fps, s.segments) for s in split.samples}
    return Annotations(recordings, split.classes)


def write_zoombench(
    folder: Path, bench: ZoomBench | ContextBench, seed: int = 0, console: Console | None = None
) -> Path:
    """Write `annotations.json`, `features/*.npy` and `config.yaml`; returns the path of the last."""
    console = console or plain_console(stderr=True)
    recordings: dict[str, Recording] = {}
    classes: tuple[str, ...] = ()
    for subset in ("train", "test"):
        if isinstance(bench, ContextBench):
            split = make_zoombench_context(bench, seed, subset)
        else:
            split = make_zoombench(bench, seed, subset)
        classes = split.classes
        recordings |= split_annotations(split, subset).recordings
        for sample in track(split.samples, f"writing {subset}", console):
            write_features(folder / "features" / f"{sample.name}.npy", sample.features)
    write_annotations(folder / "annotations.json", Annotations(recordings, classes))
    data = {
        "source": "folder",
        "annotations": "annotations.json",
        "features": "features",
        "stride": bench.stride,
        "window": bench.window,
    }
    with replacing(folder / "config.yaml") as file:
        file.write(f"# tzoom train {folder / 'config.yaml'} --out runs/{folder.name}\n")
        yaml.safe_dump({"data": data}, file, sort_keys=False)
    return folder / "config.yaml"
