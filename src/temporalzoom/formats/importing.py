"""Files and folders of any known format, gathered into one set of annotations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import AMBIGUOUS, Annotations, Recording
from temporalzoom.formats.interface import Format, Imported, ImportOptions, Instance, durations_by_name, positive
from temporalzoom.formats.json_file import is_own_form, read_annotations
from temporalzoom.formats.registry import describe_readable, is_readable, readable_suffixes, reading_format
from temporalzoom.segments import Segments


def import_annotations(
    paths: Sequence[str | Path],
    *,
    fps: float | None = None,
    tiers: Sequence[str] = (),
    label_from: str = "value",
    durations: Sequence[str] = (),
    subset_column: str | None = None,
    test: Sequence[str] = (),
    predictions: bool = False,
    ignore: str | Path | None = None,
    point_events: float | None = None,
    behaviours: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    decimal: str | None = None,
    date_order: str | None = None,
    starts_at: Sequence[str] = (),
    sheet: str | None = None,
) -> Annotations:
    """Read files of any format of the table `FORMATS` that has a reader; a folder stands for all such files in it. One
    file in this package's own JSON form is read as it is, and gets subsets and durations.

    Args:
        fps: kept for every recording, and what frames are counted by.
        tiers, label_from: of ELAN files; the label is the `value` of an annotation or its `tier`.
        durations: `seconds` for all recordings or `name=seconds` for one.
        test: patterns of recordings that become the subset `test`, all others `train`.
        predictions: take the predictions of Label Studio tasks that nobody annotated.
        ignore: a file that folders are taken without, such as the one to write.
        point_events: the length in seconds that events without one get; without it they are left out.
        behaviours: the columns that are behaviours, of files with one row per frame.
        columns: of tables, `{meaning: name}` with the meanings start, end, duration (of the action), label, recording,
            subject, subset and recording_duration; of a VIA project, the attribute that is the label.
        subset_column: the same as `columns={"subset": ...}`.
        time_unit: of all times of a table, `seconds`, `milliseconds`, `minutes` or `frames`.
        decimal: `comma` or `point`, of a table's numbers.
        date_order: `day` or `month`, what comes first in a table's dates.
        starts_at: when recordings began, `2024-04-03 10:00:00` or `name=2024-04-03 10:00:00`, where times are dates.
        sheet: of a spreadsheet.

    What a user should know is in the `notes` of the result.
    """
    if fps is not None:
        positive(fps, "--fps")
    if point_events is not None:
        positive(point_events, "--point-events")
    options = ImportOptions(
        fps, tuple(tiers), label_from, subset_column, predictions, point_events, tuple(behaviours),
        tuple((columns or {}).items()), time_unit, decimal, date_order, tuple(starts_at), sheet, tuple(durations),
    )  # fmt: skip
    paths_of_files = _files(paths, None if ignore is None else Path(ignore))
    own = [path for path in paths_of_files if is_own_form(path)]
    if own:
        if len(paths_of_files) > 1:
            raise InputError(f"{own[0]}: annotations in this package's own form can only be imported alone")
        _check_use(options, ())
        return _own_form(own[0], fps, durations, test)
    files: dict[Format, list[Path]] = {}
    for path in paths_of_files:
        files.setdefault(reading_format(path, _given(options)), []).append(path)
    _check_use(options, files)
    notes: list[str] = []
    found: list[Imported] = []
    for format, of_format in files.items():
        assert format.read is not None  # `reading_format` chooses among those that have one
        found += format.read(of_format, options, notes)
    by_name = _by_name(found)
    _set_durations(by_name, durations)
    _set_subsets(by_name, test)
    empty = [name for name, recording in by_name.items() if not recording.instances]
    if len(empty) == len(by_name):
        why = "".join(f"; {note}" for note in notes)
        raise InputError(f"{', '.join(map(str, paths))}: no annotation in {len(by_name)} recordings{why}")
    if empty:
        notes.append(f"{len(empty)} recordings without actions: {', '.join(empty[:5])}{', ...' * (len(empty) > 5)}")
    recordings = {name: _recording(recording, fps) for name, recording in by_name.items()}
    classes = sorted({str(label) for recording in recordings.values() for label in recording.segments.labels})
    return Annotations(recordings, tuple(classes), notes=tuple(notes))


def read_any_annotations(
    path: str | Path,
    *,
    fps: float | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> Annotations:
    """The annotations of one file or folder of any known form, this package's own JSON included. All options are those
    of `import_annotations`."""
    return import_annotations([path], fps=fps, columns=columns, **options)


def _own_form(path: Path, fps: float | None, durations: Sequence[str], test: Sequence[str]) -> Annotations:
    """What the file says stays; an option fills in what it does not, except `name=seconds` and `test`, which win."""
    annotations = read_annotations(path)
    known = {n: Imported(n, str(path), [], r.subset, r.duration) for n, r in annotations.recordings.items()}
    _set_durations(known, durations)
    _set_subsets(known, test)
    recordings = {
        name: replace(r, subset=known[name].subset, duration=known[name].duration, fps=r.fps or fps)
        for name, r in annotations.recordings.items()
    }
    return replace(annotations, recordings=recordings)


def _files(paths: Sequence[str | Path], ignore: Path | None) -> list[Path]:
    """The files, those of folders in the order of their names. Only one suffix per folder."""
    files: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if not path.is_file():
                raise InputError(f"{path}: no such file or folder")
            files.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if is_readable(file) and file.is_file())
        inside = [file for file in inside if ignore is None or file.resolve() != ignore.resolve()]
        kinds = sorted({file.suffix.lower() for file in inside})
        if not kinds:
            raise InputError(f"{path}: no file {', '.join(readable_suffixes())} in this folder")
        # The same work may lie there in two formats, which would make every recording twice.
        if len(kinds) > 1:
            raise InputError(
                f"{path}: files of several formats ({', '.join(kinds)}) in one folder; name those to import"
            )
        files += inside
    return list(dict.fromkeys(files))


def _check_use(options: ImportOptions, formats: Collection[Format]) -> None:
    """An option that none of the files can use is refused."""
    for name, flag in _given(options).items():
        if not any(name in format.options for format in formats):
            raise InputError(f"{flag}: none of the files is {describe_readable(name)}")


def _given(options: ImportOptions) -> dict[str, str]:
    """Of the options that have a flag those that the user set, `{name: flag}`."""
    known = [option for option in fields(options) if "flag" in option.metadata]
    return {o.name: o.metadata["flag"] for o in known if getattr(options, o.name) != o.default}


def _by_name(found: Iterable[Imported]) -> dict[str, Imported]:
    by_name: dict[str, Imported] = {}
    for recording in found:
        if recording.name in by_name:
            first = by_name[recording.name].where
            raise InputError(f"{recording.where}: recording {recording.name!r} is already described in {first}")
        by_name[recording.name] = recording
    return by_name


def _set_durations(recordings: dict[str, Imported], durations: Sequence[str]) -> None:
    """`seconds` for those of which no file says it, `name=seconds` for one."""
    general, by_name = durations_by_name(durations)
    for name, seconds in by_name.items():
        if name not in recordings:
            raise InputError(f"--duration {name}={seconds:g}: no recording is called {name!r}")
        recordings[name].duration = seconds
    for recording in recordings.values():
        recording.duration = general if recording.duration is None else recording.duration


def _set_subsets(recordings: dict[str, Imported], test: Sequence[str]) -> None:
    for pattern in test:
        if not any(fnmatchcase(name, pattern) for name in recordings):
            raise InputError(f"--test: no recording is called {pattern!r}; present are {', '.join([*recordings][:8])}")
    if test:
        for name, recording in recordings.items():
            recording.subset = "test" if any(fnmatchcase(name, pattern) for pattern in test) else "train"


def _recording(imported: Imported, fps: float | None) -> Recording:
    ambiguous = [i for i in imported.instances if i.label.casefold() == AMBIGUOUS.casefold()]
    actions = [i for i in imported.instances if i.label.casefold() != AMBIGUOUS.casefold()]
    return Recording(
        imported.name, imported.subset, imported.duration, imported.fps if fps is None else fps, _segments(actions),
        _segments([i._replace(label=AMBIGUOUS) for i in ambiguous]), imported.extra,
    )  # fmt: skip


def _segments(instances: Sequence[Instance]) -> Segments:
    return Segments(*zip(*instances, strict=True)) if instances else Segments.empty()
