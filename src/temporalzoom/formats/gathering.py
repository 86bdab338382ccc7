"""Files and folders of any known format, gathered into one set of annotations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import AMBIGUOUS, Annotations, Recording
from temporalzoom.formats.csv_table import read_table
from temporalzoom.formats.elan import read_elan
from temporalzoom.formats.label_studio import read_label_studio
from temporalzoom.formats.recordings import Imported, Instance, positive
from temporalzoom.segments import Segments

TABLES = (".csv", ".tsv")
SUFFIXES = (".eaf", ".json", *TABLES)


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
    """Read ELAN files, Label Studio's JSON exports and tables; a folder stands for all such files in it.

    fps: kept for every recording, and what frames of Label Studio are counted by. tiers, label_from (`value` or
    `tier`): of ELAN files. durations: `seconds` for all recordings or `name=seconds` for one. subset_column: of tables.
    test: patterns of recordings that become the subset `test`, all others `train`. predictions: take the predictions of
    Label Studio tasks that nobody annotated. ignore: a file that folders are taken without, such as the one to write.
    What a user should know is in the `notes` of the result.
    """
    if fps is not None:
        positive(fps, "--fps")
    files = _files(paths, None if ignore is None else Path(ignore))
    of_kind = {suffix: [file for file in files if file.suffix.lower() == suffix] for suffix in SUFFIXES}
    tables = [file for suffix in TABLES for file in of_kind[suffix]]
    for option, given, suitable, kind in (
        ("--tier", bool(tiers), of_kind[".eaf"], "an ELAN file (.eaf)"),
        ("--label-from", label_from != "value", of_kind[".eaf"], "an ELAN file (.eaf)"),
        ("--subset-column", subset_column is not None, tables, "a table (.csv, .tsv)"),
        ("--predictions", predictions, of_kind[".json"], "a Label Studio file (.json)"),
    ):
        if given and not suitable:
            raise InputError(f"{option}: none of the files is {kind}")
    notes: list[str] = []
    found = read_elan(of_kind[".eaf"], tiers, label_from, notes) if of_kind[".eaf"] else []
    for file in of_kind[".json"]:
        found += read_label_studio(file, fps, predictions, notes)
    for file in tables:
        found += read_table(file, subset_column)
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
    files: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            if path.suffix.lower() not in SUFFIXES and path.is_file():
                raise InputError(f"{path}: unknown format {path.suffix!r}; valid are {', '.join(SUFFIXES)}")
            if not path.is_file():
                raise InputError(f"{path}: no such file or folder")
            files.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
        inside = [file for file in inside if ignore is None or file.resolve() != ignore.resolve()]
        kinds = sorted({file.suffix.lower() for file in inside})
        if not kinds:
            raise InputError(f"{path}: no file {', '.join(SUFFIXES)} in this folder")
        # The same work may lie there in two formats, which would make every recording twice.
        if len(kinds) > 1:
            raise InputError(
                f"{path}: files of several formats ({', '.join(kinds)}) in one folder; name those to import"
            )
        files += inside
    return list(dict.fromkeys(files))


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
