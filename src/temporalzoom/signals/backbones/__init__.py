"""Backbones: video frames -> feature vectors, by name (`motion`, `efficientnet_lite0`, `swin3d_t`, ...)."""

from temporalzoom.signals.backbones.interface import Backbone, ClipBackbone, FrameBackbone, sliding_windows
from temporalzoom.signals.backbones.registry import backbone, backbone_names, register

__all__ = ["Backbone", "ClipBackbone", "FrameBackbone", "backbone", "backbone_names", "register", "sliding_windows"]
