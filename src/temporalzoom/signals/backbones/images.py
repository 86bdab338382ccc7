"""Frames as the tensors that image and video networks take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from temporalzoom.errors import InputError
from temporalzoom.signals.backbones.interface import centre_crop
from temporalzoom.signals.decoding import Frames

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def normalized(frames: Frames, size: int, mean: Sequence[float], deviation: Sequence[float], name: str) -> torch.Tensor:
    """uint8 (..., H, W, 3) -> float (..., 3, size, size): the middle of the picture, 0..1 minus mean over deviation."""
    if min(frames.shape[-3:-1]) < size:
        raise InputError(f"backbone {name}: frames must be at least {size} x {size}, got {frames.shape[-3:-1]}")
    pixels = torch.from_numpy(np.ascontiguousarray(centre_crop(frames, size))).float().div_(255.0)
    return pixels.sub_(torch.tensor(mean)).div_(torch.tensor(deviation)).movedim(-1, -3).contiguous()
