"""Metrics: pure functions on annotations and predictions, both `{video name: Segments}`."""

from temporalzoom.metrics.boundaries import BoundaryErrors, boundary_errors
from temporalzoom.metrics.detection import (
    DetectionResult,
    average_precision,
    evaluate_detections,
    precision_recall,
    tiou,
)
from temporalzoom.metrics.lengths import LengthResult, evaluate_by_length
from temporalzoom.metrics.matching import Matching, match_detections
from temporalzoom.metrics.proposals import average_recall
from temporalzoom.metrics.tables import per_class_table, per_length_table

__all__ = [
    "BoundaryErrors",
    "DetectionResult",
    "LengthResult",
    "Matching",
    "average_precision",
    "average_recall",
    "boundary_errors",
    "evaluate_by_length",
    "evaluate_detections",
    "match_detections",
    "per_class_table",
    "per_length_table",
    "precision_recall",
    "tiou",
]
