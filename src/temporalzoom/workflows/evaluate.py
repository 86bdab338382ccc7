"""`tzoom eval`: a model on its test subset, or a prediction file against an annotation file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from temporalzoom.config import change_inference
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.formats import write_segments
from temporalzoom.formats.annotations import read_annotations, read_predictions
from temporalzoom.inference.localizer import Localizer
from temporalzoom.metrics import (
    BoundaryErrors,
    DetectionResult,
    average_recall,
    boundary_errors,
    evaluate_detections,
    per_class_table,
    per_length_table,
)
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.segments import Segments
from temporalzoom.workflows.evaluation import detection_summary, frames_per_second, localize_split, truth_to_score

PROPOSALS = (1, 5, 10, 50, 100)  # per recording


@dataclass(frozen=True)
class Score:
    """What `tzoom eval` found out."""

    truth: dict[str, Segments]
    predictions: dict[str, Segments]
    protocol: str
    detection: DetectionResult
    boundaries: BoundaryErrors | None  # None where frames per second are not known
    ambiguous: dict[str, Segments] | None = None  # spans that the protocol th14 passes over
    skipped: tuple[str, ...] = ()

    def summary(self, proposals: bool = False) -> dict[str, Any]:
        """proposals: also how much is found, whatever its label."""
        summary = {**detection_summary(self.detection), "protocol": self.protocol}
        if self.boundaries is not None:
            summary["boundary_error_frames"] = self.boundaries.mean
        return summary | ({"proposals": self.recall()} if proposals else {})

    def recall(self) -> dict[str, float]:
        """Average recall at so many proposals per recording, labels unused, and the area below its curve."""
        numbers, recall, area = average_recall(self.truth, self.predictions)
        return {f"AR@{n}": float(recall[list(numbers).index(n)]) for n in PROPOSALS} | {"AUC": area}

    def tables(self, proposals: bool = False) -> list[Table]:
        tables = [
            per_class_table(self.detection),
            per_length_table(
                self.truth,
                self.predictions,
                self.detection.thresholds,
                protocol=self.protocol,
                ambiguous=self.ambiguous,
            ),
        ]
        if self.boundaries is not None:
            errors = self.boundaries
            table = Table(title="Boundary error of found instances (frames)", title_justify="left")
            for column in ("mean", "median", "95 %", "found", "missed"):
                table.add_column(column, justify="right")
            values = (f"{v:.2f}" for v in (errors.mean, errors.median, errors.percentile_95))
            table.add_row(*values, str(len(errors.start)), str(errors.unmatched))
            tables.append(table)
        if proposals:
            recall = self.recall()
            table = Table(title="Recall of proposals, tIoU .5:.05:.95, labels unused (%)", title_justify="left")
            for column in recall:
                table.add_column(column, justify="right")
            table.add_row(*(f"{100 * value:.1f}" for value in recall.values()))
            tables.append(table)
        return tables


def score_file(
    predictions: Path, truth: Path, thresholds: Sequence[float], protocol: str, subset: str | None = None
) -> Score:
    """Any detector's prediction file against an annotation file."""
    annotations = read_annotations(truth)
    if subset is not None:
        annotations = annotations.subset(subset)
    found = read_predictions(predictions)
    rates = {name: recording.fps for name, recording in annotations.recordings.items()}
    known = {name: fps for name, fps in rates.items() if fps}
    ambiguous = annotations.ambiguous()
    result = _detect(annotations.truth(), found, thresholds, protocol, ambiguous)
    boundaries = boundary_errors(annotations.truth(), found, known) if len(known) == len(rates) else None
    return Score(annotations.truth(), found, protocol, result, boundaries, ambiguous)


def score_model(
    model: Path,
    thresholds: Sequence[float] | None,
    protocol: str,
    *,
    overrides: Sequence[str] = (),
    budget: float | None = None,
    allow_missing: bool = False,
    out: Path | None = None,
    console: Console | None = None,
) -> Score:
    """A trained model on the test subset of its configuration; thresholds None: those of the configuration.

    overrides: of settings of inference, `inference.key=value`.
    """
    info = read_info(find_checkpoint(model))
    config = info.config
    options = change_inference(config.inference, overrides)
    data = load_data(config.data, config.seed, train=False, allow_missing=allow_missing, console=console)
    if data.test is None:
        raise InputError(f"data.test_subset: no recording of {config.data.test_subset!r} is left to score")
    if data.test.origin is not None:
        data.test.origin.check_against(info.origin, config.data.features)
    localizer = Localizer.load(model, budget)
    localizer.options = options
    predictions = localize_split(localizer, data.test, console)
    if out is not None:
        write_segments(out, predictions)
    truth = truth_to_score(localizer, data.test)
    if config.data.class_agnostic and localizer.options.video_scores is None and console is not None:
        note = "class-agnostic: scored without labels; inference.video_scores gives them"
        console.print(note, highlight=False, soft_wrap=True)
    ambiguous = data.test.ambiguous()
    result = _detect(truth, predictions, thresholds or config.evaluation.thresholds, protocol, ambiguous)
    boundaries = boundary_errors(truth, predictions, frames_per_second(data.test))
    return Score(truth, predictions, protocol, result, boundaries, ambiguous, data.skipped)


def _detect(
    truth: dict[str, Segments],
    predictions: dict[str, Segments],
    thresholds: Sequence[float],
    protocol: str,
    ambiguous: dict[str, Segments] | None,
) -> DetectionResult:
    if protocol not in ("anet", "th14"):
        raise InputError(f"--protocol {protocol!r}: expected anet or th14")
    return evaluate_detections(truth, predictions, thresholds, protocol, ambiguous)
