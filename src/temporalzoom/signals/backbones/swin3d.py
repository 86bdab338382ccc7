"""The backbones `swin3d_t`, `swin3d_s`, `swin3d_b`: Video Swin Transformers, through torchvision."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from temporalzoom.device import device_of
from temporalzoom.errors import InputError
from temporalzoom.signals.backbones.interface import ClipBackbone, Floats
from temporalzoom.signals.backbones.registry import register
from temporalzoom.signals.backbones.trunk import IMAGENET_DEVIATION, IMAGENET_MEAN, Trunk, normalized
from temporalzoom.signals.decoding import Frames


class SwinTrunk(Trunk):
    """One vector per window: the mean over space and time of the last layer."""

    at_once = 2

    def __init__(self, network: nn.Module, size: int, name: str) -> None:
        super().__init__()
        self.network, self.size, self.name = network, size, name
        self.width = int(network.num_features)  # type: ignore[arg-type]

    def prepared(self, pictures: Frames | Tensor) -> Tensor:
        return normalized(pictures, self.size, IMAGENET_MEAN, IMAGENET_DEVIATION, self.name, device_of(self))

    def encode(self, images: Tensor) -> Tensor:
        """(n, window, 3, size, size) -> (n, width)."""
        return self.network(images.transpose(1, 2)).float()

    def blocks(self) -> list[list[nn.Module]]:
        found: list[list[nn.Module]] = []
        merging: list[nn.Module] = []  # of patches: goes with the block that it leads to
        for stage in self.network.features:  # type: ignore[union-attr]
            if not isinstance(stage, nn.Sequential):
                merging = [stage]
                continue
            for block in stage:
                found.append([*merging, block])
                merging = []
        found[-1].append(self.network.norm)  # type: ignore[arg-type]
        return found


class Swin3D(ClipBackbone):
    """The mean over space and time of the last layer."""

    # As the weights were trained: 32 frames. Their rate was 15 per second: `fps=15` is what they know best.
    window, stride = 32, 8
    clip_batch = 2

    def __init__(self, name: str, trunk: nn.Module, size: int, options: dict[str, Any]) -> None:
        self.name, self.options = name, options
        self.width = int(trunk.num_features)  # type: ignore[arg-type]
        trunk.head = nn.Identity()
        self.trunk = trunk.eval()
        self.module = SwinTrunk(self.trunk, size, name).eval()
        self.frame_size = self.size = size

    @torch.inference_mode()
    def __call__(self, clips: Frames) -> Floats:
        return self.module.encode(self.module.prepared(clips)).cpu().numpy()


def _build(name: str, weights: str, seed: int, size: int) -> Swin3D:
    if size < 32:
        raise InputError(f"backbone {name}: option size must be at least 32, got {size}")
    try:
        from torchvision.models import get_model
    except (ImportError, RuntimeError) as error:  # built for another torch, it fails with a RuntimeError
        reason = " ".join(str(error).split())[:120]
        raise InputError(
            f"backbone {name} needs the torchvision that fits torch {torch.__version__}: "
            f'pip install "temporalzoom[video]" ({reason})'
        ) from error
    options = {"weights": weights, "size": size}
    if weights == "random":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Swin3D(name, get_model(name, weights=None), size, options | {"seed": seed})
    if weights == "kinetics400":
        try:
            return Swin3D(name, get_model(name, weights="KINETICS400_V1"), size, options)
        except OSError as error:
            raise InputError(
                f"backbone {name}: its weights could not be downloaded ({error}); "
                "give the path of a checkpoint: weights=FILE"
            ) from error
    trunk = get_model(name, weights=None)
    load_checkpoint(trunk, Path(weights), name)
    return Swin3D(name, trunk, size, options)


def load_checkpoint(trunk: nn.Module, path: Path, name: str) -> None:
    """Weights from a file in the layout of torchvision or of the Video Swin repository; nothing in it is executed.

    The classifier may be missing or have any number of classes; anything else that does not fit raises InputError.
    """
    if not path.is_file():
        raise InputError(f"backbone {name}: weights must be kinetics400, random or a file; {path} is none")
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise InputError(f"{path}: damaged, or holds more than tensors; only plain checkpoints are read") from error
    for key in ("state_dict", "model"):
        if isinstance(stored, Mapping) and isinstance(stored.get(key), Mapping):
            stored = stored[key]
    if not isinstance(stored, Mapping):
        raise InputError(f"{path}: holds a {type(stored).__name__}, not the weights of a network")
    found = torchvision_layout({str(key): value for key, value in stored.items()})
    for key, value in (wanted := dict(trunk.named_parameters())).items():
        if key.startswith("head."):
            continue
        if key not in found:
            raise InputError(f"{path}: no weights of {name}: {key} is missing")
        if found[key].shape != value.shape:
            raise InputError(
                f"{path}: no weights of {name}: {key} has the shape {tuple(found[key].shape)}, not {tuple(value.shape)}"
            )
    # Parameters only: the buffers (which entry of a bias table belongs to which pair) follow from the window.
    trunk.load_state_dict({key: found[key] for key in wanted if not key.startswith("head.")}, strict=False)


def torchvision_layout(stored: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Names of the official layout (`backbone.layers.0.blocks.1.mlp.fc1.weight`) -> those of torchvision.

    In torchvision blocks and the merging of patches that follows them are counted as one list: 0, 1, 2, ...
    """
    renamed = {}
    for key, value in stored.items():
        key = key.removeprefix("module.").removeprefix("backbone.")
        key = re.sub(r"^layers\.(\d+)\.blocks\.", lambda m: f"features.{2 * int(m[1])}.", key)
        key = re.sub(r"^layers\.(\d+)\.downsample\.", lambda m: f"features.{2 * int(m[1]) + 1}.", key)
        renamed[key.replace(".mlp.fc1.", ".mlp.0.").replace(".mlp.fc2.", ".mlp.3.")] = value
    return renamed


@register("swin3d_t")
def swin3d_t(weights: str = "kinetics400", seed: int = 0, size: int = 224) -> Swin3D:
    return _build("swin3d_t", weights, seed, size)


@register("swin3d_s")
def swin3d_s(weights: str = "kinetics400", seed: int = 0, size: int = 224) -> Swin3D:
    return _build("swin3d_s", weights, seed, size)


@register("swin3d_b")
def swin3d_b(weights: str = "kinetics400", seed: int = 0, size: int = 224) -> Swin3D:
    return _build("swin3d_b", weights, seed, size)
