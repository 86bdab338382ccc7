"""Results as files that people and other programs open: JSON, CSV, subtitles, ELAN, Label Studio."""

from temporalzoom.formats.csv_rows import COLUMNS, read_csv, write_csv
from temporalzoom.formats.eaf import eaf_text
from temporalzoom.formats.gathering import import_annotations
from temporalzoom.formats.label_studio_tasks import label_studio_tasks, write_label_studio
from temporalzoom.formats.srt import srt_text
from temporalzoom.formats.vtt import vtt_text, write_vtt
from temporalzoom.formats.writing import SUFFIXES, write_segments

__all__ = [
    "COLUMNS",
    "SUFFIXES",
    "eaf_text",
    "import_annotations",
    "label_studio_tasks",
    "read_csv",
    "srt_text",
    "vtt_text",
    "write_csv",
    "write_label_studio",
    "write_segments",
    "write_vtt",
]
