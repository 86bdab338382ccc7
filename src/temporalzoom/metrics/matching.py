"""Which detection finds which annotated instance: the one-to-one matching that all detection metrics share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.metrics.pairs import Booleans, Integers, Pool, overlapping_pairs
from temporalzoom.segments import Segments

PROTOCOLS = ("anet", "th14")
UNKNOWN_VIDEOS = ("false_positives", "ignore")


@dataclass(frozen=True, eq=False)
class Matching:
    """Detections of all videos by descending score, and the instance that each of them found.

    thresholds: K tIoU values; classes: C names, sorted; videos: names, those of the truth first.
    truth: M instances in annotation order; detections: N, highest score first, only labels of the truth.
    found: (K, N) index of the matched instance, -1 where there is none.
    ignored: (K, N) True where a detection is neither a true nor a false positive.
    """

    thresholds: tuple[float, ...]
    classes: tuple[str, ...]
    videos: tuple[str, ...]
    truth: Pool
    detections: Pool
    found: Integers
    ignored: Booleans


def match_detections(
    truth: Mapping[str, Segments],
    predictions: Mapping[str, Segments],
    thresholds: Sequence[float],
    protocol: str = "anet",
    ambiguous: Mapping[str, Segments] | None = None,
    unknown_videos: str = "false_positives",
) -> Matching:
    """One-to-one matching of detections and instances of the same class and video, at each tIoU threshold.

    `anet`: detections choose, highest score first; each takes the free instance of the largest tIoU >= threshold.
    `th14`: instances choose, in annotation order; each takes the free detection of the largest tIoU > threshold.
    Equal tIoU: the earlier annotation (anet), the higher score (th14). For the rest see `evaluate_detections`.

    A match never depends on other videos, so resampling videos (bootstrap) can reuse one matching.
    """
    thresholds = _checked_thresholds(thresholds)
    _check_choice("protocol", protocol, PROTOCOLS)
    _check_choice("unknown_videos", unknown_videos, UNKNOWN_VIDEOS)
    if not any(len(segments) for segments in truth.values()):
        raise InputError(f"the ground truth has no instance ({len(truth)} videos): nothing to evaluate against")

    classes = sorted({label for segments in truth.values() for label in segments.labels.tolist()})
    videos = tuple(dict.fromkeys([*truth, *predictions]))
    # The order of videos decides between equal scores. The THUMOS14 toolkit goes through the videos by name; on
    # S-CNN's detections, which have many equal scores, other orders move mAP by up to a point.
    order = sorted(predictions) if protocol == "th14" else list(predictions)
    order = [video for video in order if unknown_videos == "false_positives" or video in truth]
    instances = pool_segments(truth, list(truth), videos, classes)
    detections = pool_segments(predictions, order, videos, classes)
    detections = detections[np.argsort(-detections.scores, kind="stable")]

    rows, columns, overlaps = overlapping_pairs(detections, instances, min(thresholds))
    keys = (columns, -overlaps, rows) if protocol == "anet" else (rows, -overlaps, columns)
    by_preference = np.lexsort(keys)
    rows, columns, overlaps = rows[by_preference], columns[by_preference], overlaps[by_preference]
    found = np.full((len(thresholds), len(detections)), -1, np.intp)
    for matches, threshold in zip(found, thresholds, strict=True):
        enough = overlaps >= threshold if protocol == "anet" else overlaps > threshold
        match_greedily(rows[enough], columns[enough], matches)

    ignored = np.zeros(found.shape, bool)
    if protocol == "th14" and ambiguous:
        ignored = (found < 0) & _touching(detections, videos, ambiguous)
    return Matching(thresholds, tuple(classes), videos, instances, detections, found, ignored)


def _checked_thresholds(thresholds: Sequence[float]) -> tuple[float, ...]:
    # Rounded, so that np.arange's 0.6000000000000001 is 0.6 as a key and as a threshold.
    rounded = tuple(round(float(threshold), 9) for threshold in thresholds)
    if not rounded:
        raise InputError("no tIoU threshold given")
    for threshold in rounded:
        if not 0 < threshold <= 1:
            raise InputError(f"tIoU threshold {threshold} is not in (0, 1]")
    return rounded


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} {value!r} is not one of {', '.join(choices)}")


def pool_segments(
    segments: Mapping[str, Segments], order: Sequence[str], videos: Sequence[str], classes: Sequence[str]
) -> Pool:
    """The segments of the videos in `order`, without those whose label is not in `classes`."""
    index = {video: i for i, video in enumerate(videos)}
    for video in order:
        part = segments[video]
        if np.isnan(part.scores).any() or not (np.isfinite(part.starts).all() and np.isfinite(part.ends).all()):
            raise InputError(f"video {video!r}: a segment has a time or a score that is not a number")
    merged = Segments.concatenate(segments[video] for video in order)
    counts = [len(segments[video]) for video in order]
    places = {label: i for i, label in enumerate(classes)}
    labels = np.array([places.get(label, -1) for label in merged.labels.tolist()], np.intp)
    video_of_row = np.repeat(np.array([index[video] for video in order], np.intp), counts)
    return Pool(merged.starts, merged.ends, merged.scores, labels, video_of_row)[labels >= 0]


def _groups(keys: Integers) -> Iterator[tuple[int, Integers]]:
    """Each distinct key with its rows, in order: (N,) -> pairs (key, rows)."""
    rows = np.argsort(keys, kind="stable")
    distinct, firsts = np.unique(keys[rows], return_index=True)
    if len(distinct):
        yield from zip(distinct.tolist(), np.split(rows, firsts[1:]), strict=True)


def match_greedily(rows: Integers, columns: Integers, found: Integers) -> None:
    """Take pairs in the given order while both sides are free, and write them into `found` (N,)."""
    taken_rows: dict[int, int] = {}
    taken_columns: set[int] = set()
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        if row not in taken_rows and column not in taken_columns:
            taken_rows[row] = column
            taken_columns.add(column)
    found[list(taken_rows)] = list(taken_rows.values())


def _touching(detections: Pool, videos: Sequence[str], spans: Mapping[str, Segments]) -> Booleans:
    """(N,) True where a detection overlaps, however little, with one of its video's `spans`, whatever their label."""
    touching = np.zeros(len(detections), bool)
    for video, members in _groups(detections.videos):
        if (span := spans.get(videos[video])) is not None and (span.durations > 0).any():
            span = span[span.durations > 0].sort("start")
            starts, ends = detections.starts[members], detections.ends[members]
            before = np.searchsorted(span.starts, ends)  # so many begin before it ends; does one end after it begins?
            reached = np.concatenate([[-np.inf], np.maximum.accumulate(span.ends)])[before]
            touching[members] = (ends > starts) & (reached > starts)
    return touching
