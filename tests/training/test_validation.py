"""Validation in training: the best state is kept, overfitting ends it, and interruptions change nothing."""

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from temporalzoom.inference.localizer import Localizer
from temporalzoom.runs.checkpoint import BEST, find_checkpoint, list_checkpoints, read_info
from temporalzoom.training import TrainingInterrupted, loop, train
from temporalzoom.training.metrics_log import read_metrics
from temporalzoom.training.validation import TIMES, Validation

QUIET = Console(quiet=True)


def score_by_step(scores):
    """A stand-in for mAP: what the network scores depends on its step, as the test wants it."""
    return lambda network, description: scores(description.step)


def test_how_often_it_is_asked(tmp_path):
    validation = Validation(tmp_path, score_by_step(float), 1000)
    due = [step for step in range(1, 1001) if validation.is_due(step)]
    assert due[0] >= 400 and due[-1] == 1000 and TIMES <= len(due) <= TIMES + 1
    few = Validation(tmp_path, score_by_step(float), 3)
    assert few.is_due(3)


def test_the_best_state_is_what_is_used(tmp_path, tiny_config, tiny_split):
    config = tiny_config("training.steps=12")
    states = {}

    def score(network, description):
        states[description.step] = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        assert not network.training
        return 1.0 - abs(description.step - 10) / 10

    last = train(config, tiny_split, tmp_path / "run", console=QUIET, validate=score)
    best = find_checkpoint(tmp_path / "run")
    assert best == tmp_path / "run" / BEST and read_info(best).step == 10 and read_info(last).step == 12
    stored = load_file(best / "average.safetensors")
    assert all(torch.equal(stored[name], tensor) for name, tensor in states[10].items())
    loaded = Localizer.load(tmp_path / "run").model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in states[10].items())
    curve = {
        line["step"]: line["validation"]
        for line in read_metrics(tmp_path / "run/metrics.jsonl")
        if "validation" in line
    }
    assert curve[10] == 1.0 and len(curve) >= TIMES


def test_it_changes_nothing_in_the_training(tmp_path, tiny_config, tiny_split):
    config = tiny_config("training.steps=6")
    plain = train(config, tiny_split, tmp_path / "plain", console=QUIET)
    validated = train(config, tiny_split, tmp_path / "validated", console=QUIET, validate=score_by_step(float))
    for name in ("weights", "average", "optimizer"):
        assert (plain / f"{name}.safetensors").read_bytes() == (validated / f"{name}.safetensors").read_bytes()


def test_training_ends_where_it_was_long_surpassed(tmp_path, tiny_config, tiny_split):
    config = tiny_config("training.steps=40")
    last = train(config, tiny_split, tmp_path / "run", console=QUIET, validate=score_by_step(lambda step: -step))
    stopped = read_info(last).step
    assert 16 < stopped < 40
    assert read_info(find_checkpoint(tmp_path / "run")).step == 16  # the first that was asked
    again = train(
        config, tiny_split, tmp_path / "run", resume=True, console=QUIET, validate=score_by_step(lambda step: -step)
    )
    assert read_info(again).step == stopped  # it stays ended


@pytest.mark.parametrize("at", [6, 9])
def test_an_interrupted_training_keeps_its_best(tmp_path, tiny_config, tiny_split, monkeypatch, at):
    config = tiny_config("training.steps=12")
    score = score_by_step(lambda step: 1.0 - abs(step - 7) / 10)
    train(config, tiny_split, tmp_path / "whole", console=QUIET, validate=score)
    original = loop.TrainingProgress.update

    class Stop:
        def __init__(self):
            self.now = False

        def is_set(self):
            return self.now

    stop = Stop()

    def update(self, step, terms):
        original(self, step, terms)
        stop.now = step == at

    with monkeypatch.context() as patch:
        from contextlib import contextmanager

        @contextmanager
        def interrupted(grace: float):
            yield stop

        patch.setattr(loop.TrainingProgress, "update", update)
        patch.setattr(loop, "interruptible", interrupted)
        with pytest.raises(TrainingInterrupted):
            train(config, tiny_split, tmp_path / "parts", console=QUIET, validate=score)
    assert read_info(list_checkpoints(tmp_path / "parts")[-1]).step == at
    train(config, tiny_split, tmp_path / "parts", resume=True, console=QUIET, validate=score)
    for file in ("average.safetensors", "checkpoint.json"):
        whole, parts = (tmp_path / run / BEST / file for run in ("whole", "parts"))
        assert whole.read_bytes() == parts.read_bytes()
