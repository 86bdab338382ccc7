"""Any backbone with one channel more, `NAME+cuts`: whether the window holds a cut from one shot to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import tee

import numpy as np

from temporalzoom.signals.backbones.interface import Backbone, Floats, sliding_windows
from temporalzoom.signals.decoding import Frames
from temporalzoom.signals.shot_cuts import area_resized, stream_probabilities, transnet


class WithCuts(Backbone):
    """The features of `wrapped`, then the highest cut probability of the frames of the window.

    The video is decoded once, in the size that the wrapped backbone wants; the cut network gets those frames made
    smaller. It looks up to 74 frames ahead, for which that many frames are held, and 25 back.
    """

    def __init__(self, wrapped: Backbone) -> None:
        self.wrapped, self.name, self.width = wrapped, f"{wrapped.name}+cuts", wrapped.width + 1
        self.frame_size, self.window, self.stride = wrapped.frame_size, wrapped.window, wrapped.stride
        self.options = wrapped.options
        self.network = transnet()

    def to(self, device: str) -> WithCuts:
        """The wrapped one moves; the cut network, which is small, stays on the processor."""
        self.wrapped.to(device)
        return self

    def __call__(self, clips: Frames) -> Floats:
        """Each clip as a video of its own: what comes before and after it in `stream`, the network cannot see here."""
        cuts = [max(p.max() for p in stream_probabilities([area_resized(clip)], self.network)) for clip in clips]
        return np.column_stack([self.wrapped(clips), np.array(cuts, np.float32)])

    def stream(self, batches: Iterable[Frames], window: int, stride: int) -> Iterator[Floats]:
        seen, ahead = tee(batches)
        cuts = self._highest(ahead, window, stride)
        known = np.empty(0, np.float32)
        for features in self.wrapped.stream(seen, window, stride):
            while len(known) < len(features):
                known = np.concatenate([known, next(cuts)])
            yield np.column_stack([features, known[: len(features)]])
            known = known[len(features) :]

    def _highest(self, batches: Iterable[Frames], window: int, stride: int) -> Iterator[Floats]:
        """Of every window of the video, (n,) at a time."""
        probabilities = stream_probabilities(map(area_resized, batches), self.network)
        for windows in sliding_windows(probabilities, window, stride):
            yield windows.max(axis=1)
