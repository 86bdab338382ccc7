"""The field's JSON files (ActivityNet style): annotations and predictions, all recordings in one file.

Times are seconds and come back exactly, labels too. A record stays on one line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import AMBIGUOUS, Annotations, Recording
from temporalzoom.formats.interface import short
from temporalzoom.json_tree import nan_to_null, parse_json
from temporalzoom.segments import Segments


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
        database[name] = {**nan_to_null(recording.extra), **entry}
    document = {**nan_to_null(annotations.extra), "classes": list(annotations.classes), "database": database}
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
            if end < start:
                raise InputError(f"{where} ends before it starts: {start:g} to {end:g} s")
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
        fps = number(number(frames, f"{where}: 'frame'") / duration, f"{where}: 'frame' in its 'duration'")
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
    # An end before its start is for `tzoom data check` to name.
    return Segments.unchecked(starts, ends, labels, scores)


# The pieces of such files, read with errors that name the place


def read_object(path: str | Path) -> dict[str, Any]:
    """The JSON object of a file. A key that occurs twice is an error: one of the two videos would be lost silently."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
            raise InputError(f"{path}: key {twice!r} occurs more than once in one object")
        return result

    try:
        document = parse_json(Path(path).read_bytes(), unique)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path}: not a JSON file: {error}") from error
    return expect(document, dict, f"{path}: the file's content")


def is_own_form(path: Path) -> bool:
    """Whether `read_annotations` is the reader of this file: a JSON object with a database, or the BSN form."""
    if path.suffix.lower() != ".json":
        return False
    try:
        document = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and ("database" in document or bsn_database(document) is not None)


def foreign_form(document: Mapping[str, Any]) -> str:
    """What a JSON file without the expected key looks like instead."""
    first = next(iter(document.values()), None)
    if "results" in document:
        return "this is a file of predictions ('results'), annotations are expected"
    if "database" in document:
        return "this is a file of annotations ('database'), predictions are expected"
    if isinstance(first, dict) and "duration_second" in first:
        return "this looks like annotations in the BSN form {video: {'duration_second', 'annotations'}}"
    return f"its keys are {short(list(document)[:8])}"


def bsn_database(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """The file of BSN and BMN, `{video: {"duration_second", "duration_frame", "annotations"}}`, as the entries of a
    database; None if the file has another form. It names no subsets."""
    entries = document.values()
    if not entries or not all(isinstance(entry, dict) and "duration_second" in entry for entry in entries):
        return None
    database = {}
    for name, entry in document.items():
        rest = {key: value for key, value in entry.items() if key not in ("duration_second", "duration_frame")}
        database[name] = {**rest, "duration": entry["duration_second"], "frame": entry.get("duration_frame")}
    return database


def instance(record: Any, where: str, label_keys: Sequence[str] = ("label",)) -> tuple[float, float, str]:
    """`{"label", "segment": [start, end]}` -> `(start, end, label)`. `where` opens the message of every error.

    label_keys: under which keys the label may be; the first one present counts.
    """
    record = expect(record, dict, where)
    key = next((key for key in label_keys if key in record), label_keys[0])
    for needed in (key, "segment"):
        if needed not in record:
            raise InputError(f"{where}: no key {needed!r}")
    label = record[key]
    if not isinstance(label, str) or not label:
        raise InputError(f"{where}: {key!r} must be a name, got {short(label)}")
    return (*span(record["segment"], f"{where}: 'segment'"), label)


def span(value: Any, where: str) -> tuple[float, float]:
    """`[start, end]`, in any order."""
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"{where} must be [start, end] in seconds, got {short(value)}")
    return number(value[0], where), number(value[1], where)


def number(value: Any, where: str) -> float:
    """A finite number that is not a truth value."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:  # False for NaN as well
        return float(value)
    raise InputError(f"{where} must be a finite number, got {short(value)}")


def expect(value: Any, kind: type, where: str) -> Any:
    """`value` itself, if it is a dict, list or str as asked."""
    if not isinstance(value, kind):
        words: dict[type, str] = {dict: "an object {...}", list: "a list [...]", str: "text"}
        raise InputError(f"{where} must be {words[kind]}, got {short(value)}")
    return value


def layout(value: Any, levels: int, indent: str = "") -> str:
    """JSON with one item per line in the outer `levels`, the rest inline: a record stays on one line."""
    if levels == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    if isinstance(value, dict):
        names = (json.dumps(name, ensure_ascii=False) for name in value)
        items = [f"{name}: {layout(v, levels - 1, inner)}" for name, v in zip(names, value.values(), strict=True)]
    else:
        items = [layout(v, levels - 1, inner) for v in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(inner + item for item in items) + f"\n{indent}{closing}"
