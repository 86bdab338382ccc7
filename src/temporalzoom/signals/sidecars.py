"""The description beside a feature file: what `tzoom extract` wrote about how NAME.npy was made, in NAME.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from temporalzoom.errors import InputError
from temporalzoom.json_tree import parse_json
from temporalzoom.signals.extraction import ExtractionSettings
from temporalzoom.timegrid import TimeGrid

KEYS = ("backbone", "stride", "window", "fps")  # a JSON without all of these describes something else
# Rates are written as 29.97 and as 30000/1001, which is the same; 30 is not.
FPS_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Sidecar:
    """How the features of one video were made. fps: of the clock that the video was brought onto, `settings.fps` or
    the video's own; duration: of the video, in seconds; length: positions of the features; None where unknown."""

    file: Path
    settings: ExtractionSettings
    fps: float
    duration: float | None = None
    length: int | None = None

    @property
    def grid(self) -> TimeGrid:
        return TimeGrid(self.settings.stride, self.settings.window, self.fps)


def read_sidecar(features: str | Path) -> Sidecar | None:
    """The description of a feature file; None where there is none, or a JSON about something else."""
    file = Path(features).with_suffix(".json")
    if not file.is_file():
        return None
    try:
        described: Any = parse_json(file.read_text(encoding="utf-8"))
        if not isinstance(described, dict) or not set(KEYS) <= described.keys():
            return None
        sidecar = Sidecar(
            file,
            _settings(described | {"fps": described.get("requested_fps")}),
            _number(described["fps"]),
            None if described.get("duration") is None else _number(described["duration"]),
            None if described.get("length") is None else int(_number(described["length"])),
        )
        _ = sidecar.grid  # a stride of zero is refused here
        return sidecar
    except (OSError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{file}: not a description of the features beside it: {reason}") from None


def _settings(described: dict[str, Any]) -> ExtractionSettings:
    """The inverse of `asdict`, for settings that were written as JSON. What is no such thing raises ValueError."""
    stride, window = _number(described["stride"]), _number(described["window"])
    if stride != int(stride) or window != int(window) or min(stride, window) < 1:
        raise ValueError(f"stride and window must be whole numbers of frames, got {stride:g} and {window:g}")
    options = described.get("options") or {}
    if not isinstance(described["backbone"], str) or not isinstance(options, dict):
        raise ValueError(f"backbone must be a name and options a table, got {described['backbone']!r} and {options!r}")
    fps = None if described.get("fps") is None else _number(described["fps"])
    return ExtractionSettings(described["backbone"], int(stride), int(window), fps, options)


def contradictions(sidecar: Sidecar, **wanted: float | None) -> Iterator[tuple[str, float, float]]:
    """`(key, described, wanted)` for each of stride, window and fps that is wanted otherwise; None wants nothing."""
    for key, value in wanted.items():
        described = float(getattr(sidecar.grid, key))
        tolerance = FPS_TOLERANCE * described if key == "fps" else 0.0
        if value is not None and not abs(value - described) <= tolerance:
            yield key, described, value


def disagreement(one: Sidecar, other: Sidecar) -> str | None:
    """How features of one data set were made differently: in words, None where they were not.

    Rates may differ, as those of videos do.
    """
    ours, theirs = asdict(one.settings), asdict(other.settings)
    for key in ("backbone", "options", "stride", "window"):
        if ours[key] != theirs[key]:
            return f"{one.file}: {key} is {json.dumps(ours[key])}, that of {other.file} is {json.dumps(theirs[key])}"
    return None


def common_settings(sidecars: Sequence[Sidecar | None]) -> ExtractionSettings | None:
    """How all these features were made; None where that is unknown of one of them, or differs.

    Where some were brought to a rate that others have by themselves, it counts as asked for.
    """
    known = [sidecar for sidecar in sidecars if sidecar is not None]
    if not known or len(known) < len(sidecars) or any(disagreement(sidecar, known[0]) for sidecar in known):
        return None
    first = known[0]
    if all(sidecar.settings.fps == first.settings.fps for sidecar in known):
        return first.settings
    same = not any(list(contradictions(sidecar, fps=first.fps)) for sidecar in known)
    return replace(first.settings, fps=first.fps if same else None)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a number is expected, got {value!r}")
    if not abs(value) < 1e15:  # NaN included
        raise ValueError(f"a finite number is expected, got {value!r}")
    return float(value)
