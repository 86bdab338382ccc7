"""The backbone `motion`: where things look how, change and move. No weights, NumPy only, and little beside decoding."""

from __future__ import annotations

import numpy as np

from temporalzoom.signals.backbones.interface import Floats, FrameBackbone
from temporalzoom.signals.backbones.registry import register
from temporalzoom.signals.decoding import Frames

SIDE = 64  # frames are SIDE x SIDE
GREY = np.array([0.299, 0.587, 0.114], np.float32) / 255.0
BLOCKS, COLOURS, FLOWS = 8, 2, 4  # blocks per side of grey values and energies, of colours, of the flow field
# Of a frame: grey and colour means, then what changed since its predecessor: energy per block, flow per block.
APPEARANCE = BLOCKS**2 + 3 * COLOURS**2
ENERGY = BLOCKS**2
FLOW = 2 * FLOWS**2
NOISE = np.float32(1e-4)  # squared gradient below which a block counts as flat, and its flow goes to zero


class Motion(FrameBackbone):
    """Per window: mean appearance, how its grey values change from the first half to the second, mean and largest
    energy of change per block, mean flow per block (pixels per frame) and mean speed per block."""

    name = "motion"
    width = APPEARANCE + BLOCKS**2 + 2 * ENERGY + FLOW + FLOWS**2
    frame_size = (SIDE, SIDE)
    window, stride = 8, 4

    def __init__(self) -> None:
        self.options = {}

    def frame_features(self, frames: Frames, before: Frames | None) -> Floats:
        rows = frames if before is None else np.concatenate([before[None], frames])
        grey = rows.astype(np.float32) @ GREY  # (n, SIDE, SIDE)
        means = block_means(grey, BLOCKS)
        colour = block_means(np.moveaxis(frames, -1, 1).astype(np.float32) / np.float32(255), COLOURS)
        energy = np.zeros((len(rows), BLOCKS, BLOCKS), np.float32)
        flow = np.zeros((len(rows), 2, FLOWS, FLOWS), np.float32)
        if len(rows) > 1:
            # The square root brings slight and strong changes closer together.
            energy[1:] = np.sqrt(block_means(np.abs(grey[1:] - grey[:-1]), BLOCKS))
            flow[1:] = block_flow(block_means(grey, SIDE // 2))
        new = slice(len(rows) - len(frames), None)
        parts = (means[new], colour, energy[new], flow[new])
        return np.concatenate([part.reshape(len(frames), -1) for part in parts], axis=1)

    def pool(self, windows: Floats) -> Floats:
        length = windows.shape[1]
        appearance = windows[:, :, :APPEARANCE]
        halves = windows[:, length - length // 2 :, : BLOCKS**2], windows[:, : length - length // 2, : BLOCKS**2]
        change = halves[0].mean(1) - halves[1].mean(1) if length > 1 else np.zeros_like(halves[1][:, 0])
        # The first frame's energy and flow come from a frame outside of the window.
        between = windows[:, 1:, APPEARANCE:] if length > 1 else np.zeros_like(windows[:, :, APPEARANCE:])
        energy, flow = between[:, :, :ENERGY], between[:, :, ENERGY:]
        across, down = flow[:, :, : FLOW // 2], flow[:, :, FLOW // 2 :]
        speed = np.sqrt(across**2 + down**2)
        parts = (appearance.mean(1), change, energy.mean(1), energy.max(1), flow.mean(1), speed.mean(1))
        return np.concatenate(parts, axis=1).astype(np.float32)


def block_means(images: Floats, blocks: int) -> Floats:
    """(..., H, W) -> (..., blocks, blocks), means of equal blocks, as two products: faster than a mean over axes."""
    height, width = images.shape[-2:]
    return (_averaging(blocks, height) @ images @ _averaging(blocks, width).T).astype(np.float32, copy=False)


def block_flow(grey: Floats) -> Floats:
    """Grey frames (n, S, S) in 0..1 -> (n - 1, 2, FLOWS, FLOWS): motion across and down in pixels of these frames.

    Lucas and Kanade: the shift that best explains, over a block, the difference of two frames by their gradients. It is
    meant for shifts of about a pixel, which is why it gets frames of low resolution.
    """
    middle = 0.5 * (grey[1:] + grey[:-1])
    across, down = np.zeros_like(middle), np.zeros_like(middle)
    across[:, :, 1:-1] = 0.5 * (middle[:, :, 2:] - middle[:, :, :-2])
    down[:, 1:-1] = 0.5 * (middle[:, 2:] - middle[:, :-2])
    change = grey[1:] - grey[:-1]
    products = np.stack([across * across, across * down, down * down, across * change, down * change], axis=1)
    xx, xy, yy, xt, yt = np.moveaxis(block_means(products, FLOWS), 1, 0)
    xx, yy = xx + NOISE, yy + NOISE
    determinant = xx * yy - xy * xy
    return np.stack([xy * yt - yy * xt, xy * xt - xx * yt], axis=1) / determinant[:, None]


_averages: dict[tuple[int, int], Floats] = {}


def _averaging(blocks: int, length: int) -> Floats:
    """(blocks, length): row b holds the weights of the mean of block b."""
    if (blocks, length) not in _averages:
        weights = np.repeat(np.eye(blocks, dtype=np.float32), length // blocks, axis=1)
        _averages[blocks, length] = weights * np.float32(blocks / length)
    return _averages[blocks, length]


@register("motion")
def motion() -> Motion:
    return Motion()
