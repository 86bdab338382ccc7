"""Soft labels: instances with scores from 0 to 1, such as a teacher's, that are trained on in the place of annotated
ones. What is scored against stays what was annotated."""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path

from temporalzoom.datasets.samples import Sample, Split
from temporalzoom.errors import InputError
from temporalzoom.formats import read_predictions
from temporalzoom.segments import Segments


def with_soft_labels(split: Split, file: Path) -> Split:
    """The same recordings with the instances of a file in the form of predictions, which has to name all of them.

    A score of 1 is an annotated instance, one of 0.3 an instance that class scores are to give 0.3.
    """
    found = read_predictions(file)
    samples = []
    for sample in split.samples:
        if sample.name not in found:
            raise InputError(f"data.soft_labels: {file} has no entry for recording {sample.name!r}")
        _check(found[sample.name], sample, split.classes, f"data.soft_labels: {file}: video {sample.name!r}")
        samples.append(replace(sample, segments=found[sample.name]))
    if not any(len(sample.segments) for sample in samples):
        raise InputError(f"data.soft_labels: {file} holds no instance to learn from")
    return replace(split, samples=tuple(samples))


def _check(segments: Segments, sample: Sample, classes: tuple[str, ...], where: str) -> None:
    for number, (start, _, label, score) in enumerate(segments):
        if label not in classes:
            near = difflib.get_close_matches(label, classes, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"the classes are {', '.join(map(repr, classes[:20]))}"
            raise InputError(f"{where}, prediction {number}: no class {label!r}; {hint}")
        if not 0 <= score <= 1:
            raise InputError(f"{where}, prediction {number}: 'score' must be from 0 to 1, got {score:g}")
        if start > sample.duration:
            raise InputError(
                f"{where}, prediction {number}: starts at {start:g} s, the recording ends at {sample.duration:g} s"
            )
