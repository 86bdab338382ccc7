"""`tzoom eval --report`: a page that shows how good a detector is on these data, from its evaluation."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.metrics.bootstrap import (
    AVERAGED,
    BootstrapResult,
    bootstrap_interval,
    bootstrap_map,
    draw_recordings,
)
from temporalzoom.metrics.detection import evaluate_detections
from temporalzoom.metrics.errors import analyse
from temporalzoom.metrics.lengths import LENGTH_EDGES, evaluate_by_length
from temporalzoom.metrics.operating_point import threshold_curves
from temporalzoom.metrics.rates import RESAMPLES, Interval, rate_intervals
from temporalzoom.metrics.verdict import counted, trust, verdict
from temporalzoom.metrics.worst_cases import worst_stretches
from temporalzoom.progress import Progress
from temporalzoom.segments import Segments
from temporalzoom.terminal import Screen
from temporalzoom.viewer.result_page import Results, write_result_page
from temporalzoom.workflows.evaluate import Evaluation

SHOWN = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # tIoU thresholds of the page, besides those of the evaluation
BATCH = 400  # resamples between two steps of the progress bar
Thresholds = float | Mapping[str, float] | None


def write_report(
    path: str | Path,
    evaluation: Evaluation,
    *,
    thresholds: Thresholds = None,
    title: str = "How good is this detector?",
    notes: Sequence[str] = (),
    next_steps: Sequence[str] = (),
    subjects: Mapping[str, str] | None = None,
    intervals: bool = True,
    console: Console | None = None,
) -> Path:
    """One HTML file, which needs nothing else: a verdict in words, scores, errors, worst cases.

    Args:
        path: of the page.
        evaluation: predictions, and what they are compared with.
        thresholds: from which score on detections count: one number, or one per label; where none is given, that of the
            best F1 at tIoU 0.5 on these data, and the page says so.
        title: of the page.
        notes: sentences that stand with those on how far to trust the numbers.
        next_steps: commands at the end.
        subjects: who is on which recording; by default what the evaluation knows.
        intervals: also bootstrap intervals over recordings.
        console: for progress.
    """
    truth, predictions = evaluation.truth, evaluation.predictions
    tious = sorted({*SHOWN, *evaluation.detection.thresholds})
    analysis = analyse(truth, predictions, thresholds)
    more = list(notes)
    if evaluation.oracle:
        more.append("The true boundaries helped to find these segments: an ablation, not a result.")
    if evaluation.skipped:
        more.append(f"Left out: {counted(len(evaluation.skipped), 'recording')} without features.")
    if evaluation.protocol != "anet":
        more.append(
            f"mAP follows the protocol {evaluation.protocol}; everything else on this page is matched as by anet, and "
            "ambiguous spans count as background."
        )
    can_draw = intervals and len(analysis.recordings) > 1
    results = Results(
        analysis=analysis,
        detection=evaluate_detections(truth, predictions, tious, evaluation.protocol, evaluation.ambiguous),
        lengths=evaluate_by_length(truth, predictions, tious, LENGTH_EDGES, evaluation.protocol, evaluation.ambiguous),
        curves=threshold_curves(truth, predictions),
        worst=worst_stretches(analysis),
        protocol=evaluation.protocol,
        subjects=evaluation.subjects if subjects is None else subjects,
        intervals=rate_intervals(analysis) if can_draw else None,
        # The bootstrap knows one protocol only.
        map_intervals=map_intervals(truth, predictions, tious, console)
        if can_draw and evaluation.protocol == "anet"
        else None,
    )
    return write_result_page(path, results, title=title, notes=more, next_steps=next_steps, console=console)


def check_page(path: Path) -> None:
    """Before anything long begins: is this the name of a page?"""
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise InputError(f"--report {path}: expected the name of a page, such as page.html")


def next_steps(run: Path | None) -> list[str]:
    """Commands that follow the evaluation of a run; of a prediction file none are known."""
    if run is None:
        return []
    model = shlex.quote(str(run))
    return [
        "# find actions in a new recording",
        f"tzoom localize RECORDING --model {model} --out found.csv",
        "# this page with a score threshold of your own",
        f"tzoom eval --model {model} --threshold 0.5 --report page.html",
    ]


def summarize(evaluation: Evaluation, thresholds: Thresholds = None) -> list[str]:
    """The verdict of the page in words, without its intervals."""
    analysis = analyse(evaluation.truth, evaluation.predictions, thresholds)
    return verdict(analysis) + trust(analysis, evaluation.subjects)


def map_intervals(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    tious: Sequence[float],
    console: Console | None = None,
) -> dict[float | None, Interval]:
    """95 % bootstrap intervals of mAP by tIoU threshold, and under None of the average over 0.3 to 0.7."""
    everything = dict(truth) | {name: Segments.empty() for name in predictions if name not in truth}
    draws = draw_recordings(len(everything), RESAMPLES)
    parts = []
    with Progress(console or Screen(quiet=True), "intervals", len(draws), "resamples", transient=True) as progress:
        for first in range(0, len(draws), BATCH):
            parts.append(bootstrap_map(everything, predictions, tious, draws=draws[first : first + BATCH]))
            progress.advance(min(BATCH, len(draws) - first))
    result = BootstrapResult(parts[0].thresholds, parts[0].point, np.concatenate([part.samples for part in parts]))
    found: dict[float | None, Interval] = {t: bootstrap_interval(result.over([t])[1]) for t in result.thresholds}
    return found | {None: bootstrap_interval(result.over(AVERAGED)[1])}


def read_thresholds(given: Sequence[str], evaluation: Evaluation) -> Thresholds:
    """`0.4` for all classes, `serve=0.4` for one; one class may be told from all others. None: nothing was given."""
    parts = (evaluation.truth, evaluation.predictions)
    labels = {str(label) for part in parts for segments in part.values() for label in np.unique(segments.labels)}
    common: float | None = None
    single: dict[str, float] = {}
    for text in given:
        label, sign, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            raise InputError(f"--threshold {text!r}: expected a score, as 0.4, or a class and its score, as serve=0.4")
        if not sign:
            common = value
        elif label in labels:
            single[label] = value
        else:
            raise InputError(f"--threshold {text!r}: no class {label!r}; there are {', '.join(sorted(labels))}")
    return ({} if common is None else dict.fromkeys(labels, common)) | single or None
