"""Recordings and their action instances: what annotation files are read into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments

AMBIGUOUS = "Ambiguous"  # the THUMOS14 name for spans that count neither for nor against a detector


@dataclass(frozen=True)
class Recording:
    """One recording and its action instances. `extra` holds the keys of the file that have no meaning here."""

    name: str
    subset: str | None = None
    duration: float | None = None
    fps: float | None = None
    segments: Segments = field(default_factory=Segments.empty)
    ambiguous: Segments = field(default_factory=Segments.empty)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Annotations:
    """Recordings by name, and the classes in the order of their indices.

    declared: the classes are the file's own list, not what was gathered from the labels. notes: what a user should know
    about how they were read, one sentence each.
    """

    recordings: dict[str, Recording]
    classes: tuple[str, ...]
    extra: Mapping[str, Any] = field(default_factory=dict)
    declared: bool = field(default=False, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def subset(self, name: str) -> Annotations:
        """The recordings of one subset, upper and lower case alike. All classes stay, so that indices do not move."""
        chosen = {k: r for k, r in self.recordings.items() if (r.subset or "").casefold() == name.casefold()}
        if not chosen or not name:
            present = sorted({r.subset for r in self.recordings.values() if r.subset})
            raise InputError(f"no subset {name!r} in the annotations; present: {', '.join(present) or 'none'}")
        return replace(self, recordings=chosen)

    def truth(self) -> dict[str, Segments]:
        return {name: recording.segments for name, recording in self.recordings.items()}

    def ambiguous(self) -> dict[str, Segments]:
        return {name: recording.ambiguous for name, recording in self.recordings.items()}
