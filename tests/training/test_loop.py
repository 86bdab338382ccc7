"""The training loop: reproducible, interruptible, and resumed as if nothing had happened."""

import copy
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from temporalzoom.config import TrainingConfig, load_config
from temporalzoom.datasets.samples import Split
from temporalzoom.errors import InputError
from temporalzoom.runs.checkpoint import checkpoint_folder, find_checkpoint, list_checkpoints, read_info
from temporalzoom.runs.network import model_from_config
from temporalzoom.segments import Segments
from temporalzoom.timegrid import TimeGrid
from temporalzoom.training import TrainingInterrupted, loop, train
from temporalzoom.training.metrics_log import MetricsLog, read_metrics
from temporalzoom.training.objective import objective
from temporalzoom.training.optimizer import build_optimizer, learning_rate, update_average
from temporalzoom.training.progress import TrainingProgress

QUIET = Console(quiet=True)
STOCHASTIC = ("model.dropout=0.3", "training.accumulate=2")


def run_training(config, split, run, **options):
    return train(config, split, run, console=QUIET, **options)


def after_step(monkeypatch, step, action):
    """Call `action` right after training step number `step`, before the loop looks for interruptions."""
    original = TrainingProgress.update

    def update(self, current, terms):
        original(self, current, terms)
        if current == step:
            action()

    monkeypatch.setattr(TrainingProgress, "update", update)


def tensor_bytes(checkpoint):
    return {file.name: file.read_bytes() for file in checkpoint.glob("*.safetensors")}


def numbers(run):
    """The metrics without the one column that no two runs share."""
    return [{k: v for k, v in line.items() if k != "seconds"} for line in read_metrics(run / "metrics.jsonl")]


def assert_same_run(first, second):
    assert tensor_bytes(find_checkpoint(first)) == tensor_bytes(find_checkpoint(second))
    assert numbers(first) == numbers(second)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, tiny_config, tiny_split):
    """A run of nine steps with dropout and accumulation."""
    run = tmp_path_factory.mktemp("uninterrupted")
    run_training(tiny_config(*STOCHASTIC), tiny_split, run)
    return run


def test_what_a_run_leaves_behind(uninterrupted, tiny_config, tiny_split):
    config = tiny_config(*STOCHASTIC)
    assert find_checkpoint(uninterrupted) == checkpoint_folder(uninterrupted, 9)
    assert load_config(uninterrupted / "config.yaml") == config
    info = read_info(find_checkpoint(uninterrupted))
    assert (info.step, info.config, info.classes, info.input_width) == (9, config, tiny_split.classes, 8)
    assert info.grid == tiny_split.samples[0].grid
    lines = read_metrics(uninterrupted / "metrics.jsonl")
    assert [line["step"] for line in lines] == list(range(1, 10))
    for line in lines:
        parts = ("class", "l1", "giou", "box_variance", "distance", "distance_variance")
        assert line["loss"] == pytest.approx(sum(line[part] for part in parts), rel=1e-4)
        assert line["learning_rate"] == learning_rate(line["step"] - 1, config.training)
        assert line["gradient_norm"] > 0 and line["seconds"] >= 0


def test_the_same_run_twice_gives_the_same_bytes(tmp_path, uninterrupted, tiny_config, tiny_split):
    torch.manual_seed(12345)  # whatever happened before makes no difference
    run_training(tiny_config(*STOCHASTIC), tiny_split, tmp_path / "run")
    assert_same_run(tmp_path / "run", uninterrupted)


