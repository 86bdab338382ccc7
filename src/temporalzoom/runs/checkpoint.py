"""Checkpoints: safetensors and JSON, never pickle. A checkpoint is a folder that appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from temporalzoom.config import Config, parse_config
from temporalzoom.errors import InputError
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.timegrid import TimeGrid

FORMAT = 1


@dataclass(frozen=True)
class CheckpointInfo:
    """What a model needs besides its weights. origin: how its features were made from videos, None where unknown."""

    step: int
    config: Config
    classes: tuple[str, ...]
    input_width: int
    grid: TimeGrid
    origin: ExtractionSettings | None = None


def checkpoint_folder(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step:07d}"


def list_checkpoints(run: Path) -> list[Path]:
    """Finished checkpoints of a run, oldest first."""
    return sorted(p for p in (run / "checkpoints").glob("step-*") if p.is_dir() and p.suffix != ".tmp")


def save_checkpoint(
    run: Path, info: CheckpointInfo, model: nn.Module, average: nn.Module, optimizer: torch.optim.Optimizer, keep: int
) -> Path:
    """Write everything beside the goal, then rename: a crash at any moment leaves only whole checkpoints."""
    folder = checkpoint_folder(run, info.step)
    try:
        _write(folder, info, model, average, optimizer)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder}: cannot be written ({error})") from None
    for old in list_checkpoints(run)[:-keep]:
        shutil.rmtree(old)
    for draft in folder.parent.glob("*.tmp"):
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _write(
    folder: Path, info: CheckpointInfo, model: nn.Module, average: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    draft = folder.with_suffix(".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    save_file(_tensors(model.state_dict()), draft / "weights.safetensors")
    save_file(_tensors(average.state_dict()), draft / "average.safetensors")
    save_file(_optimizer_tensors(model, optimizer), draft / "optimizer.safetensors")
    description = {
        "format": FORMAT,
        "step": info.step,
        "classes": list(info.classes),
        "input_width": info.input_width,
        "grid": asdict(info.grid),
        "origin": None if info.origin is None else asdict(info.origin),
        "config": info.config.model_dump(mode="json"),
    }
    (draft / "checkpoint.json").write_text(json.dumps(description, indent=1), encoding="utf-8")
    for file in draft.iterdir():
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(draft, folder)


def find_checkpoint(path: Path) -> Path:
    """A checkpoint folder, or the latest checkpoint of a run folder."""
    if not path.is_dir():
        raise InputError(f"{path}: no such run or checkpoint folder")
    if (path / "checkpoint.json").is_file():
        return path
    found = list_checkpoints(path)
    if not found:
        raise InputError(f"{path}: holds no checkpoint; is it the folder given to 'tzoom train --out'?")
    return found[-1]


def read_info(checkpoint: Path) -> CheckpointInfo:
    file = checkpoint / "checkpoint.json"
    try:
        description: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if description["format"] != FORMAT:
            raise InputError(f"{file}: format {description['format']} is not supported (this version reads {FORMAT})")
        return CheckpointInfo(
            description["step"],
            parse_config(description["config"], source=str(file)),
            tuple(description["classes"]),
            description["input_width"],
            TimeGrid(**description["grid"]),
            None if description.get("origin") is None else ExtractionSettings(**description["origin"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: not a checkpoint description ({type(error).__name__}: {error})") from None


def load_weights(checkpoint: Path, model: nn.Module, which: str = "average") -> None:
    """Weights into `model`: `average` (moving average, for use) or `weights` (for going on with training)."""
    tensors = _read_tensors(checkpoint / f"{which}.safetensors")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{checkpoint}: weights do not fit the model ({reason})") from None


def load_optimizer(checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The inverse of what `save_checkpoint` stores: moments by parameter name."""
    tensors = _read_tensors(checkpoint / "optimizer.safetensors")
    for name, parameter in model.named_parameters():
        state = {key.rsplit("/", 1)[1]: value for key, value in tensors.items() if key.rsplit("/", 1)[0] == name}
        if state:
            optimizer.state[parameter] = state


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return _tensors(
        {
            f"{name}/{key}": value
            for name, parameter in model.named_parameters()
            for key, value in optimizer.state.get(parameter, {}).items()
        }
    )


def _tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: cannot be read ({error})") from None
