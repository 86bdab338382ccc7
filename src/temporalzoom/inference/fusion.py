"""Labels for class-agnostic segments, from a classifier that has seen the whole recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.formats.interface import short
from temporalzoom.formats.json_file import expect, number, read_object
from temporalzoom.segments import Segments, as_labels

TOP = 2  # classes that each segment is given, as the field does

VideoScores = Mapping[str, Mapping[str, float]]


def read_video_scores(path: str | Path) -> dict[str, dict[str, float]]:
    """Scores of every class for every recording.

    Two forms: `{"results": {video: [scores]}, "class": [names]}`, as the CUHK classifier of ActivityNet is shared, and
    `{video: {label: score}}`.
    """
    document = read_object(path)
    if "results" not in document:
        return {
            video: {label: _score(value, f"{path}: video {video!r}, {label!r}") for label, value in row.items()}
            for video, row in ((v, expect(r, dict, f"{path}: video {v!r}")) for v, r in document.items())
        }
    names = document.get("class")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path}: 'class' must be the list of class names beside 'results', got {short(names)}")
    if len(set(names)) < len(names):
        raise InputError(f"{path}: 'class' names a class twice")
    scores = {}
    for video, row in expect(document["results"], dict, f"{path}: 'results'").items():
        where = f"{path}: video {video!r}"
        if len(expect(row, list, where)) != len(names):
            raise InputError(f"{where} has {len(row)} scores for {len(names)} classes")
        scores[video] = {name: _score(value, where) for name, value in zip(names, row, strict=True)}
    return scores


def fuse(segments: Segments, scores: Mapping[str, float], top: int = TOP) -> Segments:
    """Every segment once for each of the `top` classes, scored sqrt(segment score * class score), highest first."""
    best = sorted(scores.items(), key=lambda item: -item[1])[:top]
    count = len(segments)
    return Segments(
        np.tile(segments.starts, len(best)),
        np.tile(segments.ends, len(best)),
        np.repeat(as_labels([label for label, _ in best]), count),
        np.sqrt(np.outer([score for _, score in best], segments.scores).reshape(-1)),
        classes=scores,
    ).sort("score")


def labels_of(scores: VideoScores) -> tuple[str, ...]:
    """Every label that a segment may get."""
    return tuple(dict.fromkeys(label for row in scores.values() for label in row))


def check_scores(names: Sequence[str], scores: VideoScores, path: str | Path) -> None:
    """Complain about recordings that the classifier has no scores for. path: of its file."""
    missing = [name for name in names if not scores.get(name)]
    if missing:
        shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise InputError(
            f"inference.video_scores: {path} has no scores for {len(missing)} of {len(names)} recordings: {shown}"
        )


def _score(value: object, where: str) -> float:
    score = number(value, where)
    if score < 0:
        raise InputError(f"{where}: scores must not be negative, got {short(value)}")
    return score
