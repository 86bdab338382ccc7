"""`tzoom eval`: how good a trained model is on its test subset, or the prediction file of any detector."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from temporalzoom.config import change_inference
from temporalzoom.console import plain_console
from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.datasets.splits import known_subject
from temporalzoom.errors import InputError
from temporalzoom.formats import read_annotations, read_predictions, write_segments
from temporalzoom.inference.found import cut_note
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.members import fuse_members
from temporalzoom.inference.selection import Selection
from temporalzoom.inference.windows import run_network
from temporalzoom.metrics import (
    BoundaryErrors,
    DetectionResult,
    average_recall,
    boundary_errors,
    evaluate_detections,
    per_class_table,
    per_length_table,
)
from temporalzoom.models import Outputs
from temporalzoom.runs.checkpoint import find_checkpoint, read_info
from temporalzoom.runs.members import Members, read_members
from temporalzoom.segments import AGNOSTIC, Segments
from temporalzoom.signals.extraction import video_features
from temporalzoom.signals.feature_rows import FeatureRows
from temporalzoom.training.batches import near_boundaries

DEFAULT_THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)
FOR_USERS = tuple(f"inference.{key}" for key in ("threshold", "merge_gap", "min_length", "no_overlap"))
PROPOSALS = (1, 5, 10, 50, 100)  # per recording
ORACLE = "oracle: the network was told the true boundaries of the test set; an ablation, not a result"


@dataclass(frozen=True)
class Evaluation:
    """Predictions, and how good they are.

    boundaries: None where frames per second are not known; protocol: anet or th14; ambiguous: spans that the protocol
    th14 passes over; skipped: recordings left out because nothing was there to localize in; seconds: of localization,
    None where predictions came from a file; oracle: the truth helped to make the predictions (see `ORACLE`); subjects:
    who is on which recording, of those where that is known.
    """

    truth: dict[str, Segments]
    predictions: dict[str, Segments]
    detection: DetectionResult
    boundaries: BoundaryErrors | None
    protocol: str = "anet"
    ambiguous: dict[str, Segments] | None = None
    skipped: tuple[str, ...] = ()
    seconds: float | None = None
    oracle: bool = False
    subjects: Mapping[str, str] = field(default_factory=dict)

    def summary(self, proposals: bool = False) -> dict[str, Any]:
        """The numbers, ready for JSON. proposals: also how much is found, whatever its label."""
        summary: dict[str, Any] = {
            "mAP": {f"{t:g}": value for t, value in self.detection.mAP.items()},
            "average": self.detection.average,
            "protocol": self.protocol,
        }
        if self.boundaries is not None:
            summary["boundary_error_frames"] = self.boundaries.mean
            summary["median_boundary_error_frames"] = self.boundaries.median
        if self.seconds is not None:
            summary["localization_seconds"] = self.seconds
        if self.oracle:
            summary["oracle"] = True
        return summary | ({"proposals": self.recall()} if proposals else {})

    def recall(self) -> dict[str, float]:
        """Average recall at each number of proposals per recording, labels unused, and the area below its curve."""
        numbers, recall, area = average_recall(self.truth, self.predictions)
        return {f"AR@{n}": float(recall[list(numbers).index(n)]) for n in PROPOSALS} | {"AUC": area}

    def tables(self, proposals: bool = False) -> list[Table]:
        thresholds = self.detection.thresholds
        more: dict[str, Any] = {"protocol": self.protocol, "ambiguous": self.ambiguous}
        tables = [
            per_class_table(self.detection),
            per_length_table(self.truth, self.predictions, thresholds, **more),
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


def evaluate(
    run: str | Path,
    thresholds: Sequence[float] | None = None,
    protocol: str = "anet",
    *,
    overrides: Sequence[str] = (),
    budget: float | None = None,
    device: str = "auto",
    allow_missing: bool = False,
    out: Path | None = None,
    console: Console | None = None,
    subset: str | None = None,
) -> Evaluation:
    """A trained model on the test subset of its configuration.

    Args:
        run: a run or checkpoint folder.
        thresholds: of tIoU; None: those of the configuration.
        protocol: anet (ActivityNet toolkit) or th14 (THUMOS14 toolkit).
        overrides: other settings of inference, `inference.key=value`.
        budget: see `Localizer.load`.
        device: see `Localizer.load`.
        allow_missing: leave out recordings without features.
        out: a file for the predictions too.
        console: for notes and progress.
        subset: another one than the test subset of the configuration.
    """
    _check_protocol(protocol)
    members = read_members(Path(run))
    if members is not None:
        return _evaluate_members(
            Path(run), members, thresholds, protocol, overrides=overrides, budget=budget, device=device, out=out,
            console=console,
        )  # fmt: skip
    description = read_info(find_checkpoint(Path(run)))
    config = description.config
    for override in overrides:
        if override.partition("=")[0] in FOR_USERS:
            why = "chooses what tzoom localize shows; here everything down to inference.min_score is ranked"
            raise InputError(f"override {override!r}: {why}")
    options = change_inference(config.inference, overrides, config)
    chosen = config.data if subset is None else config.data.model_copy(update={"test_subset": subset})
    data = load_data(chosen, config.seed, train=False, allow_missing=allow_missing, console=console)
    if data.test is None:
        raise InputError(f"data.test_subset: no recording of {config.data.test_subset!r} is left to score")
    if data.test.origin is not None:
        data.test.origin.check_against(description.origin, config.data.features)
    if chosen.test_subset.casefold() == chosen.train_subset.casefold() and console is not None:
        note = "scored on the recordings that it was trained on: how well it finds others is not known"
        console.print(note, highlight=False, soft_wrap=True)
    localizer = Localizer.load(run, budget, device)
    localizer.options = options
    if localizer.classes == (AGNOSTIC,) and options.video_scores is None and console is not None:
        note = "class-agnostic: scored without labels; inference.video_scores gives them"
        console.print(note, highlight=False, soft_wrap=True)
    tious = config.evaluation.thresholds if thresholds is None else thresholds
    evaluation = evaluate_split(localizer, data.test, tious, console, protocol=protocol, skipped=data.skipped)
    if out is not None:
        write_segments(out, evaluation.predictions)
    return evaluation


def _evaluate_members(
    run: Path,
    members: Members,
    thresholds: Sequence[float] | None,
    protocol: str,
    *,
    out: Path | None,
    console: Console | None,
    **options: Any,
) -> Evaluation:
    """A run of several networks (`tzoom fit`): on the recordings that were set aside, if there are any, else each
    recording by the member that has not seen it."""
    folders = members.paths(run)
    validated = [run / folder for folder in members.validated] or folders
    config = read_info(find_checkpoint(folders[0])).config
    if config.data.annotations is None:
        raise InputError(f"{run}: its members were not trained on annotated files")
    recordings = read_annotations(config.data.annotations).recordings
    has_test = any((recording.subset or "").casefold() == "test" for recording in recordings.values())
    parts = [
        evaluate(folder, thresholds, protocol, console=console, subset="test" if has_test else None, **options)
        for folder in (folders if has_test else validated)
    ]
    truth: dict[str, Segments] = {}
    found: dict[str, list[Segments]] = {}
    for part in parts:
        truth |= part.truth
        for name, segments in part.predictions.items():
            found.setdefault(name, []).append(segments)
    predictions = {
        name: fuse_members(pieces if has_test else pieces[:1], members.tiou) for name, pieces in found.items()
    }
    if not has_test and console is not None:
        note = "no recording was set aside: each is scored by one network that has not seen it"
        console.print(note, highlight=False, soft_wrap=True)
    tious = config.evaluation.thresholds if thresholds is None else thresholds
    rates = {name: recording.fps or 1.0 for name, recording in recordings.items() if name in truth}
    detection = evaluate_detections(truth, predictions, tious, protocol)
    if out is not None:
        write_segments(out, predictions)
    boundaries = boundary_errors(truth, predictions, rates)
    seconds = sum(part.seconds or 0.0 for part in parts)
    subjects = {name: who for part in parts for name, who in part.subjects.items()}
    return Evaluation(truth, predictions, detection, boundaries, protocol, seconds=seconds, subjects=subjects)


def evaluate_file(
    predictions: Path,
    truth: Path,
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
    protocol: str = "anet",
    subset: str | None = None,
) -> Evaluation:
    """Any detector's prediction file against an annotation file. subset: only this one of the annotations."""
    _check_protocol(protocol)
    annotations = read_annotations(truth)
    if subset is not None:
        annotations = annotations.subset(subset)
    found = read_predictions(predictions)
    rates = {name: recording.fps for name, recording in annotations.recordings.items()}
    known = {name: fps for name, fps in rates.items() if fps}
    ambiguous = annotations.ambiguous()
    detection = evaluate_detections(annotations.truth(), found, thresholds, protocol, ambiguous)
    boundaries = boundary_errors(annotations.truth(), found, known) if len(known) == len(rates) else None
    subjects = {name: who for name, r in annotations.recordings.items() if (who := known_subject(r)) is not None}
    return Evaluation(annotations.truth(), found, detection, boundaries, protocol, ambiguous, subjects=subjects)


