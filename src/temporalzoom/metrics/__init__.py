"""Metrics: pure functions on annotations and predictions, both `{video name: Segments}`."""

from temporalzoom.metrics.boundaries import BoundaryErrors, boundary_errors
from temporalzoom.metrics.boundary_sets import boundary_chamfer, chamfer_distance, peak_sharpness
from temporalzoom.metrics.detection import (
    DetectionResult,
    average_precision,
    evaluate_detections,
    precision_recall,
    tiou,
)
from temporalzoom.metrics.errors import Analysis, analyse
from temporalzoom.metrics.lengths import LengthResult, evaluate_by_length
from temporalzoom.metrics.matching import Matching, match_detections
from temporalzoom.metrics.operating_point import Threshold, ThresholdCurve, best_thresholds, threshold_curve
from temporalzoom.metrics.proposals import average_recall
from temporalzoom.metrics.tables import per_class_table, per_length_table
from temporalzoom.metrics.verdict import verdict

__all__ = [
    "Analysis",
    "BoundaryErrors",
    "DetectionResult",
    "LengthResult",
    "Matching",
    "Threshold",
    "ThresholdCurve",
    "analyse",
    "average_precision",
    "average_recall",
    "best_thresholds",
    "boundary_chamfer",
    "boundary_errors",
    "chamfer_distance",
    "evaluate_by_length",
    "evaluate_detections",
    "match_detections",
    "peak_sharpness",
    "per_class_table",
    "per_length_table",
    "precision_recall",
    "threshold_curve",
    "tiou",
    "verdict",
]
