"""Denormal numbers are slow on CPUs and carry no information here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Flush denormals to zero inside the block. It is a state of the whole thread, so the caller's own is restored."""
    before = float(np.float64(5e-324) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
