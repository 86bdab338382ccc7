"""Annotation and result files: one file per format with its reader and its writer, and one table of formats."""

from temporalzoom.formats.annotations import Annotations, Recording
from temporalzoom.formats.exporting import write_segments
from temporalzoom.formats.importing import import_annotations, read_any_annotations
from temporalzoom.formats.interface import Format
from temporalzoom.formats.json_file import read_annotations, read_predictions, write_annotations, write_predictions
from temporalzoom.formats.registry import FORMATS, reading_format, writing_format

__all__ = [
    "FORMATS",
    "Annotations",
    "Format",
    "Recording",
    "import_annotations",
    "read_annotations",
    "read_any_annotations",
    "read_predictions",
    "reading_format",
    "write_annotations",
    "write_predictions",
    "write_segments",
    "writing_format",
]
