"""Results as files that people and other programs open: JSON, CSV, subtitles, ELAN, Label Studio."""

from temporalzoom.exports.csv_rows import COLUMNS, read_csv, write_csv
from temporalzoom.exports.eaf import eaf_text
from temporalzoom.exports.formats import SUFFIXES, write_segments
from temporalzoom.exports.label_studio import label_studio_tasks, write_label_studio
from temporalzoom.exports.srt import srt_text
from temporalzoom.exports.vtt import vtt_text, write_vtt

__all__ = [
    "COLUMNS",
    "SUFFIXES",
    "eaf_text",
    "label_studio_tasks",
    "read_csv",
    "srt_text",
    "vtt_text",
    "write_csv",
    "write_label_studio",
    "write_segments",
    "write_vtt",
]
