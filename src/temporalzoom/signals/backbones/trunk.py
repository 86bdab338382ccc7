"""What training needs of a backbone's network: pictures in, vectors out, in blocks that can be frozen."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from temporalzoom.signals.decoding import Frames


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
        return self.encode(self.prepared(pictures.numpy()))

    @abstractmethod
    def prepared(self, pictures: Frames) -> Tensor:
        """The same pictures as the numbers that the network takes, (..., 3, size, size)."""

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
