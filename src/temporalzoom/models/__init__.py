"""Networks only: features (B, T, F) and a mask (B, T) in, raw `Outputs` in grid units out."""

from temporalzoom.models.outputs import Depth, Outputs
from temporalzoom.models.registry import build_model, model_families, register
from temporalzoom.models.tzn import TemporalZoom
from temporalzoom.models.uniform import Uniform

__all__ = ["Depth", "Outputs", "TemporalZoom", "Uniform", "build_model", "model_families", "register"]
