"""What is in a data set: recordings, instances, durations, background, overlaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from temporalzoom.formats.annotations import Annotations, Recording
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_rows import FeatureRows


@dataclass(frozen=True)
class Statistics:
    """Numbers of one class of one subset; `label` None stands for all classes together."""

    subset: str | None
    label: str | None
    recordings: int  # in which it occurs; of the subset, where label is None
    instances: int
    durations: tuple[float, float, float]  # seconds, the 10th, 50th and 90th percentile; NaN without instances
    time_share: float  # of the recorded time, counting overlaps once; NaN where a duration is not known
    overlapping: int  # instances that share time with another one of the same row

    @property
    def background_share(self) -> float:
        return 1.0 - self.time_share


def statistics(annotations: Annotations) -> list[Statistics]:
    """For each subset one row of all classes, then one row per class that occurs in it."""
    rows = []
    for subset in dict.fromkeys(recording.subset for recording in annotations.recordings.values()):
        recordings = [r for r in annotations.recordings.values() if r.subset == subset]
        seconds = float(sum(np.nan if r.duration is None else r.duration for r in recordings))
        rows.append(_row(subset, None, recordings, seconds))
        # Each class looks only at the recordings that have it: of hundreds of classes, most recordings have one.
        having: dict[str, list[Recording]] = {label: [] for label in annotations.classes}
        for recording in recordings:
            for label in set(recording.segments.labels.tolist()) & having.keys():
                having[label].append(recording)
        rows += [_row(subset, label, having[label], seconds) for label in annotations.classes if having[label]]
    return rows


def describe(
    annotations: Annotations,
    features: Mapping[str, NDArray[np.float32] | FeatureRows] | None = None,
    sharpness: Mapping[str | None, object] | None = None,
) -> list[Table]:
    """One table per subset for the terminal; with `features` {name: (T, D)} their number, width and length below, and
    with `sharpness` the sharpness of that subset's boundaries."""
    rows = statistics(annotations)
    tables = []
    for subset in dict.fromkeys(row.subset for row in rows):
        table = Table(title=Text(subset or "recordings"), title_justify="left", caption_justify="left")
        table.add_column("class")
        for column in ("recordings", "instances", "p10 s", "p50 s", "p90 s", "time", "overlapping"):
            table.add_column(column, justify="right")
        for row in (row for row in rows if row.subset == subset):
            times = ["-" if np.isnan(seconds) else f"{seconds:.2f}" for seconds in row.durations]
            share = "-" if np.isnan(row.time_share) else f"{row.time_share:.1%}"
            label = Text("all" if row.label is None else row.label, style="bold" if row.label is None else "")
            table.add_row(
                label, str(row.recordings), str(row.instances), *times, share, str(row.overlapping),
                end_section=row.label is None,
            )  # fmt: skip
        total = next(row for row in rows if row.subset == subset and row.label is None)
        captions = [] if np.isnan(total.background_share) else [f"background {total.background_share:.1%}"]
        if features is not None:
            names = [name for name, recording in annotations.recordings.items() if recording.subset == subset]
            captions.append(_features_line([features[name] for name in names if name in features], len(names)))
        lines = ["; ".join(captions), *([str(sharpness[subset])] if sharpness and subset in sharpness else [])]
        table.caption = Text("\n".join(lines))
        tables.append(table)
    return tables


def _row(subset: str | None, label: str | None, recordings: Sequence[Recording], seconds: float) -> Statistics:
    """Of the recordings that have the class; seconds: the recorded time of all recordings of the subset."""
    chosen = [r.segments if label is None else r.segments.filter(labels=label) for r in recordings]
    lengths = np.concatenate([segments.durations for segments in chosen])
    percentiles = np.percentile(lengths, (10, 50, 90)) if len(lengths) else np.full(3, np.nan)
    covered = sum(
        covered_time(segments if recording.duration is None else segments.clip(recording.duration))
        for recording, segments in zip(recordings, chosen, strict=True)
    )
    return Statistics(
        subset=subset,
        label=label,
        recordings=len(recordings),
        instances=len(lengths),
        durations=(float(percentiles[0]), float(percentiles[1]), float(percentiles[2])),
        time_share=covered / seconds if seconds else float("nan"),
        overlapping=sum(overlapping_instances(segments) for segments in chosen),
    )


def covered_time(segments: Segments) -> float:
    """Seconds in which at least one segment runs."""
    ordered = segments[segments.durations > 0].sort("start")
    if not len(ordered):
        return 0.0
    reached = np.maximum.accumulate(ordered.ends)
    before = np.concatenate([ordered.starts[:1], reached[:-1]])
    return float(np.maximum(reached - np.maximum(before, ordered.starts), 0.0).sum())


def overlapping_instances(segments: Segments) -> int:
    """How many segments share time with another one."""
    ordered = segments[segments.durations > 0].sort("start")
    if len(ordered) < 2:
        return 0
    # In order of the starts: one of the earlier ones must reach beyond the start, or the next one begin before the end.
    earlier = np.maximum.accumulate(ordered.ends)[:-1] > ordered.starts[1:]
    later = ordered.starts[1:] < ordered.ends[:-1]
    return int((np.append(False, earlier) | np.append(later, False)).sum())


def _features_line(arrays: Sequence[NDArray[np.float32] | FeatureRows], recordings: int) -> str:
    if not arrays:
        return f"features of 0 of {recordings} recordings"
    widths = ", ".join(str(width) for width in sorted({array.shape[1] for array in arrays}))
    low, middle, high = np.percentile([len(array) for array in arrays], (10, 50, 90))
    lengths = f"lengths p10 {low:.0f}, p50 {middle:.0f}, p90 {high:.0f}"
    return f"features of {len(arrays)} of {recordings} recordings, width {widths}, {lengths}"
