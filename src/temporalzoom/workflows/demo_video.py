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
from temporalzoom.formats import write_segments
from temporalzoom.segments import Segments
from temporalzoom.signals.decoding import pyav
from temporalzoom.signals.extraction_processes import extract_features
from temporalzoom.training import train
from temporalzoom.workflows.evaluate import evaluate_run
from temporalzoom.workflows.localize import localize_files

CLIPS, SECONDS, SIZE = 48, 20.0, 96
WORKERS = 1  # processes would take as long to start as they save here
SHOWN = (0.3, 0.5, 0.7)
FORMATS = ("json", "csv", "vtt")
VIDEO_MISSING = 'the video act is left out: it needs PyAV (pip install "temporalzoom[video]")'


@dataclass(frozen=True)
class VideoAct:
    """What the act left behind: the unseen clip, its truth and what was found in it; files, the preview last."""

    clip: Path
    truth: Segments
    found: Segments
    files: tuple[Path, ...]
    mAP: dict[str, float]
    clips: int

    def summary(self, folder: Path) -> dict[str, Any]:
        """folder: where the report stands; paths of files are relative to it."""
        *files, preview = (file.relative_to(folder).as_posix() for file in self.files)
        return {
            "mAP": self.mAP,
            "clips": self.clips,
            "clip": self.clip.name,
            "segments": len(self.found),
            "files": files,
            "preview": preview,
        }


def videos_can_be_read() -> bool:
    """Whether PyAV is installed: an extra, so a plain installation has none."""
    try:
        pyav(Path())
    except InputError:
        return False
    return True


def run_video_act(out: Path, seed: int, console: Console, clips: int = CLIPS, steps: int | None = None) -> VideoAct:
    """Render clips, extract features, train, localize a clip that training has not seen. Files go below `out`.

    clips, steps: fewer of them for a quick look.
    """

    def note(what: str) -> None:
        console.print(what, markup=False, highlight=False, soft_wrap=True)

    note(f"ZoomBench-video: {clips} clips of {SECONDS:g} s, features by `motion`")
    videos = out / "clips"
    config_file = write_zoombench_video(videos, VideoBench(clips=clips, seconds=SECONDS, size=SIZE, seed=seed), console)
    note("extracting features")
    done = extract_features([videos], features_folder(videos), "motion", STRIDE, WINDOW, None, WORKERS, console)
    if done.failed:
        raise InputError(next(iter(done.failed.values())))
    config = load_config(config_file, [f"seed={seed}", *([] if steps is None else [f"training.steps={steps}"])])
    data = load_data(config.data, config.seed)
    assert data.train is not None and data.test is not None
    run = out / "model"
    shutil.rmtree(run, ignore_errors=True)
    train(config, data.train, run, console=console)
    note("scoring it on unseen clips")
    scores = evaluate_run(run, data.test, SHOWN, console).detection.mAP

    unseen = max(data.test.samples, key=lambda sample: len(sample.segments))
    clip = videos / f"{unseen.name}.mp4"
    targets = [out / f"{unseen.name}.{suffix}" for suffix in FORMATS]
    preview = out / f"{unseen.name}-preview.mp4"
    note(f"localizing {clip.name}, writing a preview")
    found = localize_files([clip], run, out=targets[0], preview=preview, console=console)
    if found.failed:
        raise InputError(next(iter(found.failed.values())))
    for target in targets[1:]:
        write_segments(target, found.segments, media=found.videos)
    by_threshold = {f"{t:g}": value for t, value in scores.items()}
    return VideoAct(clip, unseen.segments, found.segments[unseen.name], (*targets, preview), by_threshold, clips)
