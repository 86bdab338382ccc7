"""Temporal Zoom: find when actions happen in untrimmed video or sensor streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

if TYPE_CHECKING:
    from temporalzoom.inference.localizer import Localizer

__version__ = "0.1.0"
__all__ = ["Localizer", "Segments", "TimeGrid", "__version__"]


def __getattr__(name: str) -> Any:
    # Lazily: torch takes seconds to import, and `bdr` is usable without the rest.
    if name == "Localizer":
        from temporalzoom.inference.localizer import Localizer

        return Localizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
