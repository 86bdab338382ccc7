"""Recordings and annotations in one folder that trainings read, the folder `data` of a fitted run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording, read_annotations, write_annotations
from temporalzoom.json_tree import parse_json
from temporalzoom.progress import track
from temporalzoom.signals.container import Signal
from temporalzoom.signals.feature_files import write_features
from temporalzoom.signals.feature_rows import FeatureRows, open_rows
from temporalzoom.signals.resampling import resampled
from temporalzoom.signals.sidecars import Sidecar, read_sidecar

SIGNALS, ANNOTATIONS, MANIFEST = "signals", "annotations.json", "data.json"
TEST = "test"
SAME_RATE = 0.02  # rates that differ by less are one: every recording keeps its own clock
PEEK = 1 << 14  # bytes


@dataclass(frozen=True)
class Gathered:
    """What was gathered.

    Attributes:
        folder: it holds annotations.json and one file per recording in signals/.
        annotations: with the duration, the rate and (`extra["subject"]`) the subject of every recording; subset `test`
            is what the user set aside.
        kinds: of the channels.
        keypoints: what the values of a keypoint are, of poses; else "".
        channels: their names, where known.
        notes: what a user should know about how the files were read.
        framed: rows are features of videos, each described by a file beside it; else rows of a signal.
    """

    folder: Path
    annotations: Annotations
    kinds: tuple[str, ...] = ()
    keypoints: str = ""
    channels: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    framed: bool = False

    def read(self, name: str) -> NDArray[np.float32] | FeatureRows:
        """(N, C), only what is looked at is read."""
        return open_rows(self.folder / SIGNALS / f"{name}.npy")

    def learned(self) -> list[Recording]:
        """The recordings to learn from: all that are not set aside as the test."""
        return [recording for recording in self.annotations.recordings.values() if recording.subset != TEST]

    def rates(self) -> dict[str, float]:
        """Rows per second of each recording."""
        if self.framed:
            grids = {name: _sidecar(self.folder, name).grid for name in self.annotations.recordings}
            return {name: grid.fps / grid.stride for name, grid in grids.items()}
        return {name: recording.fps or 1.0 for name, recording in self.annotations.recordings.items()}

    def digest(self) -> str:
        """Of the annotations, and of the length, the beginning and the end of every signal: changes when they do."""
        found = hashlib.sha256((self.folder / ANNOTATIONS).read_bytes())
        for name in sorted(self.annotations.recordings):
            file = self.folder / SIGNALS / f"{name}.npy"
            size = file.stat().st_size
            with file.open("rb") as stream:
                found.update(f"{name} {size}".encode() + stream.read(PEEK))
                stream.seek(max(size - PEEK, 0))
                found.update(stream.read(PEEK))
        return found.hexdigest()[:16]


def store(
    folder: Path,
    signals: Sequence[tuple[str, Signal]],
    annotations: Annotations,
    kinds: Sequence[str],
    console: Console | None = None,
    notes: Sequence[str] = (),
    made_from: object = None,
) -> Gathered:
    """Write signals, brought to one rate, and their annotations into a folder.

    Args:
        folder: where to.
        signals: by name, each with a clock.
        annotations: of all of them.
        kinds: of their channels.
        console: for progress.
        notes: what a user should know already.
        made_from: anything that JSON can hold; `load` finds the folder again if it is the same then.
    """
    rates = np.array([signal.fps for _, signal in signals], np.float64)
    common, words = float(np.median(rates)), list(notes)
    if rates.max() > rates.min() * (1 + SAME_RATE):
        words.append(
            f"rates differ, from {rates.min():.4g} to {rates.max():.4g} rows per second: resampled to {common:.4g}"
        )
        signals = [(name, resampled(signal, common)) for name, signal in signals]
    recordings, outside, cut = {}, 0, 0
    (folder / SIGNALS).mkdir(parents=True, exist_ok=True)
    for name, signal in track(signals, "storing", console):
        assert signal.fps is not None
        recording, duration = annotations.recordings[name], len(signal.values) / signal.fps
        segments = recording.segments
        kept = segments[(segments.starts < duration) & (segments.ends > 0)]
        outside += len(segments) - len(kept)
        cut += int((kept.ends > duration + 0.5 / signal.fps).sum())
        recordings[name] = replace(recording, segments=kept.clip(duration), duration=duration, fps=signal.fps)
        write_features(folder / SIGNALS / f"{name}.npy", signal.values)
    if outside:
        words.append(f"{outside} instances lie outside of their recording and are left out")
    if cut:
        words.append(f"{cut} instances end after their recording and are cut there")
    first = signals[0][1]
    classes = sorted({str(label) for r in recordings.values() for label in r.segments.labels})
    extra = {**annotations.extra, "channels": list(first.channels)} if first.channels else annotations.extra
    whole = replace(annotations, recordings=recordings, classes=tuple(classes), extra=extra)
    write_annotations(folder / ANNOTATIONS, whole)
    gathered = Gathered(folder, whole, tuple(kinds), first.keypoints, first.channels, tuple(words))
    with replacing(folder / MANIFEST) as file:
        values = {"kinds": gathered.kinds, "keypoints": gathered.keypoints, "channels": gathered.channels}
        json.dump({**values, "notes": gathered.notes, "made_from": made_from}, file, indent=1)
    return gathered


def store_described(folder: Path, described: Mapping[str, Recording], notes: Sequence[str] = ()) -> Gathered:
    """The annotations of videos whose features are in the folder already. It is never found again by `load`: features
    that are there are looked at one by one anyway."""
    recordings = {}
    for name, recording in described.items():
        sidecar = _sidecar(folder, name)
        duration = sidecar.duration or sidecar.grid.duration(sidecar.length or 0)
        inside = recording.segments[recording.segments.starts < duration].clip(duration)
        recordings[name] = replace(recording, segments=inside, duration=duration, fps=sidecar.fps)
    classes = sorted({str(label) for r in recordings.values() for label in r.segments.labels})
    whole = Annotations(recordings, tuple(classes))
    write_annotations(folder / ANNOTATIONS, whole)
    width = open_rows(folder / SIGNALS / f"{next(iter(described))}.npy").shape[1]
    return Gathered(folder, whole, ("feature",) * width, notes=tuple(notes), framed=True)


def _sidecar(folder: Path, name: str) -> Sidecar:
    found = read_sidecar(folder / SIGNALS / f"{name}.npy")
    if found is None:
        raise InputError(f"{folder / SIGNALS / name}.json: is missing; it says how the features were made")
    return found


def load(folder: Path, made_from: object) -> Gathered | None:
    """What `store` wrote, if it came to its end and was made from the same; else None."""
    try:
        found = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))
        if found["made_from"] != json.loads(json.dumps(made_from)):
            return None
        kinds, channels, notes = (tuple(found[key]) for key in ("kinds", "channels", "notes"))
        return Gathered(folder, read_annotations(folder / ANNOTATIONS), kinds, found["keypoints"], channels, notes)
    except (OSError, ValueError, LookupError, TypeError, InputError):
        return None
