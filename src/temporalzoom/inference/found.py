"""What was found in a recording, before anything of it is selected, and what a user should know about it."""

from __future__ import annotations

from typing import NamedTuple

from temporalzoom.inference.selection import Selection
from temporalzoom.segments import Segments


class Found(NamedTuple):
    """Everything that was found in a recording, highest score first; how many seconds the recording lasts; notes on how
    its file was read; cut: the highest score that a limit left out (`inference.max_segments`, `inference.candidates`),
    -inf if none did."""

    segments: Segments
    duration: float
    notes: tuple[str, ...] = ()
    cut: float = float("-inf")

    def notes_on(self, wanted: Selection) -> tuple[str, ...]:
        """The notes, with a word on limits where something that is wanted may be missing for them."""
        lowest = wanted.lowest_threshold
        return self.notes if self.cut < lowest or self.cut <= 0 else (*self.notes, cut_note(self.cut))


def cut_note(score: float) -> str:
    return (
        f"more was found than inference.max_segments and inference.candidates allow: what is left out has scores up to "
        f"{score:.3g}."
    )
