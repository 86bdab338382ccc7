"""Files and folders of any known format, gathered into one set of annotations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path

from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import AMBIGUOUS, Annotations, Recording
from temporalzoom.formats.interface import Format, Imported, ImportOptions, Instance, positive
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
) -> Annotations:
    """Read files of any format of the table `FORMATS` that has a reader; a folder stands for all such files in it.

    fps: kept for every recording, and what frames of Label Studio are counted by. tiers, label_from (`value` or
    `tier`): of ELAN files. durations: `seconds` for all recordings or `name=seconds` for one. subset_column: of tables.
    test: patterns of recordings that become the subset `test`, all others `train`. predictions: take the predictions of
    Label Studio tasks that nobody annotated. ignore: a file that folders are taken without, such as the one to write.
    What a user should know is in the `notes` of the result.
    """
    if fps is not None:
        positive(fps, "--fps")
    options = ImportOptions(fps, tuple(tiers), label_from, subset_column, predictions)
    files: dict[Format, list[Path]] = {}
    for path in _files(paths, None if ignore is None else Path(ignore)):
        files.setdefault(reading_format(path), []).append(path)
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
        raise InputError(f"{', '.join(map(str, paths))}: no annotation in {len(by_name)} recordings")
    if empty:
        notes.append(f"{len(empty)} recordings without actions: {', '.join(empty[:5])}{', ...' * (len(empty) > 5)}")
    recordings = {name: _recording(recording, fps) for name, recording in by_name.items()}
    classes = sorted({str(label) for recording in recordings.values() for label in recording.segments.labels})
    return Annotations(recordings, tuple(classes), notes=tuple(notes))


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
    for option in fields(options):
        given = getattr(options, option.name) != option.default
        if given and "flag" in option.metadata and not any(option.name in format.options for format in formats):
            raise InputError(f"{option.metadata['flag']}: none of the files is {describe_readable(option.name)}")


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
    general = None
    for text in durations:
        name, separator, seconds = text.rpartition("=")
        try:
            value = float(seconds)
        except ValueError:
            raise InputError(f"--duration must be seconds or name=seconds, got {text!r}") from None
        positive(value, f"--duration {text}: it")
        if not separator:
            general = value
        elif name in recordings:
            recordings[name].duration = value
        else:
            raise InputError(f"--duration {text}: no recording is called {name!r}")
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
        imported.name, imported.subset, imported.duration, fps, _segments(actions),
        _segments([i._replace(label=AMBIGUOUS) for i in ambiguous]),
    )  # fmt: skip


def _segments(instances: Sequence[Instance]) -> Segments:
    return Segments(*zip(*instances, strict=True)) if instances else Segments.empty()
