"""What a user has, recordings and annotations in any form, gathered for training."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.console import Console

from temporalzoom.datasets.folds import in_pieces
from temporalzoom.datasets.gathered import SAME_RATE, SIGNALS, TEST, Gathered, load, store, store_described
from temporalzoom.datasets.splits import subject
from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording
from temporalzoom.formats.importing import read_any_annotations
from temporalzoom.progress import track
from temporalzoom.segments import Segments
from temporalzoom.signals.channel_kinds import channel_kinds
from temporalzoom.signals.container import Signal
from temporalzoom.signals.decoding import probe
from temporalzoom.signals.extraction import VIDEO_SUFFIXES
from temporalzoom.signals.extraction_processes import extract_features
from temporalzoom.signals.sidecars import read_sidecar
from temporalzoom.signals.signal_files import ArchivedArray, find_recordings, read_signal
from temporalzoom.workflows.rules import video_stride
from temporalzoom.workflows.sweep import usable_cores

Files = Mapping[str, Path | ArchivedArray]
UNNAMED_POSE = "xyc"  # what `channel_kinds` knows by its values
LENGTH_TOLERANCE = 0.05  # of the number of rows that a duration and a rate make
PIECES = 5  # what a single recording is cut into, so that something can be held out


@dataclass(frozen=True)
class GatherOptions:
    """What a user may say about the files.

    Attributes:
        fps: rows (or frames) per second, of files without a clock.
        background: labels that are no actions.
        test: patterns of recordings that are set aside until the end.
        subject: a regular expression; what it finds in the name of a recording (its first group, if it has one) is the
            subject, and recordings of one subject are never both trained on and validated on.
        label_column: of tables with a label per row.
        reading: how the file of annotations is read, as `formats.import_annotations` takes it, such as `columns`,
            `tiers` or `point_events`.
        backbone: what turns videos into features.
    """

    fps: float | None = None
    background: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    subject: str | None = None
    label_column: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    backbone: str = "motion"


def gather(
    recordings: Path,
    annotations: Path | None,
    folder: Path,
    options: GatherOptions | None = None,
    console: Console | None = None,
) -> Gathered:
    """Signals and their annotations into `folder`; what is there already, from the same files, is used again.

    Args:
        recordings: a folder of signal files or of videos, or an .npz archive.
        annotations: a file of any known format; None: the signal files have a label per row.
        folder: where to.
        options: what the user says about the files.
        console: for progress.
    """
    options = options or GatherOptions()
    files = find_recordings(recordings, () if annotations is None else (annotations,))
    for name in files:
        if name in ("", ".", "..") or set(name) & set("/\\\0"):  # it becomes the name of a file here
            raise InputError(f"{recordings}: {name!r} cannot be the name of a recording; rename the array")
    made_from = [_signature(files, annotations), repr(options)]
    known = load(folder, made_from)
    if known is not None:
        return known
    if annotations is None and options.reading:
        flag = next(iter(options.reading)).replace("tiers", "tier").replace("_", "-")
        raise InputError(f"--{flag}: says how a file of annotations is read, but none is given")
    read = None if annotations is None else _annotations(annotations, options)
    names = {name: name for name in files} if read is None else matched_names(list(files), list(read.recordings))
    notes = list(read.notes) if read is not None else []
    unused = sorted(set(files) - set(names.values()))
    if unused:
        notes.append(f"{len(unused)} recordings are not annotated and left out: {', '.join(unused[:5])}")
    if _are_videos(files):
        if read is None:
            raise InputError(f"{recordings}: videos need a file of annotations")
        described = {n: _as_asked(replace(read.recordings[a], name=n), options) for a, n in names.items()}
        _check_patterns(options, list(described))
        return _gather_videos({n: Path(str(files[n])) for n in described}, described, folder, options, notes, console)
    if read is not None and _are_extracted(files):
        described = {n: _as_asked(replace(read.recordings[a], name=n), options) for a, n in names.items()}
        _check_patterns(options, list(described))
        return _gather_features({n: Path(str(files[n])) for n in described}, described, folder, notes)
    signals: list[tuple[str, Signal]] = []
    described = {}
    for annotated, name in track(names.items(), "reading", console):
        of_file = Recording(name, None, None, None, Segments.empty()) if read is None else read.recordings[annotated]
        signal = read_signal(files[name], fps=options.fps, label_column=options.label_column)
        of_file, signal, remark = _timed(replace(of_file, name=name), signal, read is None)
        signals.append((name, signal))
        described[name] = of_file
        # What is said about the first holds for the others too, more or less.
        notes += [f"{name}: {note}" for note in (*signal.notes, *remark)] if len(signals) == 1 else []
    _same_channels(signals)
    described = {name: _as_asked(recording, options) for name, recording in described.items()}
    _check_patterns(options, list(described))
    if len({subject(r) for r in described.values() if r.subset != TEST}) < 2:
        signals, described = _cut(signals, described, notes)
    first = signals[0][1]
    kinds = channel_kinds(first)
    if not first.keypoints and not first.channels and set(kinds) == {"pose"}:
        signals = [(name, replace(signal, keypoints=UNNAMED_POSE)) for name, signal in signals]
        notes.append("channels look like keypoints of three values each: two coordinates and a likelihood")
    whole = Annotations(described, ())
    return store(folder, signals, whole, kinds, console, notes, made_from)


def _are_videos(files: Files) -> bool:
    videos = [file for file in files.values() if isinstance(file, Path) and file.suffix.lower() in VIDEO_SUFFIXES]
    if videos and len(videos) < len(files):
        other = next(str(file) for file in files.values() if file not in videos)
        raise InputError(f"{videos[0]} is a video and {other} is not; give a folder of one or of the other")
    return bool(videos)


def _are_extracted(files: Files) -> bool:
    """Whether they are features of videos, as `tzoom extract` left them: each with a description beside it."""
    paths = [file for file in files.values() if isinstance(file, Path) and file.suffix == ".npy"]
    return len(paths) == len(files) and all(read_sidecar(path) is not None for path in paths)


def _gather_features(
    files: Mapping[str, Path], described: Mapping[str, Recording], folder: Path, notes: list[str]
) -> Gathered:
    (folder / SIGNALS).mkdir(parents=True, exist_ok=True)
    for name, path in files.items():
        for suffix in (".json", ".npy"):  # the array comes last: where it is, all is
            shutil.copyfile(path.with_suffix(suffix), folder / SIGNALS / f"{name}{suffix}")
    return store_described(folder, described, [*notes, "features of videos, as tzoom extract made them"])


def _gather_videos(
    videos: Mapping[str, Path],
    described: Mapping[str, Recording],
    folder: Path,
    options: GatherOptions,
    notes: list[str],
    console: Console | None,
) -> Gathered:
    """Features of the videos, made here. What is finished is skipped, so that a stopped run goes on."""
    rates = {name: probe(path).fps for name, path in videos.items()}
    common = sorted(rates.values())[len(rates) // 2]
    differ = max(rates.values()) > min(rates.values()) * (1 + SAME_RATE)
    if differ:
        notes.append(
            f"frame rates differ, from {min(rates.values()):.4g} to {max(rates.values()):.4g}: taken at {common:.4g}"
        )
    learned = [recording.segments for recording in described.values() if recording.subset != TEST]
    if not any(map(len, learned)):
        raise InputError("no annotated instance to learn from")
    stride = video_stride(common, learned)
    notes.append(f"videos become features by {options.backbone}: {2 * stride} frames every {stride} frames")
    summary = extract_features(
        list(videos.values()), folder / SIGNALS, options.backbone, stride, 2 * stride, common if differ else None,
        usable_cores(), console,
    )  # fmt: skip
    if summary.failed:
        raise InputError(next(iter(summary.failed.values())))
    return store_described(folder, described, notes)


def _annotations(path: Path, options: GatherOptions) -> Annotations:
    return read_any_annotations(path, fps=options.fps, **options.reading)


def _timed(recording: Recording, signal: Signal, own_labels: bool) -> tuple[Recording, Signal, list[str]]:
    """With a clock: the file's own, what the user or the annotations say, or what follows from the duration; and what
    there is to say about it."""
    rate, remarks = signal.fps or recording.fps, []
    by_duration = len(signal.values) / recording.duration if recording.duration else None
    if signal.fps is None and by_duration and (rate is None or abs(by_duration / rate - 1) > LENGTH_TOLERANCE):
        if rate is not None:  # features of a video, whose frame rate the annotations state
            remarks.append(f"{by_duration:.4g} rows per second by its duration, not the {rate:.4g} that are annotated")
        rate = by_duration
    if rate is None:
        raise InputError(f"{recording.name}: the file has no clock; say how many rows per second it has: --fps")
    if own_labels:
        if signal.labels is None:
            raise InputError(f"{recording.name}: no column with a label per row; give a file of annotations")
        recording = replace(recording, segments=signal.labels)
    return recording, replace(signal, fps=rate, labels=None), remarks


def _as_asked(recording: Recording, options: GatherOptions) -> Recording:
    segments = recording.segments
    if options.background:
        segments = segments[[str(label) not in options.background for label in segments.labels]]
    is_test = any(fnmatchcase(recording.name, pattern) for pattern in options.test)
    if not options.test:
        is_test = (recording.subset or "").casefold() in (TEST, "testing")
    extra = dict(recording.extra)
    if options.subject is not None:
        found = re.search(options.subject, recording.name)
        if found is None:
            raise InputError(f"--subject {options.subject!r}: finds nothing in the name {recording.name!r}")
        extra["subject"] = found[1] if found.groups() else found[0]
    return replace(recording, segments=segments, subset=TEST if is_test else "train", extra=extra)


def _check_patterns(options: GatherOptions, names: Sequence[str]) -> None:
    for pattern in options.test:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(f"--test: no recording is called {pattern!r}; there are {', '.join(names[:8])}")


def _same_channels(signals: Sequence[tuple[str, Signal]]) -> None:
    first, expected = signals[0]
    for name, signal in signals[1:]:
        if signal.values.shape[1] != expected.values.shape[1]:
            raise InputError(
                f"{name} has {signal.values.shape[1]} channels, {first} {expected.values.shape[1]}; all must be alike"
            )
        if signal.channels and expected.channels and signal.channels != expected.channels:
            raise InputError(f"{name} and {first}: columns differ, {signal.channels[:6]} and {expected.channels[:6]}")


def _cut(
    signals: Sequence[tuple[str, Signal]], described: Mapping[str, Recording], notes: list[str]
) -> tuple[list[tuple[str, Signal]], dict[str, Recording]]:
    """Recordings of a single subject become pieces, each a group of its own."""
    learned = [name for name, recording in described.items() if recording.subset != TEST]
    pieces, recordings = [(name, signal) for name, signal in signals if name not in learned], {}
    recordings = {name: recording for name, recording in described.items() if name not in learned}
    count = PIECES if len(learned) == 1 else 1
    for name, signal in signals:
        if name not in learned:
            continue
        for recording, piece in in_pieces(described[name], signal, count) if count > 1 else [(described[name], signal)]:
            alone = {key: value for key, value in recording.extra.items() if key != "subject"}
            recordings[recording.name] = replace(recording, extra=alone)
            pieces.append((recording.name, piece))
    if count > 1:
        notes.append(
            f"one recording only: cut into {count} pieces, so that each is scored by a network that has not seen it"
        )
    else:
        notes.append(
            "one subject only: scores say how well other recordings of this subject are found, not other subjects"
        )
    return pieces, recordings


def _signature(files: Files, annotations: Path | None) -> list[object]:
    """Which files, how long and of when."""
    paths = {file.archive if isinstance(file, ArchivedArray) else file for file in files.values()}
    if annotations is not None:
        paths |= {annotations} if annotations.is_file() else set(annotations.iterdir())
    stats = [(path, path.stat()) for path in sorted(paths)]
    return [[str(path), found.st_size, found.st_mtime_ns] for path, found in stats]


def matched_names(files: Sequence[str], annotated: Sequence[str]) -> dict[str, str]:
    """Names of files for names in the annotations, which may have a suffix (`walk.mp4`) or a path that files lack."""
    known, found = set(files), {}
    for name in annotated:
        candidates = [name, Path(name).name, Path(name).stem, Path(Path(name).stem).stem]
        match = next((candidate for candidate in candidates if candidate in known), None)
        if match is not None:
            found[name] = match
    missing = [name for name in annotated if name not in found]
    if missing:
        near = difflib.get_close_matches(missing[0], list(files), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(sorted(files)[:8])}"
        raise InputError(f"{len(missing)} annotated recordings have no file: {', '.join(missing[:5])}{hint}")
    return found
