"""FineAction: 106 fine-grained classes, many short and overlapping instances (`annotations_gt.json`)."""

from __future__ import annotations

from temporalzoom.config import DataConfig
from temporalzoom.datasets.video_sets import VideoSet, read_video_set
from temporalzoom.formats.annotations import Annotations

FINEACTION = VideoSet(subsets=(("training", "validation"),), classes=106)


def read_fineaction(data: DataConfig) -> Annotations:
    return read_video_set(data, FINEACTION)
