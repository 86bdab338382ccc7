"""ZoomBench-video: short clips rendered to mp4 files, with annotations that are exact to the frame.

The feature-level benchmark beside it (`zoombench`) begins where a backbone ends. This one begins with files, so that
decoding, extraction, training and localization can be tried, and measured, as a whole without any recording.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.console import plain_console
from temporalzoom.datasets.zoombench_render import render_blocks
from temporalzoom.datasets.zoombench_scenes import ACTIONS, VideoBench, draw_clip
from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording, write_annotations
from temporalzoom.json_tree import parse_json
from temporalzoom.progress import track
from temporalzoom.signals.decoding import pyav

APPEARANCE = 2  # counts up when the same settings give other pictures, so that older clips are rendered again
STRIDE, WINDOW = 4, 8  # of the features that the written configuration expects
# x264's newer vector code makes other decisions from one run to the next: what it may use are the instructions that all
# x86 processors have, elsewhere none.
PLAIN = "asm=sse2" if platform.machine().lower() in ("x86_64", "amd64") else "asm=0"
ENCODERS = {  # the first one that FFmpeg was built with; one thread, so that the same settings give the same bytes
    "libx264": {"preset": "veryfast", "crf": "16", "threads": "1", "x264-params": PLAIN},
    "mpeg4": {"qscale": "2", "threads": "1"},
}


def clip_name(index: int) -> str:
    return f"clip_{index:04d}"


def video_annotations(bench: VideoBench) -> Annotations:
    """The annotations of all clips; the last quarter of them, at least one, is the subset `test`."""
    train = bench.clips - max(1, round(bench.clips / 4))
    rate = float(bench.rate)
    recordings = {
        clip_name(i): Recording(
            clip_name(i), "train" if i < train else "test", bench.frames / rate, rate, draw_clip(bench, i).segments
        )
        for i in range(bench.clips)
    }
    return Annotations(recordings, ACTIONS)


def write_zoombench_video(folder: Path, bench: VideoBench, console: Console | None = None) -> Path:
    """Write `clip_*.mp4`, `annotations.json` and `config.yaml`; returns the path of the last.

    `settings.json` says how the clips were made and which are finished: those are not rendered again. The
    number of clips changes nothing about a clip; any other setting does.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, not a folder for videos")
    annotations, noted = folder / "annotations.json", folder / "settings.json"
    if annotations.exists() and not noted.exists():
        raise InputError(f"{annotations}: is there already and not of this benchmark; choose another folder")
    console = console or plain_console(stderr=True)
    encoder = _encoder(folder)
    settings = {key: value for key, value in asdict(bench).items() if key != "clips"}
    settings |= {"look": APPEARANCE, "encoder": encoder}
    finished = _finished(folder, settings)
    _note_finished(folder, settings, finished)  # before the first clip: what other settings made counts no longer
    missing = [i for i in range(bench.clips) if clip_name(i) not in finished]
    if missing:
        annotations.unlink(missing_ok=True)  # a stopped run must not leave those of other clips
    for i in track(missing, "rendering clips", console):
        clip = draw_clip(bench, i)
        write_video(folder / f"{clip_name(i)}.mp4", render_blocks(clip, 0, bench.frames), bench, encoder)
        finished.append(clip_name(i))
        _note_finished(folder, settings, finished)
    write_annotations(annotations, video_annotations(bench))
    return _write_config(folder)


def write_video(path: Path, blocks: Iterable[NDArray[np.uint8]], bench: VideoBench, encoder: str) -> None:
    """Blocks of RGB frames (n, size, size, 3) -> an mp4 of constant rate, whole or not at all."""
    av = pyav(path)
    try:
        with replacing(path, "wb") as file, av.open(file, "w", format="mp4") as container:
            stream = container.add_stream(encoder, rate=bench.rate, options=ENCODERS[encoder])
            stream.width = stream.height = bench.size
            stream.pix_fmt = "yuv420p"
            for block in blocks:
                for image in block:
                    container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
            container.mux(stream.encode(None))
    except av.error.FFmpegError as error:
        raise InputError(f"{path}: cannot be encoded with {encoder}: {error}") from error


def features_folder(folder: Path) -> Path:
    """Where the written configuration looks for features: `features` beside the folder of the videos."""
    return folder.parent / "features"


def _write_config(folder: Path) -> Path:
    path = folder / "config.yaml"
    data = {
        "source": "folder",
        "annotations": "annotations.json",
        "features": "../features",
        "stride": STRIDE,
        "window": WINDOW,
    }
    with replacing(path) as file:
        file.write(f"# tzoom train {path} --out runs/zoombench-video\n")
        file.write(f"# before: {extract_command(folder)}\n")
        yaml.safe_dump({"base": "zoombench-video", "data": data}, file, sort_keys=False)
    return path


def extract_command(folder: Path) -> str:
    """The command that makes the features of the clips where the configuration looks for them."""
    return (
        f"tzoom extract {folder} --out {features_folder(folder)} --backbone motion --stride {STRIDE} --window {WINDOW}"
    )


def _encoder(folder: Path) -> str:
    available = pyav(folder).codecs_available
    for name in ENCODERS:
        if name in available:
            return name
    raise InputError(f"{folder}: this FFmpeg has no encoder for mp4 ({', '.join(ENCODERS)})")


def _finished(folder: Path, settings: dict[str, Any]) -> list[str]:
    """Names of the clips that these settings made already."""
    try:
        noted = parse_json((folder / "settings.json").read_text(encoding="utf-8"))
        names = noted["finished"] if noted["settings"] == settings else []
        return [name for name in names if (folder / f"{name}.mp4").is_file()]
    except (OSError, ValueError, KeyError, TypeError):  # none, or not ours: everything is rendered
        return []


def _note_finished(folder: Path, settings: dict[str, Any], finished: list[str]) -> None:
    with replacing(folder / "settings.json") as file:
        json.dump({"settings": settings, "finished": finished}, file, indent=1)
