"""Annotations made with other tools (ELAN, Label Studio, a spreadsheet), as this package's annotations."""

from temporalzoom.datasets.imports.gathering import SUFFIXES, import_annotations
from temporalzoom.datasets.imports.recordings import Imported, Instance

__all__ = ["SUFFIXES", "Imported", "Instance", "import_annotations"]
