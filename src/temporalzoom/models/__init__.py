"""Networks only: features (B, T, F) and a mask (B, T) in, raw `Outputs` in grid units out."""

from temporalzoom.models.actionformer import ActionFormer
from temporalzoom.models.adaptive import AdaptiveDepth
from temporalzoom.models.bmn import BMN
from temporalzoom.models.outputs import BoundaryMaps, Depth, Outputs, Points, Routing
from temporalzoom.models.registry import build_model, model_families, register
from temporalzoom.models.routing import RoutedZoom
from temporalzoom.models.temporalmaxer import TemporalMaxer
from temporalzoom.models.tridet import TriDet
from temporalzoom.models.tzn import TemporalZoom
from temporalzoom.models.uniform import Uniform

__all__ = [
    "BMN",
    "ActionFormer",
    "AdaptiveDepth",
    "BoundaryMaps",
    "Depth",
    "Outputs",
    "Points",
    "RoutedZoom",
    "Routing",
    "TemporalMaxer",
    "TemporalZoom",
    "TriDet",
    "Uniform",
    "build_model",
    "model_families",
    "register",
]
