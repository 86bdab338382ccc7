"""Label Studio (.labelstudio.json): one task per recording, all in one file, with predictions that annotators correct.

Times of a time series or sound are seconds and come back exactly; those of a video are whole frames. Labels come back
as they were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError
from temporalzoom.formats.interface import (
    ExportOptions,
    Imported,
    ImportOptions,
    Instance,
    checked_instance,
    read_text,
    short,
)
from temporalzoom.formats.json_file import expect, layout, number
from temporalzoom.json_tree import parse_json
from temporalzoom.segments import Segments

SECONDS = ("timeserieslabels", "labels")  # of a time series; of a sound
FRAMES = "timelinelabels"  # of a video


# Writing


def write_label_studio(path: Path, results: Mapping[str, Segments], options: ExportOptions) -> None:
    """One file of all recordings, see `label_studio_tasks`."""
    text = layout(label_studio_tasks(results, fps=options.fps, media=options.media), levels=5)
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
                "type": "timeserieslabels" if fps is None else FRAMES,
                "value": _seconds_value(start, end, label) if fps is None else _frames_value(start, end, label, fps),
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


def _seconds_value(start: float, end: float, label: str) -> dict[str, Any]:
    return {"start": start, "end": end, "instant": False, "timeserieslabels": [label]}


def _frames_value(start: float, end: float, label: str, fps: float) -> dict[str, Any]:
    """Label Studio counts frames from 1, and the last frame belongs to the range: frame n shows the seconds from
    (n - 1) / fps to n / fps. A segment has at least one frame."""
    first = max(0, round(start * fps)) + 1
    return {"ranges": [{"start": first, "end": max(first, round(end * fps))}], FRAMES: [label]}


# Reading


def read_label_studio(paths: Sequence[Path], options: ImportOptions, notes: list[str]) -> list[Imported]:
    """One recording per task that was annotated, or with `options.predictions` has at least a prediction.

    options.fps: of the videos, which Label Studio's files do not hold. `notes` names what was left out.
    """
    return [recording for path in paths for recording in _read(path, options.fps, options.predictions, notes)]


def _read(path: Path, fps: float | None, predictions: bool, notes: list[str]) -> list[Imported]:
    text = read_text(path, "a JSON file")
    try:
        document = parse_json(text)
    except ValueError as error:
        raise InputError(f"{path}: not a JSON file: {error}") from error
    if isinstance(document, dict) and "results" in document:
        raise InputError(f"{path}: these are predictions in this package's own form; nothing is to be imported")
    recordings: dict[str, Imported] = {}
    others: Counter[str] = Counter()
    unannotated = []
    for index, task in enumerate(expect(document, list, f"{path}: the content of a Label Studio file")):
        task = expect(task, dict, f"{path}: task {index}")
        where = f"{path}: task {task.get('id', index)}"
        if "data" not in task:
            raise InputError(f"{where}: no key 'data'; export from Label Studio as JSON, not as JSON-MIN")
        results = _results(task, where, predictions)
        if results is None:
            unannotated.append(str(task.get("id", index)))
            continue
        name = _name(expect(task["data"], dict, f"{where}: 'data'"), where)
        if name in recordings:
            raise InputError(f"{where}: recording {name!r} is also that of {recordings[name].where.split(': ')[-1]}")
        instances = [instance for result in results for instance in _instances(result, where, fps, others)]
        lengths = [result["original_length"] for result in results if result.get("original_length") is not None]
        duration = number(lengths[0], f"{where}: 'original_length'") if lengths else None
        recordings[name] = Imported(name, where, instances, duration=duration)
    if unannotated:
        notes.append(f"{path}: left out {len(unannotated)} tasks without annotation: {_listed(unannotated)}")
    if others:
        kinds = ", ".join(f"{count} {kind}" for kind, count in others.most_common())
        notes.append(f"{path}: left out results that are no time spans: {kinds}")
    if not recordings:
        hint = "" if predictions else " (--predictions takes the predictions of a model)"
        raise InputError(f"{path}: no task was annotated{hint}")
    return list(recordings.values())


def _results(task: dict[str, Any], where: str, predictions: bool) -> list[dict[str, Any]] | None:
    """Of the one annotation that counts; None where there is none."""
    annotations = expect(task.get("annotations") or [], list, f"{where}: 'annotations'")
    done = [a for a in annotations if not expect(a, dict, f"{where}: an annotation").get("was_cancelled")]
    true = [a for a in done if a.get("ground_truth")]
    chosen = true or done
    if len(chosen) > 1:
        ids = ", ".join(str(a.get("id")) for a in chosen)
        raise InputError(
            f"{where}: {len(chosen)} annotations ({ids}); mark one of them as ground truth in Label Studio"
        )
    if not chosen and predictions:
        # Label Studio lists the newest prediction first.
        chosen = expect(task.get("predictions") or [], list, f"{where}: 'predictions'")[:1]
    if not chosen:
        return None
    results = expect(expect(chosen[0], dict, where).get("result") or [], list, f"{where}: 'result'")
    return [expect(result, dict, f"{where}: a result") for result in results]


def _instances(result: dict[str, Any], where: str, fps: float | None, others: Counter[str]) -> Iterator[Instance]:
    """One per label of the result and per range; `others` counts results of kinds that are no time spans."""
    kind = result.get("type")
    if kind != FRAMES and kind not in SECONDS:
        others[str(kind)] += 1
        return
    where = f"{where}, result {result.get('id')}"
    value = expect(result.get("value"), dict, f"{where}: 'value'")
    labels = expect(value.get(kind), list, f"{where}: {kind!r}")
    if not labels:
        raise InputError(f"{where}: it has no label")
    if kind in SECONDS:
        spans = [tuple(number(value.get(key), f"{where}: {key!r}") for key in ("start", "end"))]
    else:
        ranges = expect(value.get("ranges"), list, f"{where}: 'ranges'")
        spans = [_seconds_of_frames(expect(span, dict, f"{where}: a range"), where, fps) for span in ranges]
    for start, end in spans:
        for label in labels:
            yield checked_instance(start, end, expect(label, str, f"{where}: a label"), where)


def _seconds_of_frames(span: dict[str, Any], where: str, fps: float | None) -> tuple[float, float]:
    """Frames are counted from 1 and the last one belongs to the range."""
    first, last = (number(span.get(key), f"{where}: {key!r}") for key in ("start", "end"))
    if fps is None:
        raise InputError(f"{where}: it counts frames; say how many there are per second with --fps")
    if last < first:
        raise InputError(f"{where}: end frame {last:g} is before start frame {first:g}")
    return (first - 1) / fps, last / fps


def _name(data: dict[str, Any], where: str) -> str:
    """What this package wrote under `recording`, else the name of the file that the task shows."""
    if isinstance(data.get("recording"), str) and data["recording"]:
        return str(data["recording"])
    for value in data.values():
        name = file_stem(value) if isinstance(value, str) else ""
        if name:
            return name
    raise InputError(f"{where}: 'data' names no file, got {short(data)}")


def file_stem(address: str) -> str:
    """The name that a video had before Label Studio got it: of a path or address, without folder and suffix."""
    try:
        parts = urlsplit(address)
    except ValueError:  # such as http://[, which is a title and no address
        return ""
    path = unquote(parts.path)
    if path.endswith("/local-files/"):
        path = parse_qs(parts.query).get("d", [""])[0]
    stem = PurePosixPath(path).stem
    if "/upload/" in path:
        stem = re.sub("^[0-9a-f]{8}-", "", stem)  # Label Studio puts it before the name of an uploaded file
    return stem


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
