"""The name of the file chooses its format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import write_predictions
from temporalzoom.formats.csv_rows import write_csv
from temporalzoom.formats.eaf import eaf_text
from temporalzoom.formats.label_studio_tasks import write_label_studio
from temporalzoom.formats.per_recording import write_each
from temporalzoom.formats.srt import srt_text
from temporalzoom.formats.vtt import write_vtt
from temporalzoom.segments import Segments

LABEL_STUDIO = ".labelstudio.json"
SUFFIXES = (".json", ".csv", ".vtt", ".srt", ".eaf", LABEL_STUDIO)


def write_segments(
    path: str | Path,
    results: Mapping[str, Segments],
    *,
    fps: float | None = None,
    media: Mapping[str, str | Path] | None = None,
) -> list[Path]:
    """Write `{recording: segments}` in the format that the suffix of `path` names; returns the files written.

    .vtt, .srt and .eaf hold one recording: several make a folder named as `path` without suffix, one file each.
    fps: frames per second, for Label Studio: with it, frames of a video, else seconds of a signal. media: where the
    video or signal of a recording is, for ELAN and Label Studio, which open it.
    """
    path = Path(path)
    if fps is not None and not 0 < fps < float("inf"):
        raise InputError(f"fps must be a positive number, got {fps!r}")
    # Label Studio's files end in .json as well, so they are told apart by the word before it.
    suffix = LABEL_STUDIO if f".{path.name.lower()}".endswith(LABEL_STUDIO) else path.suffix.lower()
    if suffix == LABEL_STUDIO:
        write_label_studio(path, results, fps=fps, media=media)
    elif suffix == ".json":
        write_predictions(path, results)
    elif suffix == ".csv":
        write_csv(path, results)
    elif suffix == ".vtt":
        return write_vtt(path, results)
    elif suffix == ".srt":
        return write_each(path, results, lambda target, recording, segments: srt_text(segments))
    elif suffix == ".eaf":
        known = media or {}
        return write_each(
            path,
            results,
            lambda target, recording, segments: eaf_text(segments, recording, known.get(recording), target.parent),
        )
    else:
        raise InputError(f"{path}: unknown format {path.suffix!r}; valid are {', '.join(SUFFIXES)}")
    return [path]
