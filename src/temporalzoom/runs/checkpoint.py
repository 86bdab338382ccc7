"""Checkpoints: safetensors and JSON, never pickle. A checkpoint is a folder that appears whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from temporalzoom.errors import InputError
from temporalzoom.json_tree import parse_json
from temporalzoom.models.adaptive import AdaptiveDepth
from temporalzoom.runs.description import ModelDescription
from temporalzoom.runs.members import single
from temporalzoom.runs.network import backbone_from_config, model_from_config, video_model_from_config
from temporalzoom.signals.backbones import Backbone

BEST = "best"  # the folder of the best checkpoint of a run
SCALER = "gradient scaler/"  # no parameter has a name with a space


def checkpoint_folder(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step:07d}"


def list_checkpoints(run: Path) -> list[Path]:
    """Finished checkpoints of a run, oldest first."""
    return sorted(p for p in (run / "checkpoints").glob("step-*") if p.is_dir() and p.suffix != ".tmp")


def save_checkpoint(
    run: Path,
    description: ModelDescription,
    model: nn.Module,
    average: nn.Module,
    optimizer: torch.optim.Optimizer,
    keep: int,
    state: Mapping[str, Tensor] | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> Path:
    """Write everything beside the goal, then rename: a crash at any moment leaves only whole checkpoints.

    Tensors are stored as those of the processor, whatever device they are on.

    Args:
        average: the moving average of `model`, for use.
        keep: how many checkpoints of the run stay, the newest ones.
        state: what else training needs to go on, by name; `load_optimizer` returns it.
        scaler: of the gradients, in float16.
    """
    folder = checkpoint_folder(run, description.step)
    training = _optimizer_tensors(model, optimizer) | _tensors(state or {}) | _scaler_tensors(scaler)
    try:
        weights, averaged = _tensors(model.state_dict()), _tensors(average.state_dict())
        _write(folder, description, {"weights": weights, "average": averaged, "optimizer": training})
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder}: cannot be written ({error})") from None
    for old in list_checkpoints(run)[:-keep]:
        shutil.rmtree(old)
    for draft in folder.parent.glob("*.tmp"):
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def save_best(run: Path, description: ModelDescription, average: nn.Module) -> Path:
    """Keep the network as it is now as the run's best. It can be used, not trained on."""
    folder = run / BEST
    try:
        _write(folder, description, {"average": _tensors(average.state_dict())})
    except (OSError, SafetensorError) as error:
        raise InputError(f"{folder}: cannot be written ({error})") from None
    return folder


