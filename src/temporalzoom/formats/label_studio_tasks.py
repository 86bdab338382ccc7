"""Label Studio: tasks with predictions, which annotators correct."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.formats.json_records import layout
from temporalzoom.segments import Segments


def write_label_studio(
    path: str | Path,
    results: Mapping[str, Segments],
    *,
    fps: float | None = None,
    media: Mapping[str, str | Path] | None = None,
) -> None:
    """One file of all recordings, see `label_studio_tasks`."""
    text = layout(label_studio_tasks(results, fps=fps, media=media), levels=5)
    with replacing(path) as file:
        file.write(text + "\n")


def label_studio_tasks(
    results: Mapping[str, Segments], *, fps: float | None = None, media: Mapping[str, str | Path] | None = None
) -> list[dict[str, Any]]:
    """One task per recording, with the segments as its prediction.

    With `fps` labels on the time line of a video (tags `<Video name="video" value="$video">` and
    `<TimelineLabels name="actions" toName="video">`), in whole frames. Without it labels of a time series (tags
    `<TimeSeries name="signal" value="$signal">` and `<TimeSeriesLabels name="actions" toName="signal">`), in seconds.
    media: the address of each recording's video or table; without it, its name stands there.
    """
    known = media or {}
    kind = "signal" if fps is None else "video"
    tasks = []
    for recording, segments in results.items():
        result = [
            {
                "id": f"segment{number}",
                "from_name": "actions",
                "to_name": kind,
                "type": "timeserieslabels" if fps is None else "timelinelabels",
                "value": _seconds(start, end, label) if fps is None else _frames(start, end, label, fps),
                "score": score,
            }
            for number, (start, end, label, score) in enumerate(segments, 1)
        ]
        prediction: dict[str, Any] = {"model_version": "temporalzoom", "result": result}
        if len(segments):  # by which Label Studio sorts tasks, the least certain first
            prediction["score"] = float(segments.scores.mean())
        data = {kind: str(known.get(recording, recording)), "recording": recording}
        tasks.append({"data": data, "predictions": [prediction]})
    return tasks


def _seconds(start: float, end: float, label: str) -> dict[str, Any]:
    return {"start": start, "end": end, "instant": False, "timeserieslabels": [label]}


def _frames(start: float, end: float, label: str, fps: float) -> dict[str, Any]:
    """Label Studio counts frames from 1, and the last frame belongs to the range: frame n shows the seconds from
    (n - 1) / fps to n / fps. A segment has at least one frame."""
    first = max(0, round(start * fps)) + 1
    return {"ranges": [{"start": first, "end": max(first, round(end * fps))}], "timelinelabels": [label]}
