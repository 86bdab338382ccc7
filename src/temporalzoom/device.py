"""Where networks run: the processor, an NVIDIA card (`cuda`) or an Apple one (`mps`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def deterministic() -> Iterator[None]:
    """One thread, and only algorithms that give the same bits again: then the number of cores does not matter either.
    An operation without such an algorithm on this device raises InputError."""
    import torch

    threads, before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"--deterministic: not possible with this model on this device: {reason}") from error
    finally:
        torch.use_deterministic_algorithms(before)
        torch.set_num_threads(threads)


def device_of(module: nn.Module) -> torch.device:
    """Where the parameters of a network are; the processor, where it has none."""
    import torch

    parameter = next(module.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device
