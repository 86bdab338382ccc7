"""Ego4D Moment Queries: 110 classes in egocentric clips of up to eight minutes; a recording is a clip (`clip_uid`)."""

from __future__ import annotations

from temporalzoom.config import DataConfig
from temporalzoom.datasets.video_sets import VideoSet, read_video_set
from temporalzoom.formats.annotations import Annotations

EGO4D_MQ = VideoSet(subsets=(("training", "validation"), ("train", "val")), classes=110)


def read_ego4d_mq(data: DataConfig) -> Annotations:
    return read_video_set(data, EGO4D_MQ)
