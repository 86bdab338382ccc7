"""Variations of the frames of one crop: one square, one change of colours, and an order that is never reversed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from temporalzoom.config import FrameAugmentConfig

Frames = NDArray[np.uint8]
GREY = np.array([0.299, 0.587, 0.114], np.float32)  # luminance of red, green, blue
AT_ONCE = 64  # frames that are floats at a time


@dataclass(frozen=True)
class Variation:
    """Of all frames of a crop. top, left, side: the square of the picture that is seen, in pixels; brightness,
    contrast, saturation: factors, 1 changes nothing; order: (N,) which frame is shown at each place, never falling."""

    top: int
    left: int
    side: int
    brightness: float
    contrast: float
    saturation: float
    order: NDArray[np.intp]


def decoded_side(options: FrameAugmentConfig, size: int) -> int:
    """The short side to decode frames in, so that the smallest square still has `size` pixels a side."""
    return math.ceil(size / (1 - options.crop))


def draw_variation(
    options: FrameAugmentConfig, frames: int, picture: tuple[int, int], size: int, random: np.random.Generator
) -> Variation:
    """picture: (height, width) of the decoded frames. Without `crop` the square is the middle, as at inference."""
    height, width = picture
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    if options.crop:
        side = int(random.integers(min(size, side), side + 1))
        top, left = int(random.integers(height - side + 1)), int(random.integers(width - side + 1))
    brightness, contrast, saturation = 1.0, 1.0, 1.0
    if options.colour:
        brightness, contrast, saturation = (1 + options.colour * random.uniform(-1, 1, 3)).tolist()
    order = np.arange(frames)
    if options.jitter:
        moved = order + random.integers(-options.jitter, options.jitter + 1, frames)
        # Sorted, each still is within `jitter` of its place, and time runs forward.
        order = np.clip(np.sort(moved), 0, frames - 1)
    return Variation(top, left, side, brightness, contrast, saturation, order)


def vary_frames(frames: Frames, variation: Variation, size: int) -> Frames:
    """(N, H, W, 3) -> (N, size, size, 3)."""
    v = variation
    seen = frames[v.order, v.top : v.top + v.side, v.left : v.left + v.side]
    recoloured = (v.brightness, v.contrast, v.saturation) != (1.0, 1.0, 1.0)
    if v.side == size and not recoloured:
        return np.ascontiguousarray(seen)
    # One number for the whole crop: by that of each frame a fade or a flash would be flattened.
    grey = float((seen.mean((0, 1, 2), dtype=np.float64) @ GREY) * v.brightness)
    result = np.empty((len(seen), size, size, 3), np.uint8)
    for first in range(0, len(seen), AT_ONCE):
        pixels: NDArray[np.float32] = seen[first : first + AT_ONCE].astype(np.float32)
        if recoloured:
            pixels *= v.brightness
            pixels += (pixels - grey) * (v.contrast - 1)
            pixels += (pixels - (pixels @ GREY)[..., None]) * (v.saturation - 1)
        if v.side != size:
            images = torch.from_numpy(pixels).movedim(-1, 1)
            resized = F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)
            pixels = resized.movedim(1, -1).numpy()
        result[first : first + AT_ONCE] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return result