def evaluate_run(
    run: str | Path,
    split: Split,
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
    console: Console | None = None,
    device: str = "auto",
) -> Evaluation:
    """A trained model on samples that are loaded already."""
    return evaluate_split(Localizer.load(run, device=device), split, thresholds, console)


def evaluate_split(
    localizer: Localizer,
    split: Split,
    thresholds: Sequence[float] = DEFAULT_THRESHOLDS,
    console: Console | None = None,
    *,
    protocol: str = "anet",
    skipped: tuple[str, ...] = (),
) -> Evaluation:
    """A model on the samples of a split. skipped: recordings that are not among them, for the record."""
    began = time.perf_counter()
    predictions = localize_split(localizer, split, console)
    seconds = time.perf_counter() - began
    # True labels where the model gives any, else segments of one class.
    truth = split.truth() if localizer.options.video_scores is None else split.labelled_truth()
    ambiguous = split.ambiguous()
    return Evaluation(
        truth,
        predictions,
        evaluate_detections(truth, predictions, thresholds, protocol, ambiguous),
        boundary_errors(truth, predictions, frames_per_second(split)),
        protocol,
        ambiguous,
        skipped,
        seconds,
        localizer.description.oracle_reach is not None,
        {sample.name: sample.subject for sample in split.samples if sample.subject is not None},
    )


