"""The pieces of the field's JSON files: reading them with errors that name the place, and a readable layout."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from temporalzoom.errors import InputError


def read_object(path: str | Path) -> dict[str, Any]:
    """The JSON object of a file. A key that occurs twice is an error: one of the two videos would be lost silently."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
            raise InputError(f"{path}: key {twice!r} occurs more than once in one object")
        return result

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8-sig"), object_pairs_hook=unique)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON file: {error}") from error
    return expect(document, dict, f"{path}: the file's content")


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


def short(value: Any) -> str:
    """`repr` on one line of at most 80 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
