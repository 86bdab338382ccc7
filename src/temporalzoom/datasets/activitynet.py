"""ActivityNet 1.3: 200 classes of everyday activities, one or a few long instances per video.

Annotations in the official form (`activity_net.v1-3.min.json`, or one of its filtered copies), or in that of BSN and
BMN, `anet_anno_action.json`, whose subsets are in `video_info_new.csv` beside it. Videos have vanished from the web
since the release, so that no two copies hold the same: a note counts them.
"""

from __future__ import annotations

import csv
from dataclasses import replace

from temporalzoom.config import DataConfig
from temporalzoom.datasets.video_sets import VideoSet, annotation_file, as_video_set
from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, read_annotations

ACTIVITYNET = VideoSet(
    subsets=(("training", "validation"),),
    classes=200,
    videos={"training": 10024, "validation": 4926, "testing": 5044},
)
PREFIX = "v_"  # BSN's names have it, the official ones and those of classifier scores do not
TABLE = "video_info_new.csv"


def read_activitynet(data: DataConfig) -> Annotations:
    annotations = read_annotations(annotation_file(data), allow_unlabelled=True)
    if not any(recording.subset for recording in annotations.recordings.values()):
        annotations = _with_subsets_of_the_table(annotations, data)
    return as_video_set(annotations, data, ACTIVITYNET)


def _with_subsets_of_the_table(annotations: Annotations, data: DataConfig) -> Annotations:
    path = annotation_file(data).with_name(TABLE)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            subsets = {row["video"]: row["subset"] for row in csv.DictReader(file)}
    except OSError:
        raise InputError(f"{data.annotations}: names no subsets, and there is no {TABLE} beside it that does") from None
    except KeyError as error:
        raise InputError(f"{path}: no column {error.args[0]!r}") from None
    missing = [name for name in annotations.recordings if not subsets.get(name)]
    if missing:
        raise InputError(
            f"{path}: no subset for {len(missing)} videos of {data.annotations}, the first is {missing[0]}"
        )
    cut = len(PREFIX) if all(name.startswith(PREFIX) for name in annotations.recordings) else 0
    recordings = {
        name[cut:]: replace(recording, name=name[cut:], subset=subsets[name])
        for name, recording in annotations.recordings.items()
    }
    return replace(annotations, recordings=recordings)
