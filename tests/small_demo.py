"""The demo, made small enough for a test: narrow networks, few steps, few sequences and clips."""

from functools import partial

import pytest

from temporalzoom.workflows import demo, demo_video

SMALLER = (
    "model.width=16",
    "model.heads=2",
    "training.steps=6",
    "training.batch_size=2",
    "data.sequences=3",
    "data.test_sequences=2",
    "data.length=128",
)
SMALL_SYSTEMS = {name: (*settings, *SMALLER) for name, settings in demo.SYSTEMS.items()}


def make_demo_small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(demo, "SYSTEMS", SMALL_SYSTEMS)
    patch.setattr(demo, "run_video_act", partial(demo_video.run_video_act, clips=3, steps=3))
    patch.setattr(demo_video, "SIZE", 32)
