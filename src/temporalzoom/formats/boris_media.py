"""The recordings behind BORIS's events: which media file an event lies in, and when in that file.

BORIS plays the files of an observation one after another and counts the seconds from the start of the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from temporalzoom.errors import InputError
from temporalzoom.formats.interface import Imported, Instance, durations_by_name, name_of_media

MISSING = ("", "NA", "nan", "None")
LIVE = ("LIVE", "NA", "")
SLIVER = 1e-3  # seconds: BORIS's own resolution; shorter pieces at the border of two files are rounding


class Medium(NamedTuple):
    name: str
    duration: float | None
    fps: float | None


@dataclass(frozen=True)
class Source:
    """What a row says about its observation. playlist: all files in their order with their lengths, where the export
    holds them; else `file` is the one that the event lies in, and `total` the length of all together."""

    observation: str
    file: str | None
    total: float | None
    fps: float | None
    playlist: tuple[Medium, ...] = ()

    @staticmethod
    def of_cells(observation: str, file: str, source: str, lengths: str, total: float | None, fps: str) -> Source:
        """source, lengths, fps of new exports: `player #1:a.mp4;b.mp4|player #2:c.mp4`, `60.000;90.000|60.000`. Further
        players show the same time from another side."""
        files = [name.strip() for name in source.split("|")[0].split(":", 1)[-1].split(";") if name.strip()]
        if not source.lower().startswith("player"):
            files = []
        durations = [_number_or_none(text) for text in lengths.split("|")[0].split(";")]
        rates = [_number_or_none(text) for text in fps.split("|")[0].split(";")]
        rates = rates if len(rates) == len(files) else rates[:1] * max(1, len(files))
        playlist: tuple[Medium, ...] = ()
        if files and len(files) == len(durations) and (len(files) == 1 or None not in durations):
            playlist = tuple(map(Medium, map(name_of_media, files), durations, rates))
        known = file if file not in (*LIVE, "Not found") else (files[0] if len(files) == 1 else None)
        return Source(observation, None if known is None else name_of_media(known), total, rates[0], playlist)


class Event(NamedTuple):
    """instance: on the observation's clock; None for an event that is left out, but shows when its file is played."""

    where: str
    source: Source
    time: float
    instance: Instance | None
    subject: str


def recordings_of_events(events: Sequence[Event], durations: Sequence[str]) -> list[Imported]:
    """One per media file or live observation, in the order of the first events. durations: see `--duration`."""
    _, given = durations_by_name(durations)
    observations: dict[str, list[Event]] = {}
    for event in events:
        observations.setdefault(event.source.observation, []).append(event)
    recordings: dict[str, tuple[str, Imported]] = {}
    for observation, of_it in observations.items():
        playlist = _playlist(observation, of_it, given)
        for medium, recording in zip(playlist, _placed(playlist, of_it), strict=True):
            if medium.name in recordings:
                other = recordings[medium.name][0]
                raise InputError(
                    f"{recording.where}: recording {medium.name!r} was observed twice, in {other!r} and "
                    f"{observation!r}; export one of the two observations"
                )
            recordings[medium.name] = observation, recording
    return [recording for _, recording in recordings.values()]


def _playlist(observation: str, events: Sequence[Event], given: dict[str, float]) -> tuple[Medium, ...]:
    """The files of one observation in the order in which they are played; all but the last with their lengths."""
    source = events[0].source
    if source.playlist:
        return source.playlist
    files: dict[str | None, Event] = {}
    for event in sorted(events, key=lambda event: event.time):
        files.setdefault(event.source.file, event)
    names = [observation if file is None else file for file in files]
    if len(names) == 1:
        return (Medium(names[0], source.total, source.fps),)
    media = []
    for name, (_, later) in zip(names, [*files.items()][1:], strict=False):
        if name not in given:
            raise InputError(
                f"{later.where}: observation {observation!r} plays {name!r} before {later.source.file!r}, so that "
                f"{later.time:g} s in the export are {later.time:g} s minus the length of {name!r}, which the export "
                f"does not hold; say it with --duration {name}=SECONDS"
            )
        media.append(Medium(name, given[name], files[name].source.fps))
    rest = None if source.total is None else source.total - sum(medium.duration or 0 for medium in media)
    last = None if rest is None or rest <= 0 else round(rest, 6)
    return (*media, Medium(names[-1], given.get(names[-1], last), files[names[-1]].source.fps))


def _placed(playlist: Sequence[Medium], events: Sequence[Event]) -> list[Imported]:
    """One recording per file with its part of the instances: one that goes on in the next file is cut in two."""
    borders = [-math.inf, *accumulate(medium.duration or 0.0 for medium in playlist[:-1]), math.inf]
    placed = []
    for medium, first, last in zip(playlist, borders, borders[1:], strict=False):
        inside = [e for e in events if first <= e.time < last or (e.instance and _cut(e.instance, first, last))]
        instances = [cut for e in inside if e.instance is not None and (cut := _cut(e.instance, first, last))]
        subjects = {e.subject for e in inside}
        extra = {"subject": subjects.pop()} if len(subjects) == 1 and "" not in subjects else {}
        where = (inside or events)[0].where
        placed.append(Imported(medium.name, where, instances, None, medium.duration, medium.fps, extra))
    return placed


def _cut(instance: Instance, first: float, last: float) -> Instance | None:
    """The part from `first` to `last`, on the clock of the file that starts at `first`."""
    start, end = max(instance.start, first), min(instance.end, last)
    if end <= start or (end - start < SLIVER and (start, end) != instance[:2]):
        return None
    offset = 0.0 if first == -math.inf else first
    return (
        instance._replace(start=start, end=end)
        if not offset
        else instance._replace(start=round(start - offset, 6), end=round(end - offset, 6))
    )


def _number_or_none(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 1e300 else None
