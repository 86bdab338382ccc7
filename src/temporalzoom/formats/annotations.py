"""Annotations and predictions in the JSON forms of the field (ActivityNet style)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.json_records import (
    bsn_database,
    expect,
    foreign_form,
    instance,
    layout,
    number,
    read_object,
    short,
    span,
)
from temporalzoom.segments import Segments

AMBIGUOUS = "Ambiguous"  # the THUMOS14 name for spans that count neither for nor against a detector


@dataclass(frozen=True)
class Recording:
    """One recording and its action instances. `extra` holds the keys of the file that have no meaning here."""

    name: str
    subset: str | None = None
    duration: float | None = None
    fps: float | None = None
    segments: Segments = field(default_factory=Segments.empty)
    ambiguous: Segments = field(default_factory=Segments.empty)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Annotations:
    """Recordings by name, and the classes in the order of their indices.

    declared: the classes are the file's own list, not what was gathered from the labels. notes: what a user should know
    about how they were read, one sentence each.
    """

    recordings: dict[str, Recording]
    classes: tuple[str, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)
    declared: bool = field(default=False, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def subset(self, name: str) -> Annotations:
        """The recordings of one subset, upper and lower case alike. All classes stay, so that indices do not move."""
        chosen = {k: r for k, r in self.recordings.items() if (r.subset or "").casefold() == name.casefold()}
        if not chosen or not name:
            present = sorted({r.subset for r in self.recordings.values() if r.subset})
            raise InputError(f"no subset {name!r} in the annotations; present: {', '.join(present) or 'none'}")
        return replace(self, recordings=chosen)

    def truth(self) -> dict[str, Segments]:
        return {name: recording.segments for name, recording in self.recordings.items()}

    def ambiguous(self) -> dict[str, Segments]:
        return {name: recording.ambiguous for name, recording in self.recordings.items()}


def read_annotations(
    path: str | Path, *, label_keys: Sequence[str] = ("label",), allow_unlabelled: bool = False
) -> Annotations:
    """Read `{"database": {video: {"subset", "duration", "fps", "annotations": [...], "ambiguous"?}}}`, or the BSN form
    `{video: {"duration_second", "duration_frame", "annotations": [...]}}`, which names no subsets.

    label_keys: where an instance's label is. allow_unlabelled: entries without annotations, such as those of a hidden
    test subset, are recordings whose `extra` says `unlabelled`. Without fps, a number of frames (`frame`) gives it.
    Only the form is judged here. Times that make no sense (an end before its start), and labels that the file's own
    list of `classes` lacks, are left to `temporalzoom.datasets.check`, which lists all of them at once.
    """
    document = read_object(path)
    bsn = bsn_database(document)
    if bsn is not None:
        document = {"database": bsn}
    if "database" not in document:
        raise InputError(f"{path}: no key 'database'; {foreign_form(document)}")
    database = expect(document["database"], dict, f"{path}: 'database'")
    recordings: dict[str, Recording] = {}
    labels: list[tuple[str, Any, str]] = []  # (label, label_id, where)
    for name, entry in database.items():
        recordings[name], found = _recording(name, entry, f"{path}: video {name!r}", label_keys, allow_unlabelled)
        labels += found
    extra = {key: value for key, value in document.items() if key not in ("database", "classes")}
    declared = document.get("classes")
    if declared is None:
        return Annotations(recordings, _order_classes(labels), extra)
    if not isinstance(declared, list) or not all(isinstance(c, str) and c for c in declared):
        raise InputError(f"{path}: 'classes' must be a list of names, got {short(declared)}")
    classes = tuple(c for c in dict.fromkeys(declared) if c.casefold() != AMBIGUOUS.casefold())
    return Annotations(recordings, classes, extra, declared=True)


def write_annotations(path: str | Path, annotations: Annotations) -> None:
    """The inverse of `read_annotations`. `label_id` is the index in `annotations.classes`."""
    index = {label: i for i, label in enumerate(annotations.classes)}
    database = {}
    for name, recording in annotations.recordings.items():
        values = {"subset": recording.subset, "duration": recording.duration, "fps": recording.fps}
        entry: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
        entry["annotations"] = [
            {"label": label, "segment": [start, end]} | ({"label_id": index[label]} if label in index else {})
            for start, end, label, _ in recording.segments
        ]
        if len(recording.ambiguous):
            entry["ambiguous"] = [[start, end] for start, end, _, _ in recording.ambiguous]
        database[name] = {**recording.extra, **entry}
    document = {**annotations.extra, "classes": list(annotations.classes), "database": database}
    with replacing(path) as file:
        file.write(layout(document, levels=4) + "\n")


def read_predictions(path: str | Path) -> dict[str, Segments]:
    """Read `{"results": {video: [{"label", "segment": [start, end], "score"}]}}`."""
    document = read_object(path)
    if "results" not in document:
        raise InputError(f"{path}: no key 'results'; {foreign_form(document)}")
    predictions = {}
    for name, records in expect(document["results"], dict, f"{path}: 'results'").items():
        rows = []
        for i, record in enumerate(expect(records, list, f"{path}: video {name!r}")):
            where = f"{path}: video {name!r}, prediction {i}"
            start, end, label = instance(record, where)
            if "score" not in record:
                raise InputError(f"{where}: no key 'score'")
            rows.append((start, end, label, number(record["score"], f"{where}: 'score'")))
        predictions[name] = _segments(rows)
    return predictions


def write_predictions(path: str | Path, predictions: Mapping[str, Segments]) -> None:
    """The inverse of `read_predictions`, in the form that the ActivityNet toolkit takes."""
    results = {name: segments.to_records() for name, segments in predictions.items()}
    document = {"version": "1.3", "results": results, "external_data": {}}
    with replacing(path) as file:
        file.write(layout(document, levels=3) + "\n")


def _recording(
    name: str, entry: Any, where: str, label_keys: Sequence[str], allow_unlabelled: bool
) -> tuple[Recording, list[tuple[str, Any, str]]]:
    """One entry of the database -> the recording, and `(label, label_id, where)` of each of its instances."""
    entry = expect(entry, dict, where)
    if "annotations" not in entry:
        if allow_unlabelled:
            return _recording(name, {**entry, "annotations": [], "unlabelled": True}, where, label_keys, False)
        raise InputError(f"{where}: no key 'annotations' (a recording without actions has an empty list)")
    rows, ambiguous, labels = [], [], []
    for i, record in enumerate(expect(entry["annotations"], list, f"{where}: 'annotations'")):
        here = f"{where}, annotation {i}"
        start, end, label = instance(record, here, label_keys)
        if label.casefold() == AMBIGUOUS.casefold():
            ambiguous.append((start, end, AMBIGUOUS, 1.0))
        else:
            rows.append((start, end, label, 1.0))
            labels.append((label, record.get("label_id"), here))
    for i, record in enumerate(expect(entry.get("ambiguous", []), list, f"{where}: 'ambiguous'")):
        here = f"{where}, ambiguous {i}"
        pair = record if isinstance(record, list) else expect(record, dict, here).get("segment")
        ambiguous.append((*span(pair, f"{here}: 'segment'"), AMBIGUOUS, 1.0))
    subset = entry.get("subset")
    if subset is not None:
        expect(subset, str, f"{where}: 'subset'")
    duration, fps = (
        None if entry.get(key) is None else number(entry[key], f"{where}: {key!r}") for key in ("duration", "fps")
    )
    frames = entry.get("frame")
    if fps is None and frames is not None and duration is not None and duration > 0:
        fps = number(frames, f"{where}: 'frame'") / duration
    known = ("subset", "duration", "fps", "annotations", "ambiguous")
    extra = {key: value for key, value in entry.items() if key not in known}
    return Recording(name, subset, duration, fps, _segments(rows), _segments(ambiguous), extra), labels


def _order_classes(labels: Sequence[tuple[str, Any, str]]) -> tuple[str, ...]:
    """By `label_id` when every instance has one and labels and ids match one to one, else by name."""
    names = {label for label, _, _ in labels}
    if all(type(label_id) is int for _, label_id, _ in labels):
        pairs = {(label_id, label) for label, label_id, _ in labels}
        if len(pairs) == len(names) == len({label_id for label_id, _ in pairs}):
            return tuple(label for _, label in sorted(pairs))
    return tuple(sorted(names))


def _segments(rows: Sequence[tuple[float, float, str, float]]) -> Segments:
    starts, ends, labels, scores = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Segments(starts, ends, labels, scores)
