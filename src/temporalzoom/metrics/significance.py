"""Is a difference more than chance: Holm's correction for many tests, and how tables show it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from temporalzoom.errors import InputError
from temporalzoom.metrics.pairs import Booleans, Floats


class Holm(NamedTuple):
    """Adjusted p-values, and True where the hypothesis of no difference is rejected; both in the shape given."""

    adjusted: Floats
    rejected: Booleans


def holm(p_values: ArrayLike, alpha: float = 0.05) -> Holm:
    """Holm-Bonferroni: with all p-values of a table, of any shape, the chance of any false rejection is at most alpha.

    The i-th smallest of M is multiplied by M - i + 1 (at most 1) and raised to the adjusted value before it.
    """
    values = np.asarray(p_values, np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"p-values must be between 0 and 1, got {values[~((values >= 0) & (values <= 1))][0]}")
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, got {alpha}")
    flat = values.reshape(-1)
    order = np.argsort(flat, kind="stable")
    stepped = np.minimum(np.maximum.accumulate(flat[order] * np.arange(len(flat), 0, -1)), 1.0)
    adjusted: Floats = np.empty(values.shape)
    adjusted.reshape(-1)[order] = stepped
    return Holm(adjusted, adjusted <= alpha)


def marked(
    value: float,
    low: float,
    high: float,
    p: float | None = None,
    alpha: float = 0.05,
    scale: float = 100.0,
    digits: int = 1,
) -> str:
    """A value with its interval for a table: `89.7 [88.1, 91.0]`; with a p-value a difference: `+4.4 [+1.2, +7.9] *`.

    The star stands where p, adjusted by `holm` over the table, is at most alpha. `scale` 100 prints percent.
    """
    sign = "" if p is None else "+"
    # z: a difference that rounds to zero is +0.0, not -0.0.
    number, first, last = (f"{scale * x:{sign}z.{digits}f}" for x in (value, low, high))
    return f"{number} [{first}, {last}]" + (" *" if p is not None and p <= alpha else "")
