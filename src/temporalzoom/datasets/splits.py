"""Which recording is trained on and which is scored: for files that do not say, and for other questions than theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase

from temporalzoom.config import DataConfig
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, Recording

FOLDS = 4


def with_subsets(annotations: Annotations, data: DataConfig) -> Annotations:
    """The annotations with the subsets that the configuration asks for: by pattern, by subject, or for tuning."""
    if data.test_recordings:
        annotations = _by_pattern(annotations, data)
    if data.leave_out is not None:
        annotations = _leave_out(annotations, data)
    if data.folds is not None:
        annotations = _fold(annotations, data, "folds", data.fold, data.folds)
    if data.validation_fold is not None:  # the real test subset is gone
        annotations = _fold(annotations.subset(data.train_subset), data, "validation_fold", data.validation_fold, FOLDS)
    return annotations


def subject(recording: Recording) -> str:
    """Who was recorded, where the file says it; else the recording stands for itself."""
    return known_subject(recording) or recording.name


def known_subject(recording: Recording) -> str | None:
    """Who was recorded; None where the file does not say it."""
    who = recording.extra.get("subject")
    return None if who is None else str(who)


def _by_pattern(annotations: Annotations, data: DataConfig) -> Annotations:
    for pattern in data.test_recordings:
        if not any(fnmatchcase(name, pattern) for name in annotations.recordings):
            raise InputError(f"data.test_recordings: no recording is called {pattern!r}")
    return _assigned(annotations, data, lambda r: any(fnmatchcase(r.name, p) for p in data.test_recordings))


def _leave_out(annotations: Annotations, data: DataConfig) -> Annotations:
    subjects = {subject(recording) for recording in annotations.recordings.values()}
    if data.leave_out not in subjects:
        raise InputError(f"data.leave_out: no subject {data.leave_out!r}; there are {', '.join(sorted(subjects))}")
    return _assigned(annotations, data, lambda r: subject(r) == data.leave_out)


def _fold(annotations: Annotations, data: DataConfig, key: str, fold: int, folds: int) -> Annotations:
    """Of the subjects in order, number `fold` and every `folds`-th after it play the test. key: what asks for it."""
    subjects = sorted({subject(recording) for recording in annotations.recordings.values()})
    if len(subjects) < folds:
        raise InputError(f"data.{key}: needs at least {folds} subjects, there are {len(subjects)}")
    held_out = set(subjects[fold::folds])
    return _assigned(annotations, data, lambda r: subject(r) in held_out)


def _assigned(annotations: Annotations, data: DataConfig, is_test: Callable[[Recording], bool]) -> Annotations:
    def subset(recording: Recording) -> str:
        return data.test_subset if is_test(recording) else data.train_subset

    recordings = {name: replace(r, subset=subset(r)) for name, r in annotations.recordings.items()}
    return replace(annotations, recordings=recordings)
