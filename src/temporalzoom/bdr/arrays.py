"""What the room accepts as numbers: arrays, lists and tensors."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Floats = NDArray[np.float64]
Numbers = ArrayLike | Tensor


def as_float64(values: Numbers) -> Floats:
    """Numbers of any type and device as a numpy array of the same shape."""
    if isinstance(values, Tensor):
        return values.detach().to("cpu", torch.float64).numpy()
    return np.asarray(values, np.float64)
