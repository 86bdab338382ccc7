"""Temporal Zoom: find when actions happen in untrimmed video or sensor streams.

from temporalzoom import Localizer

localizer = Localizer.load("runs/mine")
for start, end, label, score in localizer("match9.mp4"):
    print(start, end, label, score)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid

if TYPE_CHECKING:
    from temporalzoom.config import load_config
    from temporalzoom.formats import read_annotations, write_segments
    from temporalzoom.inference.localizer import Localizer
    from temporalzoom.signals.extraction_processes import extract_features
    from temporalzoom.workflows.evaluate import evaluate
    from temporalzoom.workflows.fit import fit
    from temporalzoom.workflows.train import train

__version__ = "0.2.0"
__all__ = [
    "Localizer",
    "Segments",
    "TimeGrid",
    "__version__",
    "evaluate",
    "extract_features",
    "fit",
    "load_config",
    "read_annotations",
    "train",
    "write_segments",
]
# Loaded when they are asked for: torch takes seconds to import, and `bdr` is usable without the rest.
_HOMES = {
    "Localizer": "temporalzoom.inference.localizer",
    "evaluate": "temporalzoom.workflows.evaluate",
    "extract_features": "temporalzoom.signals.extraction_processes",
    "fit": "temporalzoom.workflows.fit",
    "load_config": "temporalzoom.config",
    "read_annotations": "temporalzoom.formats",
    "train": "temporalzoom.workflows.train",
    "write_segments": "temporalzoom.formats",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
