"""The last act of the demo: from video files to segments, with every step that a user would take."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from temporalzoom.config import load_config
from temporalzoom.datasets.sources import load_data
from temporalzoom.datasets.zoombench_scenes import VideoBench
from temporalzoom.datasets.zoombench_video import STRIDE, WINDOW, features_folder, write_zoombench_video
from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.signals.extraction import extract_features
from temporalzoom.training import train
from temporalzoom.viewer.report import Report
from temporalzoom.workflows.evaluation import evaluate_run
from temporalzoom.workflows.localize import localize_files

CLIPS, SECONDS, SIZE = 48, 20.0, 96
WORKERS = 2
SHOWN = (0.3, 0.5, 0.7)
FORMATS = ("json", "csv", "vtt")


@dataclass(frozen=True)
class VideoAct:
    """What the act left behind: the unseen clip, its truth and what was found in it; files, the preview last."""

    clip: Path
    truth: Segments
    found: Segments
    files: tuple[Path, ...]
    mAP: dict[str, float]
    clips: int

    def summary(self) -> dict[str, Any]:
        return {"mAP": self.mAP, "clips": self.clips, "clip": self.clip.name, "segments": len(self.found)}


def run_video_act(out: Path, seed: int, console: Console, clips: int = CLIPS, steps: int | None = None) -> VideoAct:
    """Render clips, extract features, train, localize a clip that training has not seen. Files go below `out`.

    clips, steps: fewer of them for a quick look.
    """
    console.print(f"ZoomBench-video: {clips} clips of {SECONDS:g} s, features by `motion`", highlight=False)
    videos = out / "clips"
    config_file = write_zoombench_video(videos, VideoBench(clips=clips, seconds=SECONDS, size=SIZE, seed=seed), console)
    done = extract_features([videos], features_folder(videos), "motion", STRIDE, WINDOW, None, WORKERS, console)
    if done.failed:
        raise InputError(next(iter(done.failed.values())))
    config = load_config(config_file, [f"seed={seed}", *([] if steps is None else [f"training.steps={steps}"])])
    data = load_data(config.data, config.seed)
    assert data.train is not None and data.test is not None
    run = out / "model"
    shutil.rmtree(run, ignore_errors=True)
    train(config, data.train, run, console=console)
    scores = evaluate_run(run, data.test, SHOWN, console).detection.mAP

    unseen = max(data.test.samples, key=lambda sample: len(sample.segments))
    clip = videos / f"{unseen.name}.mp4"
    targets = [out / f"{unseen.name}.{suffix}" for suffix in FORMATS]
    preview = out / f"{unseen.name}-preview.mp4"
    for target in targets[1:]:
        localize_files([clip], run, out=target, console=console)
    found = localize_files([clip], run, out=targets[0], preview=preview, console=console)
    if found.failed:
        raise InputError(next(iter(found.failed.values())))
    by_threshold = {f"{t:g}": value for t, value in scores.items()}
    return VideoAct(clip, unseen.segments, found.segments[unseen.name], (*targets, preview), by_threshold, clips)


def show_video_act(report: Report, act: VideoAct, folder: Path) -> None:
    """The section of the report. folder: where the report stands; links are relative to it."""
    report.heading("From a video file to segments")
    report.text(
        f"{act.clips} clips were rendered, turned into features (`motion`, no weights) and trained on for about a "
        f"minute; a quarter of them was kept aside. This is `{act.clip.name}`, one of those, as `tzoom localize` sees "
        "it: decoded, localized, and written with a strip of what was found."
    )
    *files, preview = (file.relative_to(folder).as_posix() for file in act.files)
    report.video(preview, "What was found, burned in: a row per class, the line is now.")
    report.table(["", *(f"mAP@{t:g}" for t in SHOWN)], [["unseen clips", *(100 * act.mAP[f"{t:g}"] for t in SHOWN)]])
    report.links([(name, name) for name in (*files, preview)])
