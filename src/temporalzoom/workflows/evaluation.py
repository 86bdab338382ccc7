"""Scores of a trained run on its test subset."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.video_sets import AGNOSTIC
from temporalzoom.errors import InputError
from temporalzoom.inference.fusion import fuse_all, read_video_scores
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics import BoundaryErrors, DetectionResult, boundary_errors, evaluate_detections
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.runs.network import oracle_reach
from temporalzoom.segments import Segments

DEFAULT_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)
ORACLE = "oracle: pruning was protected by the true boundaries of the test set; an ablation, not a result"


@dataclass(frozen=True)
class Evaluation:
    """Predictions of one system on one split, and how good they are. oracle: the truth helped to make them."""

    predictions: dict[str, Segments]
    detection: DetectionResult
    boundaries: BoundaryErrors
    seconds: float
    oracle: bool = False

    def summary(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            **detection_summary(self.detection),
            "boundary_error_frames": self.boundaries.mean,
            "median_boundary_error_frames": self.boundaries.median,
            "localization_seconds": self.seconds,
            **({"oracle": True} if self.oracle else {}),
        }


def detection_summary(result: DetectionResult) -> dict[str, Any]:
    return {"mAP": {f"{t:g}": value for t, value in result.mAP.items()}, "average": result.average}


def localize_split(localizer: Localizer, split: Split, console: Console | None = None) -> dict[str, Segments]:
    """Everything found in each sample, down to the lowest score, with a progress bar.

    With `inference.video_scores`, a class-agnostic model's segments have the labels of that classifier.
    """
    console = console or Console(stderr=True)
    path = localizer.options.video_scores
    if path is not None:
        if localizer.classes != (AGNOSTIC,):
            raise InputError("inference.video_scores: gives labels to a model without; train with data.class_agnostic")
        scores = read_video_scores(path)
        fuse_all({sample.name: Segments.empty() for sample in split.samples}, scores)  # complain before the work
    samples = track(split.samples, "localizing", console=console, transient=True, disable=not console.is_terminal)
    found = localizer.localize_samples(samples)
    return found if path is None else fuse_all(found, scores)


def truth_to_score(localizer: Localizer, split: Split) -> dict[str, Segments]:
    """What its predictions are compared with: the true labels if it gives any, else segments of one class."""
    return split.truth() if localizer.options.video_scores is None else split.labelled_truth()


def evaluate_split(
    localizer: Localizer, split: Split, thresholds: Sequence[float] = DEFAULT_THRESHOLDS, console: Console | None = None
) -> Evaluation:
    began = time.perf_counter()
    predictions = localize_split(localizer, split, console)
    seconds = time.perf_counter() - began
    truth = truth_to_score(localizer, split)
    return Evaluation(
        predictions,
        evaluate_detections(truth, predictions, thresholds),
        boundary_errors(truth, predictions, frames_per_second(split)),
        seconds,
        localizer.oracle_reach is not None,
    )


def evaluate_run(
    run: str | Path, split: Split, thresholds: Sequence[float] = DEFAULT_THRESHOLDS, console: Console | None = None
) -> Evaluation:
    return evaluate_split(Localizer.load(run), split, thresholds, console)


def is_oracle(run: Path) -> bool:
    """Whether scores of this run are an ablation that looks at the truth, and must say so: see `ORACLE`."""
    info = read_info(find_checkpoint(run))
    return oracle_reach(info.config, info.grid.stride) is not None


def frames_per_second(split: Split) -> Mapping[str, float]:
    return {sample.name: sample.grid.fps for sample in split.samples}
