"""Cuts of many videos, and how well they are found where they are known: a baseline for boundaries that are sharp."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console

from temporalzoom.datasets.zoombench_scenes import EVENTS, FADE_SECONDS, Clip, VideoBench, draw_clip
from temporalzoom.datasets.zoombench_video import clip_name, write_zoombench_video
from temporalzoom.errors import InputError
from temporalzoom.signals.extraction import find_videos
from temporalzoom.signals.extraction_processes import VideoProgress
from temporalzoom.signals.shot_cuts import THRESHOLD, check_threshold, shot_cuts, transnet
from temporalzoom.terminal import Screen

Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class CutScore:
    """How many cuts were found, how many there are, and how many of both belong together."""

    found: int
    known: int
    matched: int

    @property
    def precision(self) -> float:
        return self.matched / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        return self.matched / self.known if self.known else float("nan")

    def __add__(self, other: CutScore) -> CutScore:
        return CutScore(self.found + other.found, self.known + other.known, self.matched + other.matched)


@dataclass
class RenderedScore:
    """Hard cuts of rendered clips; elsewhere: of each other kind of event, how many were taken for one, and of how
    many. Whatever is found near none of them counts against the precision alone."""

    cuts: CutScore = CutScore(0, 0, 0)
    elsewhere: dict[str, tuple[int, int]] = field(
        default_factory=lambda: {kind: (0, 0) for kind in EVENTS if kind != "cut"}
    )


def match_cuts(found: ArrayLike, known: ArrayLike, tolerance: float) -> list[tuple[int, int]]:
    """Pairs (index in `found`, index in `known`), as many as possible, no more than `tolerance` apart; both rising."""
    first, second = np.asarray(found, float), np.asarray(known, float)
    pairs, i, j = list[tuple[int, int]](), 0, 0
    while i < len(first) and j < len(second):
        if abs(first[i] - second[j]) <= tolerance:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif first[i] < second[j]:
            i += 1
        else:
            j += 1
    return pairs


def score_cuts(found: ArrayLike, known: ArrayLike, fps: float, tolerance: float = 1.0) -> CutScore:
    """Found cuts (n,) against known ones (m,), in seconds, both rising. tolerance: in frames."""
    if not fps > 0 or not tolerance >= 0:
        raise InputError(f"fps must be positive and tolerance not negative, got {fps} and {tolerance}")
    pairs = match_cuts(found, known, tolerance / fps + 1e-6)
    return CutScore(np.size(found), np.size(known), len(pairs))


def event_seconds(clip: Clip, kind: str) -> Seconds:
    """When the cuts, fades or flashes of a clip happen: in the middle between frame `at` and the one before."""
    return np.array([event.at - 0.5 for event in clip.events if event.kind == kind]) / float(clip.bench.rate)


def score_clip(found: Seconds, clip: Clip, score: RenderedScore, tolerance: float = 1.0) -> None:
    """Add the cuts (n,) found in one rendered clip to `score`."""
    rate, known = float(clip.bench.rate), event_seconds(clip, "cut")
    score.cuts = score.cuts + score_cuts(found, known, rate, tolerance)
    right = [i for i, _ in match_cuts(found, known, tolerance / rate + 1e-6)]
    wrong = np.delete(found, right)
    for kind, (taken, count) in score.elsewhere.items():
        at = event_seconds(clip, kind)
        near = np.abs(at[:, None] - wrong).min(axis=1, initial=np.inf) <= FADE_SECONDS + 1 / rate
        score.elsewhere[kind] = (taken + int(near.sum()), count + len(at))


def score_rendered(bench: VideoBench, threshold: float = THRESHOLD, tolerance: float = 1.0) -> RenderedScore:
    """Render ZoomBench-video as files, look for cuts in them, and compare. tolerance: in frames."""
    score = RenderedScore()
    with tempfile.TemporaryDirectory() as folder:
        write_zoombench_video(Path(folder), bench)
        for index in range(bench.clips):
            found = shot_cuts(Path(folder) / f"{clip_name(index)}.mp4", threshold)
            score_clip(found, draw_clip(bench, index), score, tolerance)
    return score


def cuts_of_videos(
    paths: Sequence[str | Path], threshold: float = THRESHOLD, console: Console | None = None
) -> tuple[dict[str, Seconds], dict[str, str]]:
    """Cuts by path of video files, or of folders of them; and why others could not be read."""
    check_threshold(threshold)
    videos, console = find_videos(paths), console or Screen(stderr=True)
    transnet()  # where it is missing, it is for all
    found, failed = dict[str, Seconds](), dict[str, str]()
    with VideoProgress(videos, None, console, "looking for cuts") as shown:
        for video in videos:
            try:
                found[str(video)] = shot_cuts(video, threshold, shown.frames)
            except InputError as error:
                failed[str(video)] = str(error)
            shown.finished(video, failed.get(str(video)))
    return found, failed
