"""How networks run: on which device, in which precision; freed memory is kept, denormals are zero."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache

import numpy as np
import torch
from torch import nn

from temporalzoom.device import choose_device, device_of
from temporalzoom.errors import InputError

__all__ = [
    "check_precision",
    "choose_device",
    "denormals_as_zero",
    "device_of",
    "gradient_scaler",
    "keep_freed_memory",
    "move_network",
    "products_in",
]

# Names of glibc's malloc.h: how many blocks may be mapped one by one, and how much freed memory is kept.
_MMAP_MAX, _TRIM_THRESHOLD = -4, -1
_KEPT = 2**30
HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# Elsewhere float16 is emulated, or its range is not watched over by a gradient scaler.
FLOAT16_DEVICES = ("cuda",)
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES")


@cache
def keep_freed_memory() -> bool:
    """Have the C library keep up to 1 GB of freed memory; whether that was possible. Once per process.

    A network allocates and frees tensors of the same few megabytes over and over. By default glibc returns such pages
    and fetches them anew, zeroed, each time: a good part of the time of a forward pass on CPU, and more for long
    sequences, so that time grew faster than their length. Other C libraries are left alone, and so is a user who has
    set these limits in the environment.
    """
    if any(name in os.environ for name in _SETTINGS):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Flush denormals to zero inside the block. It is a state of the whole thread, so the caller's own is restored."""
    before = float(np.float64(5e-324) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def move_network(model: nn.Module, device: str) -> None:
    """To the device of that name, see `choose_device`. A network that is no torch module inside stays on the processor:
    asking for another device raises InputError."""
    chosen = choose_device(device)
    if next(model.parameters(), None) is not None:
        model.to(chosen)
    elif device not in ("auto", "cpu"):
        raise InputError(f"device: this network runs on the cpu only, not on {device}")


def check_precision(precision: str, device_type: str, key: str = "precision") -> None:
    """An unknown precision, or one that the device has no use for, raises InputError. key: of the configuration."""
    if precision not in (*HALVES, "float32"):
        raise InputError(f"{key}: unknown precision {precision!r}; valid: float32, {', '.join(HALVES)}")
    if precision == "float16" and device_type not in FLOAT16_DEVICES:
        raise InputError(f"{key}: float16 needs the device cuda, this one is {device_type}; use float32 or bfloat16")


def products_in(precision: str, device_type: str = "cpu") -> AbstractContextManager[object]:
    """Inside the block, products on this kind of device are computed in `bfloat16` or `float16`; `float32`: as ever."""
    check_precision(precision, device_type)
    return nullcontext() if precision == "float32" else torch.autocast(device_type, HALVES[precision])


def gradient_scaler(precision: str, device_type: str = "cpu") -> torch.amp.GradScaler:
    """What keeps the small gradients of `float16` from vanishing; in every other precision it does nothing."""
    check_precision(precision, device_type)
    is_float16 = precision == "float16"
    return torch.amp.GradScaler(device_type if is_float16 else "cpu", enabled=is_float16)
