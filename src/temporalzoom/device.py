"""Where networks run: the processor, an NVIDIA card (`cuda`) or an Apple one (`mps`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from temporalzoom.errors import InputError

if TYPE_CHECKING:  # what runs no network shall not wait for torch
    import torch
    from torch import nn

DeviceName = Literal["auto", "cpu", "cuda", "mps"]


def available_devices() -> tuple[str, ...]:
    """Fastest first; `cpu` is always there."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    return tuple(name for name, is_there in there.items() if is_there)


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` is the fastest that is there. One that is not there raises InputError."""
    import torch

    if name not in get_args(DeviceName):
        raise InputError(f"device: unknown device {name!r}; valid: {', '.join(get_args(DeviceName))}")
    available = available_devices()
    if name == "auto":
        return torch.device(available[0])
    if name not in available:
        raise InputError(f"device: {name} is not available here; available: {', '.join(available)}")
    return torch.device(name)


def device_of(module: nn.Module) -> torch.device:
    """Where the parameters of a network are; the processor, where it has none."""
    import torch

    parameter = next(module.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
