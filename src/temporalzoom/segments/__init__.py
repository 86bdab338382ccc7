"""Segments: the one container that crosses rooms. Starts and ends in seconds, labels, scores."""

from .columns import Labels, as_labels
from .container import Segments

AGNOSTIC = "action"  # the label of segments of which only the times are known
__all__ = ["AGNOSTIC", "Labels", "Segments", "as_labels"]
