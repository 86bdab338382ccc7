"""Products in half precision, where the processor is quicker at them."""

from __future__ import annotations

import torch


def products_in(precision: str) -> torch.autocast:
    """Inside the block, products are computed in `bfloat16`; `float32`: as ever."""
    return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")