def test_another_seed_gives_another_run(tmp_path, uninterrupted, tiny_config, tiny_split):
    run_training(tiny_config(*STOCHASTIC, "seed=1"), tiny_split, tmp_path)
    assert numbers(tmp_path)[0]["loss"] != numbers(uninterrupted)[0]["loss"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stops", [(1,), (4, 6), (9,)])
def test_interrupted_and_resumed_equals_uninterrupted(
    tmp_path, monkeypatch, uninterrupted, tiny_config, tiny_split, number, stops
):
    config = tiny_config(*STOCHASTIC)
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    for index, step in enumerate(stops):
        with monkeypatch.context() as patch:
            after_step(patch, step, lambda: signal.raise_signal(number))
            with pytest.raises(TrainingInterrupted) as stop:
                run_training(config, tiny_split, tmp_path, resume=index > 0)
        assert stop.value.step == step and stop.value.checkpoint == checkpoint_folder(tmp_path, step)
        assert list_checkpoints(tmp_path)[-1] == stop.value.checkpoint
        assert read_info(stop.value.checkpoint).step == step
        assert str(stop.value.checkpoint) in str(stop.value)
        assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert run_training(config, tiny_split, tmp_path, resume=True) == checkpoint_folder(tmp_path, 9)
    assert_same_run(tmp_path, uninterrupted)


@pytest.mark.parametrize("crash_at", [5, 8])
def test_a_killed_run_goes_on_from_its_last_checkpoint(
    tmp_path, monkeypatch, uninterrupted, tiny_config, tiny_split, crash_at
):
    """No chance to save: steps after the checkpoint, and their lines in the log, are done again."""

    class Killed(Exception):
        pass

    def kill():
        with open(tmp_path / "metrics.jsonl", "a") as file:
            file.write('{"step": 7, "lo')
        raise Killed

    config = tiny_config(*STOCHASTIC, "training.checkpoint_every=3")
    with monkeypatch.context() as patch:
        after_step(patch, crash_at, kill)
        with pytest.raises(Killed):
            run_training(config, tiny_split, tmp_path)
    assert read_info(find_checkpoint(tmp_path)).step == crash_at // 3 * 3
    run_training(config, tiny_split, tmp_path, resume=True)
    assert_same_run(tmp_path, uninterrupted)


def test_a_second_interruption_stops_at_once(tmp_path, monkeypatch, tiny_config, tiny_split):
    after_step(monkeypatch, 3, lambda: [signal.raise_signal(signal.SIGINT) for _ in range(2)])
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_training(tiny_config(), tiny_split, tmp_path)
    assert signal.getsignal(signal.SIGINT) == before
    assert list_checkpoints(tmp_path) == []


def test_an_interruption_cannot_spoil_the_last_checkpoint(
    tmp_path, monkeypatch, uninterrupted, tiny_config, tiny_split
):
    original = loop.save_checkpoint

    def interrupted_save(*arguments):
        signal.raise_signal(signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(loop, "save_checkpoint", interrupted_save)
    run_training(tiny_config(*STOCHASTIC), tiny_split, tmp_path)
    assert_same_run(tmp_path, uninterrupted)


def test_training_works_outside_the_main_thread(tmp_path, uninterrupted, tiny_config, tiny_split):
    thread = threading.Thread(target=run_training, args=(tiny_config(*STOCHASTIC), tiny_split, tmp_path))
    thread.start()
    thread.join()
    assert_same_run(tmp_path, uninterrupted)


def test_an_accumulated_step_is_the_mean_of_its_batches(tmp_path, monkeypatch, tiny_config, tiny_split):
    config = tiny_config("training.accumulate=3", "training.steps=2")
    made = {}
    original = loop.training_batch

    def noted(split, seed, step, *rest):
        made[step] = original(split, seed, step, *rest)
        return made[step]

    monkeypatch.setattr(loop, "training_batch", noted)
    run_training(config, tiny_split, tmp_path)
    assert list(made) == [0, 1, 2, 3, 4, 5]

    torch.manual_seed(config.seed)
    model = model_from_config(config, 8, 2, TimeGrid(4, 8, 30)).train()
    losses = []
    for step in range(3):
        batch = made[step]
        losses.append(sum(objective(model(batch.features, batch.mask), batch, config).values()))
    mean = torch.stack(losses).mean()
    mean.backward()
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    first = numbers(tmp_path)[0]
    assert first["loss"] == pytest.approx(mean.item(), rel=1e-5)
    assert first["gradient_norm"] == pytest.approx(norm.item(), rel=1e-4)


def test_the_callers_denormal_numbers_stay(tmp_path, tiny_config, tiny_split):
    run_training(tiny_config("training.steps=1"), tiny_split, tmp_path)
    assert np.float64(5e-324) * 1.0 > 0


def test_resuming_a_finished_run_changes_nothing(tmp_path, uninterrupted, tiny_config, tiny_split):
    run = tmp_path / "copy"
    shutil.copytree(uninterrupted, run)
    assert run_training(tiny_config(*STOCHASTIC), tiny_split, run, resume=True) == checkpoint_folder(run, 9)
    assert_same_run(run, uninterrupted)


def test_checkpoints_on_the_way(tmp_path, tiny_config, tiny_split):
    config = tiny_config("training.checkpoint_every=2", "training.keep_checkpoints=3")
    run_training(config, tiny_split, tmp_path)
    assert [read_info(c).step for c in list_checkpoints(tmp_path)] == [6, 8, 9]


def test_an_existing_run_is_not_overwritten(uninterrupted, tiny_config, tiny_split):
    before = tensor_bytes(find_checkpoint(uninterrupted))
    with pytest.raises(InputError, match="--resume") as error:
        run_training(tiny_config(), tiny_split, uninterrupted)
    assert str(uninterrupted) in str(error.value)
    assert tensor_bytes(find_checkpoint(uninterrupted)) == before


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("training.learning_rate=0.5", "training.learning_rate was 0.003, now 0.5"),
        ("seed=3", "seed was 0, now 3"),
        ("data.length=90", "data.length was 80, now 90"),
        ("bdr.radius=null", "bdr.radius was 8.0, now None"),
        ("model.name=tzn", "model.name was 'uniform-1', now 'tzn'"),
        ("model.width=32", "model.width was 16, now 32"),
    ],
)
def test_a_run_is_not_resumed_with_another_configuration(uninterrupted, tiny_config, tiny_split, override, words):
    with pytest.raises(InputError, match=words):
        run_training(tiny_config(*STOCHASTIC, override), tiny_split, uninterrupted, resume=True)


