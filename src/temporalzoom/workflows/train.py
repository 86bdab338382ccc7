"""Train a detector: a configuration in, a run folder out."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from temporalzoom import processes
from temporalzoom.config import Config, check_class_names, load_config
from temporalzoom.console import plain_console
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.locks import alone_in
from temporalzoom.training import train as run_training


@dataclass(frozen=True)
class TrainedRun:
    """What a training left behind.

    Attributes:
        checkpoint: the last checkpoint; `Localizer.load(run.checkpoint)` takes it.
        has_test: whether there are recordings to score it on.
        skipped: recordings left out because they have no features (`allow_missing`).
    """

    checkpoint: Path
    has_test: bool
    skipped: tuple[str, ...] = ()


def train(
    config: Config | str | Path,
    out: str | Path = "runs/latest",
    *,
    overrides: Iterable[str] = (),
    resume: bool = False,
    allow_missing: bool = False,
    console: Console | None = None,
    teacher: Path | None = None,
) -> TrainedRun:
    """Train on the data of a configuration and leave everything in a folder.

    Args:
        config: a loaded configuration, a configuration file, or the name of a recipe (`tzoom recipes`).
        out: the folder of the run.
        overrides: settings to change, `section.key=value`; only with a file or a recipe.
        resume: go on from the run's last checkpoint, as if nothing had happened.
        allow_missing: leave out recordings without features instead of refusing to start.
        console: where progress goes; default: standard error.
        teacher: a trained run that a student learns from too, see `temporalzoom.workflows.distill`.

    Started by torchrun in several processes, these train together: each takes its part of every batch, the first one
    writes. An error ends all of them, and is raised in one.

    Returns:
        The run; the same configuration, data and thread count give the same weights, bit for bit.

    Example:
        >>> import temporalzoom
        >>> run = temporalzoom.train("zoombench", "runs/first", overrides=["training.steps=50"])  # doctest: +SKIP
    """
    with processes.one_voice():
        return _train(config, Path(out), list(overrides), resume, allow_missing, console, teacher)


def _train(
    config: Config | str | Path,
    out: Path,
    overrides: list[str],
    resume: bool,
    allow_missing: bool,
    console: Console | None,
    teacher: Path | None,
) -> TrainedRun:
    if not processes.leads():
        console = plain_console(quiet=True)
    if not isinstance(config, Config):
        config = load_config(config, overrides)
    elif overrides:
        raise InputError("overrides: change a file or a recipe; of a loaded configuration use config.changed")
    with processes.connected(config.device):  # before the data are read: then one that cannot ends all at once
        return _train_here(config, out, resume, allow_missing, console, teacher)


def _train_here(
    config: Config, out: Path, resume: bool, allow_missing: bool, console: Console | None, teacher: Path | None
) -> TrainedRun:
    data = load_data(config.data, config.seed, allow_missing=allow_missing, console=console)
    if data.train is None:
        raise InputError(f"data.train_subset: no recording of {config.data.train_subset!r} is left to train on")
    if config.inference.video_scores is None:  # now, not when the model is loaded
        check_class_names(config.inference.per_class, data.train.classes)
    with alone_in(out) if processes.leads() else nullcontext():
        checkpoint = run_training(config, data.train, out, resume=resume, console=console, teacher=teacher)
    return TrainedRun(checkpoint, data.test is not None, data.skipped)
