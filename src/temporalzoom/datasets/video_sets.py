"""The field's video benchmarks: annotation files of two projects, and notes on what they hold.

ActivityNet's videos have vanished from the web since its release, so that no two copies hold the same; THUMOS14 has 213
test videos with temporal annotations, of which papers score 210 to 213. Nothing is left out here: notes count what is
there.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from temporalzoom.config import DataConfig
from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording, read_annotations
from temporalzoom.segments import AGNOSTIC, Segments

SLACK = 0.1  # seconds by which an annotator's rounding may pass the end, as in the data check
BSN_PREFIX = "v_"  # BSN's names have it, the official ones and those of classifier scores do not
BSN_TABLE = "video_info_new.csv"


@dataclass(frozen=True)
class VideoSet:
    """What is known of a benchmark before any file is read.

    subsets: names of the training and of the test subset, as ActionFormer and as OpenTAD call them in their files.
    classes: how many the benchmark has; where it is several tasks, by task. videos: how many each subset was released
    with, by the first of those names. disputed: test videos that some papers leave out.
    """

    subsets: tuple[tuple[str, str], ...]
    classes: int | Mapping[str, int]
    videos: Mapping[str, int] = field(default_factory=dict)
    disputed: tuple[str, ...] = ()


VIDEO_SETS = {
    # 20 sports; trained on the annotated validation videos, scored on the test videos.
    "thumos14": VideoSet(
        subsets=(("Validation", "Test"), ("training", "validation")),
        classes=20,
        videos={"Validation": 200, "Test": 213},
        disputed=("video_test_0000270", "video_test_0001292", "video_test_0001496"),  # annotations wrong or empty
    ),
    # Everyday activities, one or a few long instances per video.
    "activitynet": VideoSet(
        subsets=(("training", "validation"),),
        classes=200,
        videos={"training": 10024, "validation": 4926, "testing": 5044},
    ),
    # Fine-grained classes, many short and overlapping instances (`annotations_gt.json`).
    "fineaction": VideoSet(subsets=(("training", "validation"),), classes=106),
    # Moment Queries in egocentric clips of up to eight minutes; a recording is a clip (`clip_uid`).
    "ego4d_mq": VideoSet(subsets=(("training", "validation"), ("train", "val")), classes=110),
    # EPIC-Kitchens-100: long egocentric videos, very many short instances; verbs and nouns are two tasks.
    "epic_kitchens": VideoSet(
        subsets=(("training", "validation"), ("train", "val")), classes={"verb": 97, "noun": 300}
    ),
}


def annotation_file(data: DataConfig) -> Path:
    if data.annotations is None:
        raise InputError("data.annotations: the annotation file (JSON) is needed")
    return data.annotations


def read_video_set(data: DataConfig) -> Annotations:
    """The annotation file of a benchmark, in the form of either project."""
    known = VIDEO_SETS[data.source]
    if isinstance(known.classes, Mapping):
        return _read_task(data, known, known.classes)
    annotations = read_annotations(annotation_file(data), allow_unlabelled=True)
    if data.source == "activitynet" and not any(recording.subset for recording in annotations.recordings.values()):
        annotations = _with_subsets_of_the_table(annotations, data)
    return as_video_set(annotations, data, known, known.classes)


def _read_task(data: DataConfig, known: VideoSet, classes: Mapping[str, int]) -> Annotations:
    """Files hold one task (`label`) or several (`verb_label`, `noun_label`); `data.task` says which is meant."""
    if data.task is None:
        raise InputError(f"data.task: which one, {' or '.join(classes)}? EPIC-Kitchens has both")
    annotations = read_annotations(
        annotation_file(data), label_keys=("label", f"{data.task}_label"), allow_unlabelled=True
    )
    annotations = as_video_set(annotations, data, known, classes[data.task])
    for other in classes.keys() - {data.task}:
        if str(annotations.extra.get("version", "")).endswith(f"-{other}"):  # OpenTAD's files say what they hold
            raise InputError(f"{data.annotations}: holds {other}s, and data.task is {data.task}")
    return annotations


def as_video_set(annotations: Annotations, data: DataConfig, known: VideoSet, classes: int) -> Annotations:
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
    notes = [f"{data.source}: {len(annotations.classes)} of {classes} classes"]
    if known.videos:
        present = Counter(_official(r.subset, data, known) for r in annotations.recordings.values())
        counts = [f"{present[subset.casefold()]} of {total} {subset}" for subset, total in known.videos.items()]
        notes.append(f"{data.source}: videos, of those released: {', '.join(counts)}")
    if known.disputed:
        left = [name for name in known.disputed if name in annotations.recordings]
        notes.append(
            f"{data.source}: of the test videos that some leave out ({', '.join(known.disputed)}), "
            f"{len(left)} are present: {', '.join(left) or 'none'}"
        )
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


def _with_subsets_of_the_table(annotations: Annotations, data: DataConfig) -> Annotations:
    """BSN and BMN keep the subsets of their `anet_anno_action.json` in a table beside it."""
    path = annotation_file(data).with_name(BSN_TABLE)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            subsets = {row["video"]: row["subset"] for row in csv.DictReader(file)}
    except OSError:
        raise InputError(
            f"{data.annotations}: names no subsets, and there is no {BSN_TABLE} beside it that does"
        ) from None
    except KeyError as error:
        raise InputError(f"{path}: no column {error.args[0]!r}") from None
    missing = [name for name in annotations.recordings if not subsets.get(name)]
    if missing:
        raise InputError(
            f"{path}: no subset for {len(missing)} videos of {data.annotations}, the first is {missing[0]}"
        )
    cut = len(BSN_PREFIX) if all(name.startswith(BSN_PREFIX) for name in annotations.recordings) else 0
    recordings = {
        name[cut:]: replace(recording, name=name[cut:], subset=subsets[name])
        for name, recording in annotations.recordings.items()
    }
    return replace(annotations, recordings=recordings)


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
