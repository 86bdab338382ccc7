"""EPIC-Kitchens-100: long egocentric videos, very many short instances. Verbs and nouns are two separate tasks.

Files hold one of them (`label`) or both (`verb_label`, `noun_label`); `data.task` says which is meant.
"""

from __future__ import annotations

from temporalzoom.config import DataConfig
from temporalzoom.datasets.video_sets import VideoSet, read_video_set
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations

CLASSES = {"verb": 97, "noun": 300}
SUBSETS = (("training", "validation"), ("train", "val"))


def read_epic_kitchens(data: DataConfig) -> Annotations:
    if data.task is None:
        raise InputError("data.task: which one, verb or noun? EPIC-Kitchens has both")
    annotations = read_video_set(data, VideoSet(SUBSETS, CLASSES[data.task]), ("label", f"{data.task}_label"))
    other = "noun" if data.task == "verb" else "verb"
    if str(annotations.extra.get("version", "")).endswith(f"-{other}"):  # OpenTAD's files say what they hold
        raise InputError(f"{data.annotations}: holds {other}s, and data.task is {data.task}")
    return annotations