def localize_split(localizer: Localizer, split: Split, console: Console | None = None) -> dict[str, Segments]:
    """Everything found in each sample, down to the lowest score, by name; with a progress bar."""
    console = console or plain_console(stderr=True)
    localizer.check_scores([sample.name for sample in split.samples])
    samples = track(split.samples, "localizing", console=console, transient=True, disable=not console.is_terminal)
    found, cuts, lowest = {}, [], Selection.of(localizer.options).lowest_threshold
    for sample in samples:
        outputs = [sample_outputs(localizer, sample)]
        found[sample.name], cut = localizer.decoded(outputs, sample.grid, sample.duration, sample.name)
        cuts += [cut] if 0 < cut >= lowest else []
    if cuts:
        text = f"{len(cuts)} of {len(found)} recordings: {cut_note(max(cuts))}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    return found


def sample_outputs(localizer: Localizer, sample: Sample) -> Outputs:
    """Raw outputs of a sample, (T, ...). Of an oracle ablation: with its true boundaries."""
    features, reach = _features(localizer, sample), localizer.description.oracle_reach
    if reach is None:
        return localizer.outputs(features)
    starts, ends = sample.grid.to_grid(sample.segments.starts), sample.grid.to_grid(sample.segments.ends)
    protected = near_boundaries(starts, ends, len(features), reach)
    options = localizer.options
    return run_network(localizer.model, localizer.checked(features), options.max_length, protected, options.precision)


def _features(localizer: Localizer, sample: Sample) -> NDArray[np.float32] | FeatureRows:
    """(T, F); of a video by the backbone that was trained with the model."""
    if sample.video is None or localizer.backbone is None:
        return sample.rows
    stride, window = int(sample.grid.stride), int(sample.grid.window)
    return video_features(sample.video.path, localizer.backbone, stride, window, sample.grid.fps)[0]


def frames_per_second(split: Split) -> Mapping[str, float]:
    return {sample.name: sample.grid.fps for sample in split.samples}


def _check_protocol(protocol: str) -> None:
    if protocol not in ("anet", "th14"):
        raise InputError(f"--protocol {protocol!r}: expected anet or th14")
