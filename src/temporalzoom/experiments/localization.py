"""`tzoom localize`: files of features or raw signals in, segments out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import track

from temporalzoom.errors import InputError
from temporalzoom.inference.localizer import Localizer
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_files import SUFFIXES, read_features
from temporalzoom.timegrid import TimeGrid


def localize_files(
    paths: Sequence[Path],
    model: Path,
    *,
    budget: float | None = None,
    threshold: float | None = None,
    top: int | None = None,
    stride: float | None = None,
    window: float | None = None,
    fps: float | None = None,
    console: Console | None = None,
) -> dict[str, Segments]:
    """Segments of each file, by the file's name without its suffix. Folders stand for all files in them.

    A file holds what those of the training data held: features, or a raw signal.
    """
    console = console or Console(stderr=True)
    files = _feature_files(paths)
    localizer = Localizer.load(model, budget)
    changes = {
        name: value for name, value in (("stride", stride), ("window", window), ("fps", fps)) if value is not None
    }
    if localizer.framing is not None and changes.keys() - {"fps"}:
        raise InputError(
            f"--{min(changes.keys() - {'fps'})}: the model cuts its own windows from raw signals "
            f"({localizer.framing.window} rows every {localizer.framing.stride})"
        )
    try:
        grid = replace(localizer.grid, **changes)
    except ValueError as error:
        raise InputError(f"--{error}") from None
    results: dict[str, Segments] = {}
    for file in track(files, "localizing", console=console, transient=True, disable=not console.is_terminal):
        try:
            signal = read_features(file)
            # A raw signal goes on after the last whole window.
            rows = grid if localizer.framing is None else TimeGrid(1, 1, grid.fps)
            found = localizer(localizer.prepare(signal), grid=grid, duration=rows.duration(len(signal)), threshold=0.0)
        except InputError as error:
            message = str(error)
            raise InputError(message if message.startswith(str(file)) else f"{file}: {message}") from None
        lowest = localizer.options.threshold if threshold is None else threshold
        results[file.stem] = found.filter(min_score=lowest).top(top or len(found))
        if len(found) and not len(results[file.stem]):
            hint = f"no segment reaches the score {lowest:g}; the highest is {found.scores.max():.3f}"
            console.print(f"{file.stem}: {hint} (--threshold lowers the bar)", highlight=False, soft_wrap=True)
    return results


def _feature_files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
            if not inside:
                raise InputError(f"{path}: no feature file in this folder ({' '.join(SUFFIXES)})")
            files += inside
        elif path.is_file():
            files.append(path)
        else:
            raise InputError(f"{path}: no such file or folder")
    names: dict[str, Path] = {}
    for file in files:
        if file.stem in names:
            raise InputError(f"{file} and {names[file.stem]}: two files for the same recording")
        names[file.stem] = file
    return files
