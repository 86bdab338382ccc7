"""One member of a sweep, in a process of its own: train (or go on training), evaluate, write the result.

    python -m temporalzoom.workflows.sweep_member FOLDER

The folder holds config.yaml and member.json, written by the runner. It becomes an ordinary run folder, with
predictions.json and, last of all, result.json beside the checkpoints.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, load_config
from temporalzoom.console import plain_console
from temporalzoom.datasets.samples import Split
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.formats import write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.interrupts import exit_code, interruptible
from temporalzoom.json_tree import nan_to_null, parse_json
from temporalzoom.locks import alone_in
from temporalzoom.metrics.cost import FlopCount, count_parameters, count_run
from temporalzoom.runs.checkpoint import list_checkpoints
from temporalzoom.runs.description import ModelDescription
from temporalzoom.training import TrainingInterrupted, train
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.training.validation import Score
from temporalzoom.workflows.evaluate import evaluate_split, sample_outputs
from temporalzoom.workflows.sweep import CONFIG, PREDICTIONS, RESULT, SETTINGS
from temporalzoom.workflows.validation_data import validation_split

VALIDATION_TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def run_member(folder: Path, console: Console | None = None) -> dict[str, Any]:
    """Returns what `result.json` holds."""
    config = load_config(folder / CONFIG)
    settings = parse_json((folder / SETTINGS).read_text(encoding="utf-8"))
    torch.set_num_threads(settings["threads"])
    train_split, test = _subsets(config)
    validate = held_out_score(test) if settings.get("validate") else None
    curve = held_out_score(validation_split(config, train_split)) if settings.get("curve") else None
    resume = bool(list_checkpoints(folder))
    train(config, train_split, folder, resume=resume, console=console, validate=validate, curve=curve)
    localizer = Localizer.load(folder)
    evaluation = evaluate_split(localizer, test, settings["thresholds"], console)
    flops = localization_flops(localizer, test)
    result = {
        "name": settings["name"],
        **evaluation.summary(),
        "training_seconds": training_seconds(read_metrics(folder / "metrics.jsonl")),
        "steps": config.training.steps,
        "parameters": count_parameters(localizer.model),
        "flops": flops.total,
        "flops_by_part": flops.parts,
        "test_recordings": len(test.samples),
        "thresholds": settings["thresholds"],
        "threads": settings["threads"],
        "versions": {"temporalzoom": metadata.version("temporalzoom"), "torch": torch.__version__},
    }
    write_segments(folder / PREDICTIONS, evaluation.predictions)
    with replacing(folder / RESULT) as file:  # last: where it is, the member is done
        json.dump(nan_to_null(result), file, indent=1, allow_nan=False)
    return result


def held_out_score(split: Split) -> Score:
    """Average mAP on recordings that are not trained on, for the choice of the best state of a training."""

    quiet = plain_console(quiet=True)

    def score(network: nn.Module, description: ModelDescription) -> float:
        localizer = Localizer(network, description)
        return evaluate_split(localizer, split, VALIDATION_TIOUS, quiet).detection.average

    return score


def localization_flops(localizer: Localizer, split: Split) -> FlopCount:
    """What the network executes on whole recordings, one after the other."""

    def run() -> None:
        for sample in split.samples:
            sample_outputs(localizer, sample)

    return count_run(localizer.model, run)


def training_seconds(lines: Sequence[Mapping[str, float]]) -> float:
    """Time spent on the logged steps. The clock of a run begins anew each time that it is resumed, so it is summed
    over the stretches in which it only rises."""
    seconds = [line["seconds"] for line in lines]
    ends = [now for now, after in zip(seconds, [*seconds, -1.0][1:], strict=True) if after < now]
    return round(sum(ends), 3)


def _subsets(config: Config) -> tuple[Split, Split]:
    data = load_data(config.data, config.seed)
    if data.train is None:
        raise InputError(f"data.train_subset: no recording of {config.data.train_subset!r} is left to train on")
    if data.test is None:
        raise InputError(f"data.test_subset: no recording of {config.data.test_subset!r} is left to score")
    return data.train, data.test


def _stop_with(runner: int) -> None:
    """A runner that is killed cannot tell its members to stop: they see that they have another parent."""
    while os.getppid() == runner:
        time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)


def main() -> int:
    folder = Path(sys.argv[1])
    threading.Thread(target=_stop_with, args=(os.getppid(),), daemon=True).start()
    try:
        # At once: only training has something to save, and waits for the end of its step itself.
        # And alone: a member whose runner was killed may still be saving.
        with interruptible(at_once=True), alone_in(folder, wait=True):
            run_member(folder, plain_console(stderr=True, soft_wrap=True))  # the runner quotes whole lines of the log
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except TrainingInterrupted as stop:
        print(stop, file=sys.stderr)
        return exit_code()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return exit_code()
    return 0


if __name__ == "__main__":
    sys.exit(main())