def test_nothing_to_resume(tmp_path, tiny_config, tiny_split):
    for run in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="nothing to resume") as error:
            run_training(tiny_config(), tiny_split, run, resume=True)
        assert str(run) in str(error.value)


def test_a_run_folder_that_cannot_be_made(tmp_path, tiny_config, tiny_split):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file"):
        run_training(tiny_config(), tiny_split, tmp_path / "file")
    with pytest.raises(InputError, match="file"):
        run_training(tiny_config(), tiny_split, tmp_path / "file" / "run")


def test_a_model_that_cannot_be_built_leaves_no_folder(tmp_path, tiny_config, tiny_split):
    for override, words in (("model.name=uniform-0x", "uniform-0x"), ("model.heads=3", "model.heads 3")):
        with pytest.raises(InputError, match=words):
            run_training(tiny_config(override), tiny_split, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_divergence_is_told_and_earlier_checkpoints_stay(tmp_path, tiny_config, tiny_split):
    config = tiny_config("training.learning_rate=1e18", "training.warmup_steps=0", "training.checkpoint_every=1")
    with pytest.raises(InputError, match=r"diverged at step \d+ .*training.learning_rate") as error:
        run_training(config, tiny_split, tmp_path)
    assert "\n" not in str(error.value)
    step = int(str(error.value).split("at step ")[1].split()[0])
    assert read_info(find_checkpoint(tmp_path)).step == step - 1


def test_features_that_are_not_numbers_are_told(tmp_path, tiny_config, tiny_split):
    samples = tuple(replace(s, signal=np.full_like(s.features, np.nan)) for s in tiny_split.samples)
    with pytest.raises(InputError, match="train_0000: features hold the value nan"):
        run_training(tiny_config(), Split(samples, tiny_split.classes), tmp_path)


@pytest.mark.parametrize(
    "overrides",
    [
        ("bdr.enabled=false",),
        ("bdr.channels=joint",),
        ("bdr.radius=null",),
        ("bdr.smoothing=1",),
        ("model.window=null",),
        ("training.precision=bfloat16",),
        ("training.precision=bfloat16", "model.window=null"),
        ("training.precision=bfloat16", "model.name=tzn", "model.head=convolution", "model.levels=2"),
        ("training.precision=bfloat16", "model.name=tzn", "model.paper.combine=features"),
        ("training.precision=bfloat16", "model.name=tzn", "model.paper.combine=layers"),
        ("training.assignment=both",),
        ("training.length=1", "training.batch_size=1"),
        ("training.warmup_steps=0", "training.steps=1"),
        ("training.warmup_steps=100",),
        ("training.ema_decay=0",),
    ],
)
def test_settings_train(tmp_path, tiny_config, tiny_split, overrides):
    run_training(tiny_config("training.steps=3", *overrides), tiny_split, tmp_path)
    assert all(math.isfinite(value) for line in numbers(tmp_path) for value in line.values())


def test_recordings_without_instances_train(tmp_path, tiny_config, tiny_split):
    samples = tuple(replace(s, segments=Segments.empty()) for s in tiny_split.samples)
    run_training(tiny_config("training.steps=3"), Split(samples, tiny_split.classes), tmp_path)
    assert all(line["giou"] == 0 for line in numbers(tmp_path))


def test_training_reduces_the_loss(tmp_path, tiny_config, tiny_split):
    run_training(tiny_config("training.steps=80"), tiny_split, tmp_path)
    losses = [line["class"] + line["l1"] + line["giou"] for line in numbers(tmp_path)]
    assert np.mean(losses[-10:]) < 0.75 * np.mean(losses[:10])


def test_tensorboard_gets_the_same_numbers(uninterrupted):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert list((uninterrupted / "tensorboard").glob("events.out.tfevents.*"))
    events = accumulator.EventAccumulator(str(uninterrupted / "tensorboard")).Reload()
    scalars = [(event.step, event.value) for event in events.Scalars("loss")]
    assert scalars == [(line["step"], pytest.approx(line["loss"])) for line in numbers(uninterrupted)]


def test_metrics_of_a_resumed_run_drop_what_comes_after_its_checkpoint(tmp_path):
    log = MetricsLog(tmp_path)
    for step in (2, 4, 6):
        log.write(step, {"loss": float(step)})
    log.close()
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write('{"step": 8, "lo')
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [2, 4, 6]
    MetricsLog(tmp_path, from_step=4).close()
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 2, "loss": 2.0}\n{"step": 4, "loss": 4.0}\n'
    MetricsLog(tmp_path).close()
    assert read_metrics(tmp_path / "metrics.jsonl") == [] == read_metrics(tmp_path / "nothing.jsonl")