def _write(folder: Path, description: ModelDescription, files: Mapping[str, dict[str, Tensor]]) -> None:
    draft = folder.with_suffix(".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    described = draft / "checkpoint.json"
    described.write_text(json.dumps(description.to_json(), indent=1), encoding="utf-8")
    for name, tensors in files.items():
        save_file(tensors, draft / f"{name}.safetensors")
        shutil.copymode(described, draft / f"{name}.safetensors")  # the user's umask, not the library's own mode
    for file in draft.iterdir():
        with open(file, "r+b") as handle:  # Windows flushes only what may be written
            os.fsync(handle.fileno())
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(draft, folder)


def remove_drafts(run: Path) -> None:
    """What a process that was killed left half written. Only for the one process that is at work in the run."""
    for draft in (*(run / "checkpoints").glob("step-*.tmp"), run / f"{BEST}.tmp"):
        shutil.rmtree(draft, ignore_errors=True)


def find_checkpoint(path: Path) -> Path:
    """A checkpoint folder, or of a run folder the best checkpoint, if it was validated, else the latest."""
    if not path.is_dir():
        raise InputError(f"{path}: no such run or checkpoint folder")
    path = single(path)
    for folder in (path, path / BEST):
        if (folder / "checkpoint.json").is_file():
            return folder
    found = list_checkpoints(path)
    if not found:
        raise InputError(f"{path}: holds no checkpoint; is it the folder given to 'tzoom train --out'?")
    return found[-1]


def read_info(checkpoint: Path) -> ModelDescription:
    file = checkpoint / "checkpoint.json"
    try:
        document = parse_json(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{file}: not a description of a model ({type(error).__name__}: {reason})") from None
    return ModelDescription.from_json(document, str(file))


def load_network(
    checkpoint: Path, description: ModelDescription, budget: float | None = None
) -> tuple[nn.Module, Backbone | None]:
    """The network with its averaged weights, in evaluation mode, and the backbone that was trained with it, if any.

    Args:
        budget: for a model with adaptive depth, the share of positions that may go deep; None: as it was trained.
    """
    config, classes, grid = description.config, len(description.classes), description.grid
    built: Backbone | None = None
    if description.video is None:
        network = model_from_config(config, description.input_width, classes, grid)
        load_weights(checkpoint, network)
    else:
        built = backbone_from_config(config, pretrained=False)
        whole = video_model_from_config(config, built, classes, grid)
        load_weights(checkpoint, whole)
        network = whole.eval().detector
    if budget is not None:
        if not isinstance(network, AdaptiveDepth):
            raise InputError(
                f"budget: {description.model} has no adaptive depth; tzn has, and detectors with model.deep_layers"
            )
        if not 0 <= budget <= 1:
            raise InputError(f"budget: must be a share of the positions, from 0 to 1, got {budget:g}")
        if not network.has_budget:
            raise InputError("budget: model.paper.allocation of this network knows no share of positions")
        network.budget = budget
    return network.eval(), built


def load_weights(checkpoint: Path, model: nn.Module, which: str = "average") -> None:
    """Weights into `model`: `average` (moving average, for use) or `weights` (for going on with training)."""
    tensors = _read_tensors(checkpoint / f"{which}.safetensors")
    try:
        model.load_state_dict(tensors)
    except (RuntimeError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise InputError(f"{checkpoint}: weights do not fit the model ({reason})") from None


def load_optimizer(
    checkpoint: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler | None = None,
) -> dict[str, Tensor]:
    """The inverse of what `save_checkpoint` stores: moments by parameter name, and the `state`, which is returned."""
    tensors = _read_tensors(checkpoint / "optimizer.safetensors")
    moments: dict[str, dict[str, Tensor]] = {}
    for key in [key for key in tensors if "/" in key]:
        name, moment = key.rsplit("/", 1)
        moments.setdefault(name, {})[moment] = tensors.pop(key)
    for name, parameter in model.named_parameters():
        if name in moments:
            # Counts of steps stay on the processor, where the optimizer keeps them.
            optimizer.state[parameter] = {k: v.to(parameter.device) if v.ndim else v for k, v in moments[name].items()}
    stored = {key: value.item() for key, value in moments.get(SCALER.rstrip("/"), {}).items()}
    if scaler is not None and scaler.is_enabled() and stored:
        scaler.load_state_dict(scaler.state_dict() | stored)
    return tensors


def _optimizer_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return _tensors(
        {
            f"{name}/{key}": value
            for name, parameter in model.named_parameters()
            for key, value in optimizer.state.get(parameter, {}).items()
        }
    )


def _scaler_tensors(scaler: torch.amp.GradScaler | None) -> dict[str, Tensor]:
    """What changes in training: the scale and for how many steps it has held. A disabled one has no state."""
    state = {} if scaler is None else scaler.state_dict()
    kept = {key: state[key] for key in ("scale", "_growth_tracker") if key in state}
    return {SCALER + key: torch.tensor(value) for key, value in kept.items()}


def _tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def _read_tensors(file: Path) -> dict[str, Tensor]:
    try:
        tensors = load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: cannot be read ({error})") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            wrong = int((~tensor.isfinite()).sum())
            raise InputError(f"{file}: {name!r} holds {wrong} values that are NaN or infinite: the file is damaged")
    return tensors
