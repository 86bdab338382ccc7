"""THUMOS14: 20 sports classes; trained on the 200 annotated validation videos, scored on the test videos.

The release has 213 test videos with temporal annotations, and papers score 210 to 213 of them: some leave out videos
whose annotations are wrong or empty. Nothing is left out here; a note says which of those are in the file.
"""

from __future__ import annotations

from dataclasses import replace

from temporalzoom.config import DataConfig
from temporalzoom.datasets.video_sets import VideoSet, read_video_set
from temporalzoom.formats.annotations import Annotations

THUMOS14 = VideoSet(
    subsets=(("Validation", "Test"), ("training", "validation")), classes=20, videos={"Validation": 200, "Test": 213}
)
DISPUTED = ("video_test_0000270", "video_test_0001292", "video_test_0001496")


def read_thumos14(data: DataConfig) -> Annotations:
    annotations = read_video_set(data, THUMOS14)
    present = [name for name in DISPUTED if name in annotations.recordings]
    note = (
        f"thumos14: of the test videos that some leave out ({', '.join(DISPUTED)}), "
        f"{len(present)} are present: {', '.join(present) or 'none'}"
    )
    return replace(annotations, notes=(*annotations.notes, note))
