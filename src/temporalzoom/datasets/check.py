"""Do the annotations and the features fit each other? Every problem of every recording, listed at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from temporalzoom.errors import InputError
from temporalzoom.formats.annotations import Annotations, Recording
from temporalzoom.progress import track
from temporalzoom.signals.feature_rows import FeatureRows, in_pieces
from temporalzoom.signals.feature_store import FeatureStore
from temporalzoom.signals.sidecars import Sidecar, disagreement
from temporalzoom.timegrid import TimeGrid

Features = NDArray[np.float32] | FeatureRows
MISSING = "missing features"
LARGEST = 1e15  # of a feature: the squares of a recording's features still have a sum in float32
RATE_TOLERANCE = 0.05  # by which the time of a position may differ: sensors drift, but 25 is not 30


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one recording."""

    video: str
    kind: str
    detail: str


class DataProblems(InputError):
    """The data check failed; `problems` holds all that it found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        videos = len({problem.video for problem in self.problems})
        super().__init__(
            f"data check: {_counts(self.problems)}, in {videos} recording{'s' if videos > 1 else ''}; "
            f"the first: {first.video}: {first.kind}: {first.detail}"
        )


def check_data(
    annotations: Annotations,
    store: FeatureStore,
    grid_for: Callable[[Recording], TimeGrid],
    *,
    classes: Sequence[str] | None = None,
    input_width: int | None = None,
    tolerance: float = 0.03,
    keep: Callable[[str, Features], None] | None = None,
    console: Console | None = None,
) -> list[Problem]:
    """All problems, in the order of the recordings. One feature file is in memory at a time.

    classes: labels outside of them are problems. input_width: the D that the model takes; by default the most
    common one. tolerance: share of the duration by which the features may be too short or too long; 3 % lets no
    two common frame rates (24 and 25, 25 and 30) pass for each other. keep: receives each array (T, D) read.
    console: where a progress bar goes.
    """
    problems: dict[str, list[Problem]] = {name: [] for name in annotations.recordings}
    widths: dict[str, int] = {}
    for name, recording in track(annotations.recordings.items(), "reading", console):
        try:
            grid = grid_for(recording)
        except ValueError as error:
            grid = None
            problems[name].append(Problem(name, "time grid", str(error)))
        features = None
        try:
            features = store.read(name)
        except InputError as error:
            problems[name].append(Problem(name, "unreadable", str(error)))
        else:
            if features is None:
                problems[name].append(Problem(name, MISSING, store.absence.replace("{}", name)))
            else:
                widths[name] = features.shape[1]
                if keep is not None:
                    keep(name, features)
        try:
            problems[name] += check_recording(recording, features, grid, classes=classes, tolerance=tolerance)
        except InputError as error:  # they changed since they were opened
            problems[name].append(Problem(name, "unreadable", str(error)))
    usual = input_width if input_width is not None else next(iter(Counter(widths.values()).most_common(1)), (0,))[0]
    origin = "the model takes" if input_width is not None else "most recordings have"
    for name, width in widths.items():
        if width != usual:
            problems[name].append(Problem(name, "width", f"features are {width} wide, {origin} {usual}"))
    return [problem for listed in problems.values() for problem in listed]


def load_and_check(
    annotations: Annotations,
    store: FeatureStore,
    grid_for: Callable[[Recording], TimeGrid],
    *,
    classes: Sequence[str] | None = None,
    input_width: int | None = None,
    tolerance: float = 0.03,
    console: Console | None = None,
) -> tuple[dict[str, Features], list[Problem]]:
    """`check_data`, and the features (T, D) of every recording whose file could be read."""
    features: dict[str, Features] = {}
    problems = check_data(
        annotations,
        store,
        grid_for,
        classes=classes,
        input_width=input_width,
        tolerance=tolerance,
        keep=features.__setitem__,
        console=console,
    )
    return features, problems


def check_recording(
    recording: Recording,
    features: Features | None,
    grid: TimeGrid | None,
    *,
    classes: Sequence[str] | None = None,
    tolerance: float = 0.03,
) -> list[Problem]:
    """Problems of one recording. `features` (T, D) and `grid` may be None: what needs them is not checked."""

    def found() -> Iterator[tuple[str, str]]:
        duration = recording.duration
        if duration is not None and duration <= 0:
            yield "empty video", f"the annotations say {duration:g} s"
            duration = None
        if features is not None:
            if len(features) == 0:
                yield "empty video", "no feature rows"
            elif grid is not None and duration is not None:
                yield from _length(len(features), grid, duration, tolerance)
            yield from _not_finite(features)
            if duration is None and grid is not None and len(features):
                duration = grid.duration(len(features))
        yield from _segments(recording, duration, grid, classes)

    return [Problem(recording.name, kind, detail) for kind, detail in found()]


def check_origins(features: Mapping[str, Features], sidecar_of: Callable[[str], Sidecar | None]) -> list[Problem]:
    """Were all features, (T, D) by recording, made in the same way, and as the files beside them say?"""
    problems: list[Problem] = []
    first: Sidecar | None = None
    for name, array in features.items():
        try:
            sidecar = sidecar_of(name)
        except InputError:
            continue  # without it there is no time grid, which is a problem already
        if sidecar is None:
            continue
        first = first or sidecar
        difference = disagreement(sidecar, first)
        if difference is not None:
            problems.append(Problem(name, "made differently", difference))
        if sidecar.length not in (None, len(array)):
            detail = f"{sidecar.file}: describes {sidecar.length} positions, the features have {len(array)}"
            problems.append(Problem(name, "other features", detail))
    return problems


def check_rates(annotations: Annotations, grid_for: Callable[[Recording], TimeGrid]) -> list[Problem]:
    """Does a position last equally long in all recordings? A network counts in positions: what lasts a second must not
    be five of them here and six there."""
    steps: dict[str, float] = {}
    for name, recording in annotations.recordings.items():
        try:
            steps[name] = grid_for(recording).step_seconds
        except ValueError:
            continue  # no time grid, which is a problem already
    return rate_problems(steps)


def rate_problems(steps: Mapping[str, float]) -> list[Problem]:
    """steps: seconds that a position lasts, by recording."""
    usual = float(np.median(list(steps.values()))) if steps else 0.0
    detail = "a position lasts {:.4g} s, in most recordings {:.4g} s: bring them to one rate (tzoom extract --fps)"
    off = {name: step for name, step in steps.items() if abs(step / usual - 1) > RATE_TOLERANCE}
    return [Problem(name, "other rate", detail.format(step, usual)) for name, step in off.items()]


def raise_on_problems(problems: Sequence[Problem], allow_missing: bool = False) -> set[str]:
    """Raise DataProblems if there are any. With `allow_missing`, recordings without features are returned instead."""
    fatal = [problem for problem in problems if not (allow_missing and problem.kind == MISSING)]
    if fatal:
        raise DataProblems(fatal)
    return {problem.video for problem in problems}


def problem_table(problems: Sequence[Problem], limit: int = 50) -> Table:
    """The first `limit` problems for the terminal, with the number of each kind below."""
    table = Table(title="Data check", title_justify="left", caption_justify="left")
    for column in ("recording", "problem", "detail"):
        table.add_column(column, overflow="fold")
    for problem in problems[:limit]:
        # Text, because rich would take square brackets in a name for markup.
        table.add_row(Text(problem.video), Text(problem.kind), Text(problem.detail))
    more = f"{len(problems) - limit} more not shown; " if len(problems) > limit else ""
    table.caption = Text(more + (_counts(problems) if problems else "no problems"))
    return table


def _length(length: int, grid: TimeGrid, duration: float, tolerance: float) -> Iterator[tuple[str, str]]:
    # Extractors differ in whether they pad the last window, or one at each end: up to a window and two positions.
    frames, covered = duration * grid.fps, grid.duration(length) * grid.fps
    if abs(covered - frames) <= max(2 * grid.stride + grid.window, tolerance * frames):
        return
    fps = f"fps {covered / duration:.4g}"
    stride = (frames - grid.window) / (length - 1) if length > 1 else 0.0
    fits = f"stride {stride:.4g} or {fps}" if stride > 0 else fps
    is_raw = abs(length / frames - 1) <= tolerance and grid.stride > 1
    hint = "; there is one row per frame: for a raw signal set data.raw to true" if is_raw else ""
    yield (
        "length",
        f"{length} features are {covered / grid.fps:.2f} s (stride {grid.stride:g}, window {grid.window:g}, "
        f"fps {grid.fps:g}), the annotations say {duration:.2f} s: {fits} would fit{hint}",
    )


def _not_finite(features: Features) -> Iterator[tuple[str, str]]:
    values, positions, first, passed, largest = 0, 0, 0, 0, 0.0
    for piece in in_pieces(features):
        bad = ~np.isfinite(piece)
        rows = np.flatnonzero(bad.any(axis=1))
        if len(rows) and not positions:
            first = passed + int(rows[0])
        values, positions, passed = values + int(bad.sum()), positions + len(rows), passed + len(piece)
        if piece.size:
            largest = max(largest, float(piece.max()), -float(piece.min()))
    if values:
        yield "NaN or Inf", f"{values} of {features.size} values, in {positions} positions, the first {first}"
    elif largest > LARGEST:
        yield "too large", f"a value has the size {largest:.3g}, the largest may have {LARGEST:g}"


def _segments(
    recording: Recording, duration: float | None, grid: TimeGrid | None, classes: Sequence[str] | None
) -> Iterator[tuple[str, str]]:
    # Annotators round their times: a tenth of a second, or one position, over the end is no mistake.
    slack = max(0.1, grid.step_seconds if grid is not None else 0.0)
    limit = np.inf if duration is None else duration
    for start, end, label, _ in recording.segments:
        instance = f"{label!r} from {start:g} to {end:g} s"
        if end <= start:
            yield "end <= start", instance
        if min(start, end) < -slack or max(start, end) > limit + slack:
            yield "outside the video", instance + (f", which is {duration:g} s long" if duration is not None else "")
    if classes is not None:
        unknown = Counter(label for _, _, label, _ in recording.segments if label not in classes)
        for label, count in unknown.items():
            yield "unknown label", f"{label!r} ({count} instance{'s' if count > 1 else ''}) is none of the classes"


def _counts(problems: Sequence[Problem]) -> str:
    return ", ".join(f"{count} x {kind}" for kind, count in Counter(p.kind for p in problems).most_common())