def test_learning_rate_is_a_ramp_and_half_a_cosine():
    options = TrainingConfig(steps=110, warmup_steps=10, learning_rate=2.0)
    assert [learning_rate(step, options) for step in range(10)] == pytest.approx([0.2 * (s + 1) for s in range(10)])
    assert learning_rate(10, options) == 2.0
    assert learning_rate(60, options) == pytest.approx(1.0)
    assert learning_rate(85, options) == pytest.approx(1 + math.cos(0.75 * math.pi))
    assert learning_rate(110, options) == pytest.approx(0.0, abs=1e-12)
    rates = [learning_rate(step, options) for step in range(10, 111)]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(("steps", "warmup"), [(1, 0), (5, 5), (3, 10), (10, 0)])
def test_learning_rate_at_odd_settings(steps, warmup):
    options = TrainingConfig(steps=steps, warmup_steps=warmup, learning_rate=1.0)
    assert all(0 < learning_rate(step, options) <= 1 for step in range(steps))


def test_average_is_a_recursion_that_starts_fast():
    model = nn.Linear(1, 1, bias=False)
    average = copy.deepcopy(model)
    expected = model.weight.item()
    for step in range(300):
        value = math.sin(step)
        nn.init.constant_(model.weight, value)
        update_average(average, model, step, 0.9)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
        assert average.weight.item() == pytest.approx(expected, abs=1e-5)
    nn.init.constant_(model.weight, 2.5)
    for step in range(300, 500):
        update_average(average, model, step, 0.9)
    assert average.weight.item() == pytest.approx(2.5, abs=1e-5)


