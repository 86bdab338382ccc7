"""The page of a detector's result, for people with recordings: a verdict in words, then what it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import Console

from temporalzoom.metrics.bootstrap import AVERAGED
from temporalzoom.metrics.detection import DetectionResult
from temporalzoom.metrics.errors import Analysis
from temporalzoom.metrics.lengths import LengthResult
from temporalzoom.metrics.operating_point import ThresholdCurve
from temporalzoom.metrics.pairs import Pool
from temporalzoom.metrics.rates import Interval, RateIntervals
from temporalzoom.metrics.verdict import bias_words, counted, listed, trust, verdict
from temporalzoom.metrics.worst_cases import Stretch
from temporalzoom.progress import track
from temporalzoom.segments import Segments
from temporalzoom.viewer.report import Report
from temporalzoom.viewer.result_plots import plot_error_kinds, plot_threshold_curves
from temporalzoom.viewer.timeline import plot_timeline

ALL = "all classes"
MATRIX_CLASSES, BAR_CLASSES, CURVES = 25, 40, 12  # more than that cannot be read
_CASE_WORDS = {
    "missed": "missed",
    "misplaced": "found with misplaced boundaries",
    "wrong label": "found under another label",
}


@dataclass(frozen=True, eq=False)
class Results:
    """What the page shows. detection, lengths: at several tIoU thresholds; curves: of all classes and of each.

    intervals: by label, None for all classes; map_intervals: by tIoU threshold, None for their average over 0.3 to 0.7;
    both empty where nobody asked. worst: stretches to draw.
    """

    analysis: Analysis
    detection: DetectionResult
    lengths: LengthResult
    curves: tuple[ThresholdCurve, dict[str, ThresholdCurve]]
    worst: Sequence[Stretch]
    protocol: str = "anet"
    subjects: Mapping[str, str] | None = None
    intervals: Mapping[str | None, RateIntervals] | None = None
    map_intervals: Mapping[float | None, Interval] | None = None


def write_result_page(
    path: str | Path,
    results: Results,
    *,
    title: str,
    notes: Sequence[str] = (),
    next_steps: Sequence[str] = (),
    console: Console | None = None,
) -> Path:
    """One HTML file that needs nothing else. notes: sentences of the caller; next_steps: commands."""
    report = Report(title, "How good a detector is on recordings whose actions are known.")
    _show_verdict(report, results, notes)
    sections = (
        _show_classes,
        _show_errors,
        _show_confusions,
        _show_worst,
        _show_boundaries,
        _show_thresholds,
        _show_scores,
    )
    for show in track(sections, "drawing", console, "sections"):
        show(report, results)
    if next_steps:
        report.heading("What to do next").commands(next_steps)
    _explain(report)
    return report.write(path)


def _show_verdict(report: Report, results: Results, notes: Sequence[str]) -> None:
    everything = None if results.intervals is None else results.intervals[None]
    average = None if results.map_intervals is None else results.map_intervals.get(None)
    report.heading("Verdict").sentences(verdict(results.analysis), lead=True)
    report.heading("How far to trust it")
    report.sentences([*trust(results.analysis, results.subjects, everything, average), *notes])


def _show_classes(report: Report, results: Results) -> None:
    analysis = results.analysis
    intervals, unknown = results.intervals or {}, RateIntervals(None, None, None)
    rows: list[list[str | float | int | None]] = []
    for label in _annotated_first(analysis):
        counts, known = analysis.counts(label), intervals.get(label, unknown)
        rows.append(
            [
                ALL if label is None else label,
                counts.instances,
                counts.correct,
                counts.detections - counts.correct,
                _with_interval(counts.precision, known.precision),
                _with_interval(counts.recall, known.recall),
                _with_interval(counts.f1, known.f1),
                None if label is None else _score(analysis.thresholds[label]),
            ]
        )
    brackets = "" if results.intervals is None else " In brackets: 95 % bootstrap interval over recordings."
    report.heading("Class by class").table(
        ["class", "instances", "found", "wrong", "precision %", "recall %", "F1 %", "from score"],
        rows,
        caption="Detections count from the score in the last column on. Found: instances with a detection of "
        "their class, tIoU at least 0.5. Wrong: detections that found no instance. Precision: share of the detections "
        f"that are right. Recall: share of the instances that are found. F1: their harmonic mean.{brackets}",
    )


def _show_errors(report: Report, results: Results) -> None:
    analysis = results.analysis
    labels = [label for label in _annotated_first(analysis) if label is not None]
    left_out = len(labels) - BAR_CLASSES
    if left_out > 0:
        labels = sorted(labels, key=lambda label: _f1(analysis, label))[:BAR_CLASSES]
    shown = {ALL: analysis.kinds(), **{label: analysis.kinds(label) for label in labels}}
    report.heading("What goes wrong").figure(
        plot_error_kinds(
            {name: _ordered(kinds[1], "missed") for name, kinds in shown.items()},
            {name: _ordered(kinds[0], "background") for name, kinds in shown.items()},
            ("instances", "detections"),
        ),
        "What became of the instances of each class, and what its detections are; all bars equally long, with numbers. "
        "Misplaced: the right class, tIoU 0.1 to 0.5. Wrong label: it overlaps an instance of another class more than "
        "any of its own, tIoU at least 0.3. Duplicate: another detection has found the instance. Background: nothing "
        "of that kind is there." + (f" The {BAR_CLASSES} classes of lowest F1." if left_out > 0 else ""),
        alt="Bars of the kinds of errors by class",
    )


def _show_confusions(report: Report, results: Results) -> None:
    analysis = results.analysis
    matrix, size = analysis.confusion, len(analysis.classes)
    chosen = np.arange(size)
    if size > MATRIX_CLASSES:
        off = matrix[:size, :size] - np.diag(np.diag(matrix[:size, :size]))
        chosen = np.sort(np.argsort(-(off.sum(axis=0) + off.sum(axis=1)), kind="stable")[:MATRIX_CLASSES])
    index = [*chosen.tolist(), size]
    names = [analysis.classes[i] for i in chosen]
    more = f" The {MATRIX_CLASSES} classes that are confused most." if size > MATRIX_CLASSES else ""
    report.heading("Which class is taken for which").matrix(
        "true \N{DOWNWARDS ARROW}  found \N{RIGHTWARDS ARROW}",
        [*names, "nothing there"],
        [*names, "nothing found"],
        matrix[np.ix_(index, index)].tolist(),
        caption="Rows: the true class; columns: the class found there (tIoU at least 0.3, one detection per instance, "
        "its own class first). Last column: instances where nothing was found. Last row: detections where nothing is, "
        f"or where the instance had been found already.{more}",
    )


def _show_worst(report: Report, results: Results) -> None:
    if not results.worst:
        return
    analysis = results.analysis
    report.heading("Where most goes wrong").text(
        "The recordings, or parts of long ones, with the most instances not found and detections that are wrong. Above "
        "the truth, below what was found. Underlined in red: instances that were not found, and wrong detections. "
        "Paler bars have lower scores."
    )
    for stretch in results.worst:
        margin = 0.0 if stretch.whole else 0.03 * (stretch.end - stretch.start)
        span = max(stretch.start - margin, 0.0), stretch.end + margin
        truth, lost = _drawn(analysis, analysis.truth, analysis.instance_kinds > 0, stretch.recording, span)
        found, wrong = _drawn(analysis, analysis.detections, analysis.detection_kinds > 0, stretch.recording, span)
        report.figure(
            plot_timeline(
                truth,
                {"found": found},
                span[1],
                classes=analysis.classes,
                start=span[0],
                marked={"truth": lost, "found": wrong},
            ),
            case_words(stretch),
        )


def case_words(stretch: Stretch) -> str:
    """One sentence about a stretch: `match7, 1:00 to 2:00: of 9 instances 2 are missed; 1 detection is wrong.`"""
    where = stretch.recording if stretch.whole else f"{stretch.recording}, {_clock(stretch.start, stretch.end)}"
    total = sum(stretch.instances.values())
    lost = [f"{stretch.instances[kind]} {words}" for kind, words in _CASE_WORDS.items() if stretch.instances[kind]]
    first = f"of {counted(total, 'instance')} {stretch.instances['found']} found" if total else "nothing is annotated"
    parts = [", ".join([first, *lost])]
    correct = stretch.detections["correct"]
    wrong = sum(stretch.detections.values()) - correct
    if wrong:
        kinds = [f"{n} {kind}" for kind, n in stretch.detections.items() if kind != "correct" and n]
        parts.append(f"of {counted(correct + wrong, 'detection')} {wrong} wrong ({', '.join(kinds)})")
    return f"{where}: {'; '.join(parts)}."


def _show_boundaries(report: Report, results: Results) -> None:
    analysis = results.analysis
    rows: list[list[str | float | int | None]] = []
    for label in _annotated_first(analysis):
        start, end = analysis.boundaries(label)
        rows.append([ALL if label is None else label, start.count])
        for errors in (start, end):
            rows[-1] += [errors.median, errors.percentile_90, _signed(errors.bias)]
    words = [text for text in map(bias_words, analysis.boundaries(), ("starts", "ends")) if text]
    report.heading("How precise starts and ends are")
    if words:
        text = listed(words)
        report.text(f"{text[0].upper()}{text[1:]}.")
    report.table(
        ["class", "found", "start: median", "start: 90 %", "start: bias", "end: median", "end: 90 %", "end: bias"],
        rows,
        digits=2,
        caption="Distance from the true start and end in seconds, of the instances that were found: half of the errors "
        "are at most the median, nine of ten at most the next column. Bias: the mean with its sign; below zero is too "
        "early, above too late.",
    )


def _show_thresholds(report: Report, results: Results) -> None:
    common, by_class = results.curves
    labels = sorted(by_class, key=lambda label: (-by_class[label].positives, label))
    # One class: its curve is that of all classes.
    shown = {ALL: common} | {label: by_class[label] for label in sorted(labels[: CURVES - 1])}
    if len(by_class) == 1:
        shown = dict(by_class)
    more = f" The {CURVES - 1} classes with the most instances." if len(by_class) > CURVES - 1 else ""
    report.heading("From which score on to believe it").figure(
        plot_threshold_curves(shown, results.analysis.thresholds),
        "Precision, recall and F1 if only detections from a score on count, tIoU at least 0.5. A higher threshold "
        f"makes fewer mistakes and misses more. Dashed: the threshold that this page uses.{more}",
    )


def _show_scores(report: Report, results: Results) -> None:
    detection, lengths = results.detection, results.lengths
    known = results.map_intervals or {}
    average = float(np.mean([detection.mAP[t] for t in AVERAGED]))
    headers = ["mean of .3 to .7", *(f"@{t:g}" for t in detection.thresholds)]
    values = [average, *detection.mAP.values()]
    spans = [known.get(None), *(known.get(t) for t in detection.thresholds)]
    report.heading("Scores of the field").table(
        ["tIoU", "mAP %"],
        [[name, _with_interval(value, span, 1)] for name, value, span in zip(headers, values, spans, strict=True)],
        caption=f"Mean average precision, protocol {results.protocol}, by the tIoU that a detection needs to count; "
        "all detections down to the lowest score take part."
        + (" In brackets: 95 % bootstrap interval over recordings." if known else ""),
    )
    columns = [detection.thresholds.index(t) for t in AVERAGED]
    rows: list[list[str | float | int | None]] = []
    for label, values in zip(detection.classes, 100 * detection.ap.T, strict=True):
        rows.append([label, float(values[columns].mean()), *values.tolist()])
    report.table(["class", *headers], rows, caption="Average precision of each class in percent.")
    rows = []
    for (low, high), count, values in zip(pairwise(lengths.edges), lengths.instances, 100 * lengths.mAP, strict=True):
        name = f"{low:g} s and more" if math.isinf(high) else f"{low:g} to {high:g} s"
        rows.append([name, int(count), float(values[columns].mean()), *values.tolist()])
    report.table(
        ["length", "instances", *headers],
        rows,
        caption="mAP in percent by the length of the instances. A detection that finds nothing counts against every "
        "length: compare two detectors within a row, not the rows with each other.",
    )


def _explain(report: Report) -> None:
    report.heading("Words").text(
        "An instance is one action that somebody has annotated, with its start and end; a detection is one that the "
        "detector reports, with a score. tIoU, temporal intersection over union, says how well two segments agree: the "
        "time that both have, divided by the time that at least one of them has. It is 1 where they are the same and 0 "
        "where they do not touch; of two segments of equal length, 0.5 means that they share two thirds."
        "\n\n"
        "mAP, mean average precision, needs no score threshold: it is high where the right detections have the highest "
        "scores. It is the number by which papers compare detectors."
    )


def _annotated_first(analysis: Analysis) -> list[str | None]:
    """Classes with instances, then those that are only found, then None for all."""
    annotated = {label: analysis.counts(label).instances for label in analysis.classes}
    return [*(n for n, count in annotated.items() if count), *(n for n, count in annotated.items() if not count), None]


def _drawn(
    analysis: Analysis, pool: Pool, wrong: np.ndarray, recording: str, span: tuple[float, float]
) -> tuple[Segments, np.ndarray]:
    """The segments of a recording that lie in the span, cut to it, and which of them are wrong."""
    inside = pool.videos == analysis.recordings.index(recording)
    rows = np.flatnonzero(inside & (pool.ends > span[0]) & (pool.starts < span[1]))
    labels = np.array(analysis.classes)[pool.labels[rows]]
    starts, ends = np.maximum(pool.starts[rows], span[0]), np.minimum(pool.ends[rows], span[1])
    return Segments(starts, ends, labels, pool.scores[rows]), wrong[rows]


def _ordered(kinds: dict[str, int], last: str) -> dict[str, int]:
    return {kind: count for kind, count in kinds.items() if kind != last} | {last: kinds[last]}


def _f1(analysis: Analysis, label: str) -> float:
    f1 = analysis.counts(label).f1
    return -1.0 if math.isnan(f1) else f1


def _score(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def _with_interval(value: float, interval: Interval | None, digits: int = 0) -> str | None:
    if math.isnan(value):
        return None
    text = f"{100 * value:.{digits}f}"
    if interval is None:
        return text
    low, high = interval
    return f"{text} [{100 * low:.{digits}f}, {100 * high:.{digits}f}]"


def _signed(value: float) -> str | None:
    return None if math.isnan(value) else f"{value:+z.2f}"


def _clock(start: float, end: float) -> str:
    if end < 60:
        return f"{start:.1f} to {end:.1f} s"
    first, last = (f"{int(t // 60)}:{int(t % 60):02d}" for t in (start, end))
    return f"{first} to {last} min"
