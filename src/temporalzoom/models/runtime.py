"""How the processor works: freed memory is kept, denormals are zero, products in half precision."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch

# Names of glibc's malloc.h: how many blocks may be mapped one by one, and how much freed memory is kept.
_MMAP_MAX, _TRIM_THRESHOLD = -4, -1
_KEPT = 2**30
_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES")


@cache
def keep_freed_memory() -> bool:
    """Have the C library keep up to 1 GB of freed memory; whether it could be told. Once per process.

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


def products_in(precision: str) -> torch.autocast:
    """Inside the block, products are computed in `bfloat16`; `float32`: as ever."""
    return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")
