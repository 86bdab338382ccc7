"""What image and video networks share: pictures as the numbers they take, and what training needs of such a network."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from temporalzoom.errors import InputError
from temporalzoom.signals.backbones.interface import centre_crop
from temporalzoom.signals.decoding import Frames

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def normalized(
    frames: Frames | Tensor,
    size: int,
    mean: Sequence[float],
    deviation: Sequence[float],
    name: str,
    device: torch.device,
) -> Tensor:
    """uint8 (..., H, W, 3) -> float (..., 3, size, size) on the device: the middle of the picture, 0..1 minus mean over
    deviation. Frames cross over as bytes, a quarter of what they are as numbers."""
    if min(frames.shape[-3:-1]) < size:
        raise InputError(f"backbone {name}: frames must be at least {size} x {size}, got {frames.shape[-3:-1]}")
    middle = centre_crop(frames, size)
    if not isinstance(middle, Tensor):
        middle = torch.from_numpy(np.ascontiguousarray(middle))
    pixels = middle.to(device).float().div_(255.0)
    centre, spread = (torch.tensor(values, device=device) for values in (mean, deviation))
    return pixels.sub_(centre).div_(spread).movedim(-1, -3).contiguous()


class Trunk(nn.Module):
    """A network for whole windows, with the arithmetic of its backbone.

    width: of a window's vector; size: side of the pictures in pixels; at_once: how many windows, or frames where it is
    a `FrameTrunk`, go through it together.
    """

    width: int
    size: int
    at_once: int
    per_frame = False

    def forward(self, pictures: Tensor) -> Tensor:
        """uint8 (n, H, W, 3) frames -> (n, d), or (n, window, H, W, 3) windows -> (n, width)."""
        return self.encode(self.prepared(pictures))

    @abstractmethod
    def prepared(self, pictures: Frames | Tensor) -> Tensor:
        """The same pictures as the numbers that the network takes, (..., 3, size, size), where its weights are."""

    @abstractmethod
    def encode(self, images: Tensor) -> Tensor:
        """What `prepared` gives -> (n, d) or (n, width)."""

    @abstractmethod
    def blocks(self) -> list[list[nn.Module]]:
        """First to last: the modules of each. What comes before the first block belongs to none of them, what follows
        the last one to that."""


class FrameTrunk(Trunk):
    """A network for single frames: the vectors of a window's frames become one afterwards."""

    per_frame = True

    @abstractmethod
    def pool(self, windows: Tensor) -> Tensor:
        """Vectors of the frames of windows, (n, window, d) -> (n, width)."""
