"""A detector together with the network that makes its features: frames in, raw outputs out."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from temporalzoom.models.outputs import Outputs


class VideoDetector(nn.Module):
    """trunk: uint8 frames (n, H, W, 3) -> (n, d), pooled per window afterwards, or windows (n, window, H, W, 3) ->
    (n, width); see the backbones. detector: features (B, T, width) and a mask (B, T) -> Outputs.

    trainable: how many blocks of the trunk, the last ones, are trained; None: all of it. The rest stays in evaluation
    mode and gets no gradients. So do the statistics of every BatchNorm: a batch holds few videos, whose frames are all
    alike, and with stored statistics the features of a window do not depend on what else is in the batch.
    checkpointing: what the trunk computes is not kept but computed again in the backward pass.
    """

    def __init__(
        self,
        trunk: Any,
        detector: nn.Module,
        window: int,
        stride: int,
        trainable: int | None = None,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        blocks: list[list[nn.Module]] = trunk.blocks()
        if trainable is not None and not 0 <= trainable <= len(blocks):
            raise ValueError(f"there are {len(blocks)} blocks to train, got {trainable}")
        self.trunk, self.detector = trunk, detector
        self.window, self.stride, self.checkpointing = window, stride, checkpointing
        chosen = blocks[len(blocks) - trainable :] if trainable is not None else []
        self._trained: list[nn.Module] = [trunk] if trainable is None else [part for block in chosen for part in block]
        trunk.requires_grad_(False)
        for module in self._trained:
            module.requires_grad_(True)
        self.train(self.training)

    def train(self, mode: bool = True) -> VideoDetector:
        super().train(mode)
        self.trunk.eval()
        if mode:
            for module in self._trained:
                module.train()
            for module in self.trunk.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def features(self, frames: Tensor) -> Tensor:
        """Frames of one video, uint8 (N, H, W, 3) -> (T, width), one for every window that fits."""
        pictures = frames if self.trunk.per_frame else self._windows(frames)
        at_once = self.trunk.at_once
        parts = [self._encoded(pictures[first : first + at_once]) for first in range(0, len(pictures), at_once)]
        encoded = torch.cat(parts)
        return self.trunk.pool(self._windows(encoded)) if self.trunk.per_frame else encoded

    def _windows(self, rows: Tensor) -> Tensor:
        """(N, ...) -> (T, window, ...), a view."""
        return rows.unfold(0, self.window, self.stride).movedim(-1, 1)

    def _encoded(self, pictures: Tensor) -> Tensor:
        if not self._trained:
            with torch.no_grad():
                return self.trunk(pictures)
        if self.checkpointing and torch.is_grad_enabled():
            return checkpoint(self.trunk, pictures, use_reentrant=False)
        return self.trunk(pictures)

    def forward(self, frames: Tensor, mask: Tensor, **truth: Tensor) -> Outputs:
        """frames: uint8 (B, N, H, W, 3), where N frames make T windows; mask: (B, T), True first -> Outputs.

        What is padding never enters the trunk. truth: handed on to the detector.
        """
        rows = []
        for clip, valid in zip(frames, mask, strict=True):
            count = int(valid.sum())
            features = self.features(clip[: (count - 1) * self.stride + self.window])
            rows.append(F.pad(features, (0, 0, 0, mask.shape[1] - count)))
        return self.detector(torch.stack(rows), mask, **truth)
