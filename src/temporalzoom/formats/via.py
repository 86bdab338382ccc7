"""VIA, the VGG Image Annotator 3 (.via.json): temporal segments of videos and sounds, all recordings in one project.

Times are seconds and come back exactly, labels too. Scores are left out: VIA has no place for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import (
    ExportOptions,
    Imported,
    ImportOptions,
    checked_instance,
    has_media_suffix,
    name_of_media,
    note_point_events,
    point_event,
    read_bytes,
    read_text,
    short,
)
from temporalzoom.formats.json_file import expect, layout, number
from temporalzoom.json_tree import parse_json
from temporalzoom.segments import Segments

TEXT, CHECKBOX, RADIO, SELECT = 1, 2, 3, 4  # kinds of attributes
VIDEO, AUDIO = 4, 8  # kinds of files
LOCAL, HTTP = 1, 2  # where they are
SOUNDS = (".wav", ".mp3", ".flac", ".ogg", ".m4a")
SEGMENTS = "FILE1_Z2_XY0"  # the anchor of an attribute of temporal segments
ATTRIBUTE = "action"


# Writing


def write_via(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    with replacing(path) as file:
        file.write(layout(via_project(results, options.media), levels=3) + "\n")


def via_project(results: Mapping[str, Segments], media: Mapping[str, str | Path]) -> dict[str, Any]:
    """One file and view per recording, one attribute whose options are the labels."""
    labels = sorted({label for segments in results.values() for label in segments.labels.tolist()})
    identifiers = [str(index) for index in range(1, len(results) + 1)]
    files, metadata = {}, {}
    for identifier, (recording, segments) in zip(identifiers, results.items(), strict=True):
        address = str(media.get(recording, ""))
        web = address.startswith(("http://", "https://"))
        name = PurePath(address).name if address else recording
        files[identifier] = {
            "fid": identifier,
            "fname": name,
            "type": AUDIO if name.lower().endswith(SOUNDS) else VIDEO,
            "loc": HTTP if web else LOCAL,
            "src": address,
        }
        for index, (start, end, label, _) in enumerate(segments, 1):
            value = {"1": str(labels.index(label))}
            metadata[f"{identifier}_{index}"] = {"vid": identifier, "flg": 0, "z": [start, end], "xy": [], "av": value}
    attribute = {
        "aname": ATTRIBUTE,
        "anchor_id": SEGMENTS,
        "type": SELECT,
        "desc": "",
        "options": {str(index): label for index, label in enumerate(labels)},
        "default_option_id": "",
    }
    return {
        "project": {
            "pid": "__VIA_PROJECT_ID__",
            "rev": "__VIA_PROJECT_REV_ID__",
            "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
            "pname": "temporalzoom",
            "creator": "temporalzoom",
            "created": 0,
            "data_format_version": "3.1.1",
            "vid_list": identifiers,
        },
        "config": {
            "file": {"loc_prefix": {"1": "", "2": "", "3": "", "4": ""}},
            "ui": {
                "file_content_align": "center",
                "file_metadata_editor_visible": True,
                "spatial_metadata_editor_visible": False,
                "temporal_segment_metadata_editor_visible": True,
                "spatial_region_label_attribute_id": "",
                "gtimeline_visible_row_count": "4",
            },
        },
        "attribute": {"1": attribute},
        "file": files,
        "metadata": metadata,
        "view": {identifier: {"fid_list": [identifier]} for identifier in identifiers},
    }


# Reading


def is_via(path: Path) -> bool:
    """A JSON object with the parts of a project."""
    try:
        document = parse_json(read_bytes(path, may_be_empty=True))
    except ValueError:
        return False
    return isinstance(document, dict) and {"attribute", "file", "metadata", "view"} <= document.keys()


def read_via(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """One recording per view, named after its first file. The label is the value of the only attribute of temporal
    segments, or of that which `--columns label=NAME` names. `notes` counts what is no temporal segment."""
    return [recording for path in paths for recording in _read(path, options, notes)]


def _read(path: Path, options: ImportOptions, notes: list[str]) -> list[Imported]:
    try:
        document = parse_json(read_text(path, "a VIA project"))
    except ValueError as error:
        raise InputError(f"{path}: not a JSON file: {error}") from error
    expect(document, dict, f"{path}: a VIA project")
    parts = {
        key: expect(document.get(key), dict, f"{path}: {key!r}") for key in ("attribute", "file", "metadata", "view")
    }
    names, by_name = _names(path, parts)
    segments, others = [], 0
    for identifier, entry in parts["metadata"].items():
        where = f"{path}: metadata {identifier!r}"
        entry = expect(entry, dict, where)
        times = expect(entry.get("z", []), list, f"{where}: 'z'")
        if len(times) != 2 or entry.get("xy"):
            others += 1
        else:
            segments.append((where, entry, [number(time, f"{where}: 'z'") for time in times]))
    if others:
        notes.append(f"{path}: left out {others} regions and notes that are no temporal segments")
    chosen = _label_attribute(path, parts["attribute"], [entry for _, entry, _ in segments], options)
    points: Counter[str] = Counter()
    for where, entry, (start, end) in segments:
        view = str(entry.get("vid"))
        if view not in names:
            raise InputError(f"{where}: view {view!r} is not in the project")
        labels = _labels(parts["attribute"], chosen, entry, where)
        if not labels:
            raise InputError(f"{where}: the segment from {start:g} to {end:g} s has no label")
        for label in labels:
            if start != end:
                by_name[names[view]].instances.append(checked_instance(start, end, label, where))
            elif options.point_events is None:
                points[label] += 1
            else:
                by_name[names[view]].instances.append(point_event(start, label, options.point_events, where))
    note_point_events(path, points, notes)
    return list(by_name.values())


def _names(path: Path, parts: Mapping[str, dict[str, Any]]) -> tuple[dict[str, str], dict[str, Imported]]:
    """`{view: recording}` and the recordings, still empty."""
    names: dict[str, str] = {}
    by_name: dict[str, Imported] = {}
    for view, entry in parts["view"].items():
        where = f"{path}: view {view!r}"
        files = expect(expect(entry, dict, where).get("fid_list"), list, f"{where}: 'fid_list'")
        file = parts["file"].get(str(files[0])) if files else None
        name = str(expect(file, dict, f"{where}: its file").get("fname") or "").strip()
        name = name_of_media(name) if has_media_suffix(name) else name
        if not name:
            raise InputError(f"{where}: its file has no name ('fname')")
        if name in by_name:
            raise InputError(f"{where}: recording {name!r} is also that of {by_name[name].where.split(': ')[-1]}")
        names[view] = name
        by_name[name] = Imported(name, where, [])
    if not by_name:
        raise InputError(f"{path}: the project has no files")
    return names, by_name


def _label_attribute(
    path: Path, attributes: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], options: ImportOptions
) -> str:
    named = {id: str(expect(a, dict, f"{path}: attribute {id!r}").get("aname")) for id, a in attributes.items()}
    wanted = dict(options.columns)
    if wanted.keys() - {"label"}:
        raise InputError(f"{path}: of a VIA project --columns can choose the label only, an attribute")
    if wanted:
        found = [id for id, name in named.items() if name == wanted["label"]]
        if not found:
            raise InputError(f"{path}: no attribute {wanted['label']!r}; there are {', '.join(named.values())}")
        return found[0]
    used = [i for i in named if any(e.get("av", {}).get(i) for e in entries if isinstance(e.get("av"), dict))]
    if len(used) > 1:
        entry = next(e for e in entries if isinstance(e.get("av"), dict) and e["av"].get(used[0]))
        readings = [f"{named[i]!r} ({short(', '.join(_labels(attributes, i, entry, str(path))))})" for i in used[:2]]
        raise InputError(
            f"{path}: which attribute of the segment from {entry['z'][0]:g} to {entry['z'][1]:g} s is the label, "
            f'{readings[0]} or {readings[1]}? Choose with --columns label="{named[used[0]]}" or '
            f'--columns label="{named[used[1]]}"'
        )
    return used[0] if used else next(iter(named), "")


def _labels(attributes: Mapping[str, Any], chosen: str, entry: Mapping[str, Any], where: str) -> list[str]:
    """The text itself, or the names of the chosen options."""
    value = str(expect(entry.get("av") or {}, dict, f"{where}: 'av'").get(chosen, "")).strip()
    attribute = attributes.get(chosen) or {}
    options = attribute.get("options")
    choices = {} if attribute.get("type") == TEXT or not isinstance(options, dict) else options
    several = attribute.get("type") == CHECKBOX and value not in choices
    return [str(choices.get(one, one)) for one in (value.split(",") if several else [value]) if one]
