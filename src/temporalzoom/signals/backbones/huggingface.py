"""The backbones `huggingface:NAME_OR_FOLDER`: video networks such as VideoMAE, through transformers."""

from __future__ import annotations

from typing import Any

import torch

from temporalzoom.device import choose_device, device_of
from temporalzoom.errors import InputError
from temporalzoom.signals.backbones.interface import ClipBackbone, Floats
from temporalzoom.signals.backbones.registry import register
from temporalzoom.signals.backbones.trunk import IMAGENET_DEVIATION, IMAGENET_MEAN, normalized
from temporalzoom.signals.decoding import Frames


class HuggingFace(ClipBackbone):
    """The mean over the tokens of the last layer. The window is the number of frames that the network was made for."""

    clip_batch = 2

    def __init__(self, name: str, network: Any, mean: tuple[float, ...], deviation: tuple[float, ...]) -> None:
        config = network.config
        self.name, self.options = name, {}
        self.network = network.eval()
        self.width, self.window = int(config.hidden_size), int(config.num_frames)
        self.stride = max(self.window // 4, 1)
        self.frame_size = self.size = int(config.image_size)
        self.mean, self.deviation = mean, deviation

    def to(self, device: str) -> HuggingFace:
        self.network.to(choose_device(device))
        return self

    @torch.inference_mode()
    def __call__(self, clips: Frames) -> Floats:
        if clips.shape[1] != self.window:
            raise InputError(f"backbone {self.name}: window must be {self.window}, got {clips.shape[1]}")
        images = normalized(clips, self.size, self.mean, self.deviation, self.name, device_of(self.network))
        return self.network(pixel_values=images).last_hidden_state.mean(1).float().cpu().numpy()


@register("huggingface")
def huggingface(source: str) -> HuggingFace:
    """source: a folder, or a name on the hub (`MCG-NJU/videomae-base`). No code that comes with a model is run."""
    name = f"huggingface:{source}"
    try:
        from transformers import AutoModel
        from transformers.image_processing_base import ImageProcessingMixin
    except (ImportError, RuntimeError) as error:
        raise InputError(f'backbone {name} needs transformers: pip install "temporalzoom[huggingface]"') from error
    try:
        network = AutoModel.from_pretrained(source)
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"backbone {name}: no model could be loaded: {reason}") from error
    missing = [key for key in ("num_frames", "image_size", "hidden_size") if not hasattr(network.config, key)]
    if missing:
        raise InputError(f"backbone {name}: not a network for videos: its configuration has no {', '.join(missing)}")
    try:
        prepared, _ = ImageProcessingMixin.get_image_processor_dict(source)
    except OSError:
        prepared = {}  # a model without that file: take what most were trained with
    mean, deviation = (prepared.get("image_mean", IMAGENET_MEAN), prepared.get("image_std", IMAGENET_DEVIATION))
    return HuggingFace(name, network, tuple(mean), tuple(deviation))
