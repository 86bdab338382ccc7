"""What the field's video benchmarks share: annotation files of two projects, and what is to be said about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from temporalzoom.config import DataConfig
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, Recording, read_annotations
from temporalzoom.segments import Segments

AGNOSTIC = "action"  # the one class of a class-agnostic model
SLACK = 0.1  # seconds by which an annotator's rounding may pass the end, as in the data check


@dataclass(frozen=True)
class VideoSet:
    """What is known of a benchmark before any file is read.

    subsets: names of the training and of the test subset, as ActionFormer and as OpenTAD call them in their files.
    classes: how many the benchmark has. videos: how many each subset was released with, by the first of those names.
    """

    subsets: tuple[tuple[str, str], ...]
    classes: int
    videos: Mapping[str, int] = field(default_factory=dict)


def annotation_file(data: DataConfig) -> Path:
    if data.annotations is None:
        raise InputError("data.annotations: the annotation file (JSON) is needed")
    return data.annotations


def read_video_set(data: DataConfig, known: VideoSet, label_keys: Sequence[str] = ("label",)) -> Annotations:
    """The annotation file of a benchmark, in the form of either project."""
    annotations = read_annotations(annotation_file(data), label_keys=label_keys, allow_unlabelled=True)
    return as_video_set(annotations, data, known)


def as_video_set(annotations: Annotations, data: DataConfig, known: VideoSet) -> Annotations:
    """Annotations whose subsets have the configuration's names, with all classes, and notes on what is there.

    The class list is that of the whole file: one that only the test subset has belongs to the benchmark all the same.
    """
    annotations = _named_subsets(annotations, data, known)
    hidden = [r for r in annotations.recordings.values() if r.extra.get("unlabelled") and _is_used(r, data)]
    if hidden:
        raise InputError(
            f"{data.annotations}: {len(hidden)} videos of the subset {hidden[0].subset!r} have no key 'annotations', "
            f"the first is {hidden[0].name}: they cannot be trained on or scored"
        )
    notes = [f"{data.source}: {len(annotations.classes)} of {known.classes} classes"]
    if known.videos:
        present = Counter(_official(r.subset, data, known) for r in annotations.recordings.values())
        counts = [f"{present[subset.casefold()]} of {total} {subset}" for subset, total in known.videos.items()]
        notes.append(f"{data.source}: videos, of those released: {', '.join(counts)}")
    return replace(annotations, declared=True, notes=(*annotations.notes, *notes))


def clipped(annotations: Annotations) -> Annotations:
    """Instances cut to their recording; those of which nothing is left are dropped. A note says how many there were."""
    cut = dropped = 0
    recordings: dict[str, Recording] = {}
    dropped_in: list[str] = []
    for name, recording in annotations.recordings.items():
        before = recording.segments
        after = before if recording.duration is None else before.clip(recording.duration)
        keep = after.durations > 0
        moved = (abs(after.starts - before.starts) > SLACK) | (abs(after.ends - before.ends) > SLACK)
        cut += int((moved & keep).sum())
        dropped += int((~keep).sum())
        dropped_in += [name] * bool((~keep).any())
        recordings[name] = replace(recording, segments=after[keep])
    where = f", in {', '.join(dropped_in[:5])}{', ...' if len(dropped_in) > 5 else ''}" if dropped_in else ""
    note = (
        f"data.clip: {cut} instances cut to their recording, {dropped} dropped because nothing of them is left{where}"
    )
    return replace(annotations, recordings=recordings, notes=(*annotations.notes, note))


def without_labels(segments: Segments) -> Segments:
    """The same segments, all of the one class of a class-agnostic model."""
    return Segments(segments.starts, segments.ends, [AGNOSTIC] * len(segments), segments.scores)


def _named_subsets(annotations: Annotations, data: DataConfig, known: VideoSet) -> Annotations:
    """The file's own names stay where it has those of the configuration; else they are translated.

    The names alone do not tell: `validation` is the training subset of THUMOS14 in one project's file, and the test
    subset in the other's. So both names of a pair must be there.
    """
    present = {(r.subset or "").casefold() for r in annotations.recordings.values()}
    wanted = (data.train_subset, data.test_subset)
    if {name.casefold() for name in wanted} <= present:
        return annotations
    pair = next((pair for pair in known.subsets if {name.casefold() for name in pair} <= present), None)
    if pair is None:
        pairs = " or ".join(f"{a!r} and {b!r}" for a, b in (wanted, *known.subsets))
        found = ", ".join(sorted(filter(None, {r.subset for r in annotations.recordings.values()}))) or "none"
        raise InputError(f"{data.annotations}: subsets {pairs} are expected; present: {found}")
    names = {old.casefold(): new for old, new in zip(pair, wanted, strict=True)}
    # What has the name of a translated subset, but is not it, must not be mixed with it.
    taken = {name.casefold() for name in wanted}
    recordings = {}
    for name, recording in annotations.recordings.items():
        old = recording.subset or ""
        other = f"{old} (of the file)" if old.casefold() in taken else recording.subset
        recordings[name] = replace(recording, subset=names.get(old.casefold(), other))
    return replace(annotations, recordings=recordings)


def _official(subset: str | None, data: DataConfig, known: VideoSet) -> str:
    """The benchmark's own name of a subset of the configuration, lower case."""
    names = dict(zip((data.train_subset.casefold(), data.test_subset.casefold()), known.subsets[0], strict=True))
    folded = (subset or "").casefold()
    return names.get(folded, folded).casefold()


def _is_used(recording: Recording, data: DataConfig) -> bool:
    return (recording.subset or "").casefold() in (data.train_subset.casefold(), data.test_subset.casefold())