def test_average_of_a_constant_decay_in_closed_form():
    model = nn.Linear(1, 1, bias=False)
    average = copy.deepcopy(model)
    nn.init.constant_(average.weight, 0.0)
    nn.init.constant_(model.weight, 1.0)
    for _ in range(20):
        update_average(average, model, 10**9, 0.95)
    assert average.weight.item() == pytest.approx(1 - 0.95**20, abs=1e-5)


def test_the_average_is_what_a_checkpoint_offers_for_use(tmp_path, tiny_config, tiny_split):
    run_training(tiny_config("training.ema_decay=0"), tiny_split, tmp_path / "none")
    run_training(tiny_config(), tiny_split, tmp_path / "some")
    none, some = (tensor_bytes(find_checkpoint(tmp_path / name)) for name in ("none", "some"))
    assert none["average.safetensors"] == none["weights.safetensors"] == some["weights.safetensors"]
    assert some["average.safetensors"] != some["weights.safetensors"]


def test_no_weight_decay_on_norms_and_biases(tiny_config):
    config = tiny_config("training.weight_decay=0.1")
    model = model_from_config(config, 8, 2, TimeGrid(4, 8, 30))
    optimizer = build_optimizer(model, config.training)
    decay = {id(p): group["weight_decay"] for group in optimizer.param_groups for p in group["params"]}
    assert len(decay) == len(list(model.parameters()))
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            assert decay[id(module.weight)] == decay[id(module.bias)] == 0
        elif isinstance(module, nn.Linear | nn.Conv1d):
            assert decay[id(module.weight)] == 0.1 and decay[id(module.bias)] == 0


@pytest.mark.slow
def test_the_command_line_is_interrupted_and_resumed(tmp_path, tiny_overrides):
    config, run = tmp_path / "tiny.yaml", tmp_path / "a run"
    config.write_text("seed: 5\n")
    command = [sys.executable, "-c", "from temporalzoom.cli import main; main()", "train", str(config)]
    command += [*tiny_overrides, "training.steps=120", "--out", str(run)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 120
    while not read_metrics(run / "metrics.jsonl") and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    step = read_info(find_checkpoint(run)).step
    assert 1 <= step < 120
    assert f"stopped at step {step}" in errors and "--resume" in errors and "Traceback" not in errors

    again = errors.split("go on with: tzoom ")[1].splitlines()[0]
    resumed = subprocess.run(
        f"{sys.executable} -c 'from temporalzoom.cli import main; main()' {again}",
        shell=True, capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr
    assert read_info(find_checkpoint(run)).step == 120
    assert [line["step"] for line in read_metrics(run / "metrics.jsonl")] == list(range(1, 121))


@pytest.mark.parametrize("value", [1e30, -1e30, np.inf])
def test_features_that_are_too_large_name_their_recording(tmp_path, tiny_config, tiny_split, value):
    """The learning rate has nothing to do with it."""
    first, second, *rest = tiny_split.samples
    signal = second.signal.copy()
    signal[3, 1] = value
    samples = (first, replace(second, signal=signal), *rest)
    with pytest.raises(InputError, match=f"{second.name}: features hold the value") as error:
        run_training(tiny_config(), Split(samples, tiny_split.classes), tmp_path)
    assert "learning_rate" not in str(error.value)


def test_a_loss_out_of_all_proportion_is_a_divergence(tmp_path, tiny_config, tiny_split):
    """Finite numbers, and nothing learned: the last good state stays, no other is saved."""
    config = tiny_config("training.learning_rate=10", "training.steps=300", "training.checkpoint_every=1")
    with pytest.raises(InputError, match=r"diverged at step \d+: the loss is .*lower training.learning_rate") as error:
        run_training(config, tiny_split, tmp_path)
    assert "\n" not in str(error.value)
    step = int(str(error.value).split("at step ")[1].split(":")[0])
    saved = read_info(find_checkpoint(tmp_path)).step
    assert saved < step < 300
    assert str(find_checkpoint(tmp_path)) in str(error.value)
