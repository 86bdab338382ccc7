"""The training loop."""

from __future__ import annotations

import copy
import math
import time
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from temporalzoom import processes
from temporalzoom.atomic import replacing
from temporalzoom.config import Config, dump_config, first_difference
from temporalzoom.console import plain_console
from temporalzoom.datasets.check import LARGEST
from temporalzoom.datasets.samples import Split
from temporalzoom.errors import InputError
from temporalzoom.interrupts import interruptible
from temporalzoom.models.inputs import Standardize
from temporalzoom.models.runtime import (
    check_precision,
    choose_device,
    denormals_as_zero,
    device_of,
    gradient_scaler,
    keep_freed_memory,
    products_in,
)
from temporalzoom.models.video import VideoDetector
from temporalzoom.runs.checkpoint import (
    checkpoint_folder,
    list_checkpoints,
    load_optimizer,
    load_weights,
    read_info,
    remove_drafts,
    save_best,
    save_checkpoint,
)
from temporalzoom.runs.description import ModelDescription, describe
from temporalzoom.runs.network import (
    backbone_from_config,
    distance_scales,
    model_from_config,
    training_reach,
    video_model_from_config,
)
from temporalzoom.signals.feature_rows import in_pieces
from temporalzoom.training.batches import Batch, training_batch
from temporalzoom.training.crops import Augmentation, channel_statistics
from temporalzoom.training.gradients import GradientVariance
from temporalzoom.training.metrics_log import MetricsLog
from temporalzoom.training.objective import RunningPositives, objective
from temporalzoom.training.optimizer import build_optimizer, learning_rate, update_average
from temporalzoom.training.progress import TrainingProgress
from temporalzoom.training.teacher import load_teacher
from temporalzoom.training.validation import Curve, Score, Validation
from temporalzoom.training.video_batches import video_batch
from temporalzoom.training.whole_batch import gather_outputs

CLIP_NORM = 1.0  # of the gradients of a step
# Training has diverged where the mean loss of the last steps is this many times that of the first one, or 1.
LOST, LAST_STEPS = 1e3, 5


class TrainingInterrupted(Exception):
    """Training was stopped by Ctrl-C (or a termination signal) after saving a checkpoint."""

    def __init__(self, checkpoint: Path, step: int) -> None:
        super().__init__(f"stopped at step {step}; saved {checkpoint}")
        self.checkpoint, self.step = checkpoint, step


@denormals_as_zero()
def train(
    config: Config,
    split: Split,
    run: Path,
    *,
    resume: bool = False,
    console: Console | None = None,
    validate: Score | None = None,
    curve: Score | None = None,
    teacher: Path | None = None,
) -> Path:
    """Train on `split` and leave everything in the folder `run`. Returns the last checkpoint.

    validate: from the averaged network and its description to a score, such as its mAP on recordings that are not
    trained on. It is asked now and then; the best state is kept beside the checkpoints, and training
    ends where it has long been surpassed. curve: the same, asked from the beginning on; it decides nothing. teacher: a
    trained run that a student (`taught-exit`) also learns from.

    The same config, data and thread count give the same weights, on the processor bit for bit, however often the run
    was interrupted and resumed: batches and dropout depend on (seed, step) only. A run may go on on another device; its
    initial weights are the same on all of them.
    """
    keep_freed_memory()
    if processes.count() > 1 and (validate is not None or curve is not None):
        raise InputError("WORLD_SIZE: a training that is validated on its way runs in one process")
    if not processes.leads():
        console = plain_console(quiet=True)
    options, device = config.training, choose_device(config.device)
    check_precision(options.precision, device.type, "training.precision")
    check_sizes(split)
    torch.manual_seed(config.seed)
    grid, built = split.samples[0].grid, None
    model: nn.Module
    if split.samples[0].video is not None:
        _check_video_settings(config)
        built = backbone_from_config(config)
        model = video_model_from_config(config, built, len(split.classes), grid)
        input_width = built.width
    else:
        _check_stem(config, split)
        input_width = split.input_width
        model = model_from_config(config, input_width, len(split.classes), grid)
        if config.model.standardize:
            standardize_inputs(model, split)
    augmentation = None
    if split.samples[0].video is None:
        augmentation = Augmentation(config.augment, split.samples, config.data)
    taught_by = load_teacher(teacher, config, split)
    if taught_by is not None:
        taught_by.to(device)
    model.to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer, scaler = _optimizer(model, config), gradient_scaler(options.precision, device.type)
    positives = None if options.positives is None else RunningPositives(options.positives)
    gradients = GradientVariance(_predictor_parameters(model))
    step = processes.decided_by_the_first(lambda: _prepare_run(config, run, resume))
    if step:
        checkpoint = list_checkpoints(run)[-1]
        if split.origin is not None:
            split.origin.check_against(read_info(checkpoint).origin, config.data.features)
        load_weights(checkpoint, model, "weights")
        load_weights(checkpoint, average, "average")
        state = load_optimizer(checkpoint, model, optimizer, scaler)
        if positives is not None:
            positives.mean = state["positives"]
        gradients.restore(state)

    def described() -> ModelDescription:
        return describe(
            config, split.classes, input_width, grid, split.origin, step,
            framing=split.samples[0].framing, backbone=built, channel_names=split.channel_names,
        )  # fmt: skip

    def save() -> Path:
        if not processes.leads():
            return checkpoint_folder(run, step)
        state = gradients.state | ({} if positives is None else {"positives": positives.mean})
        return save_checkpoint(run, described(), model, average, optimizer, options.keep_checkpoints, state, scaler)

    model.train()
    validation = None if validate is None else Validation(run, validate, options.steps, step)
    watched = None if curve is None else Curve(run, curve, options.steps, step)
    began = time.monotonic()
    with (
        _metrics_log(run, step) as log,
        interruptible(grace=processes.GRACE if processes.count() > 1 else 0.0) as interrupted,
        TrainingProgress(config.model.name, step, options.steps, console) as progress,
    ):
        losses: list[float] = []
        while step < options.steps and not (validation is not None and validation.is_hopeless(step)):
            torch.manual_seed(_dropout_seed(config.seed, step))
            terms, norm = _step(
                model, optimizer, scaler, split, config, step, augmentation, positives, gradients, taught_by
            )
            losses = _checked_losses(losses, terms, step, run)
            update_average(average, model, step, options.ema_decay)
            step += 1
            progress.update(step, terms)
            scored = {}
            if validation is not None and validation.is_due(step):
                progress.note("validating")
                average.eval()
                score = validation.ask(average, described())
                if validation.is_best(step):
                    save_best(run, described(), average)
                scored = {"validation": score}
                progress.note(f"validation {100 * score:.1f}")
            if watched is not None and watched.is_due(step):
                paused = time.monotonic()
                average.eval()
                watched.ask(average, described())
                began += time.monotonic() - paused  # no part of the training
            if log is not None and (scored or step % options.log_every == 0 or step == options.steps):
                rate = learning_rate(step - 1, options)
                seconds = time.monotonic() - began
                size = {"gradient_norm": norm} if math.isfinite(norm) else {}  # JSON has no infinity
                log.write(
                    step,
                    terms | size | gradients.summary() | scored | {"learning_rate": rate, "seconds": round(seconds, 3)},
                )
            if processes.any_of(interrupted.is_set()):
                saved = save()
                processes.any_of(False)  # until it is there
                raise TrainingInterrupted(saved, step)
            # A state that has just gone wrong would take the place of a good one.
            if step % options.checkpoint_every == 0 and step < options.steps and not _is_lost(losses[-1], losses):
                save()
        return save()


def _checked_losses(losses: list[float], terms: dict[str, float], step: int, run: Path) -> list[float]:
    """The first loss and the last ones. Where these are out of all proportion, InputError: no such state is saved."""
    losses = [*losses[:1], *[*losses[1:], terms["loss"]][-LAST_STEPS:]] if losses else [terms["loss"]]
    if len(losses) > LAST_STEPS and _is_lost(sum(losses[1:]) / LAST_STEPS, losses):
        before = list_checkpoints(run)
        kept = f"; {before[-1]} is from before" if before else ""
        raise InputError(
            f"training diverged at step {step + 1}: the loss is {losses[-1]:.3g}, it was {losses[0]:.3g} at first: "
            f"lower training.learning_rate{kept}"
        )
    return losses


def _is_lost(loss: float, losses: list[float]) -> bool:
    return loss > LOST * max(losses[0], 1.0)


def check_sizes(split: Split) -> None:
    """Features that no network can take raise InputError, which names the recording: the loss would only show it."""
    for sample in split.samples:
        if sample.video is None and sample.signal.size:
            lows, highs = zip(*((piece.min(), piece.max()) for piece in in_pieces(sample.signal)), strict=True)
            low, high = float(np.min(lows)), float(np.max(highs))  # NaN if any is
            if not (np.isfinite([low, high]).all() and max(-low, high) <= LARGEST):
                value = low if not -low <= LARGEST else high
                raise InputError(f"{sample.name}: features hold the value {value:.3g}; the largest may be {LARGEST:g}")


def _step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    split: Split,
    config: Config,
    step: int,
    augmentation: Augmentation | None,
    positives: RunningPositives | None = None,
    gradients: GradientVariance | None = None,
    teacher: nn.Module | None = None,
) -> tuple[dict[str, float], float]:
    """One optimizer step over `accumulate` batches. Returns the loss terms and the gradient norm.

    A norm that is not finite: gradients were too large for float16, and nothing was learned but a smaller scale.
    """
    options, device = config.training, device_of(model)
    optimizer.zero_grad(set_to_none=True)
    sums: dict[str, Tensor] = {}
    for part in range(options.accumulate):
        index = step * options.accumulate + part
        rows = processes.own_rows(options.batch_size)
        batch = _batch(model, split, config, index, augmentation, rows).to(device)
        # Only the oracle ablation has it.
        truth = {} if batch.boundaries is None else {"boundaries": batch.boundaries[rows]}
        with processes.running(rows, *batch.mask.shape):  # the backward pass may run a part once more
            with products_in(options.precision, device.type):
                outputs = model(batch.features, batch.mask[rows], **truth)
                with torch.no_grad():
                    taught = None if teacher is None else teacher(batch.features, batch.mask[rows])
            outputs = gather_outputs(outputs.as_float32())
            taught = None if taught is None else gather_outputs(taught.as_float32())
            terms = objective(outputs, batch, config, step / options.steps, positives, taught)
            loss = torch.stack(list(terms.values())).sum() / options.accumulate
            scaler.scale(loss).backward()
        for name, value in {"loss": loss * options.accumulate, **terms}.items():
            sums[name] = sums.get(name, value.new_zeros(())) + value.detach() / options.accumulate
    processes.add_gradients(list(model.parameters()))
    scaler.unscale_(optimizer)  # gradients are clipped as they are, not as they are scaled
    if gradients is not None and gradients.parameters:
        gradients.add()
    total_norm = nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
    # From a device all at once: every single number would have to be waited for.
    *terms_now, norm = torch.stack([*sums.values(), total_norm]).tolist()
    values = dict(zip(sums, terms_now, strict=True))
    # Gradients that do not fit into float16 are no divergence as long as their scale can be lowered.
    can_shrink = scaler.is_enabled() and scaler.get_scale() > 1
    if not math.isfinite(values["loss"]) or not (math.isfinite(norm) or can_shrink):
        listed = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
        raise InputError(f"training diverged at step {step + 1} ({listed}): lower training.learning_rate")
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, options) * group.get("factor", 1.0)
    scaler.step(optimizer)
    scaler.update()
    return values, norm


def _batch(
    model: nn.Module, split: Split, config: Config, index: int, augmentation: Augmentation | None, rows: slice
) -> Batch:
    """The batch of this index, of features, or of frames for a model that begins with them: `features` of these rows,
    the targets of all."""
    options = config.training
    which = (split, config.seed, index, options.batch_size, options.length, config.bdr)
    reach, scales = training_reach(config, split.samples[0].grid.stride), distance_scales(config)
    if isinstance(model, VideoDetector):
        return video_batch(*which, model.trunk.size, config.backbone.augment, reach, scales, rows)
    batch = training_batch(*which, reach, augmentation, scales)
    batch.features = batch.features[rows]
    return batch


def _optimizer(model: nn.Module, config: Config) -> torch.optim.Optimizer:
    """For a model that begins with frames: what came trained moves more slowly than what begins at random."""
    if not isinstance(model, VideoDetector):
        return build_optimizer(model, config.training)
    optimizer = build_optimizer(model.detector, config.training)
    for group in build_optimizer(model.trunk, config.training).param_groups:
        if group["params"]:
            optimizer.add_param_group(group | {"factor": config.backbone.learning_rate_factor})
    return optimizer


def _predictor_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Of what learns where depth goes, if anything does."""
    network = model.detector if isinstance(model, VideoDetector) else model
    predictor = getattr(network, "predictor", None)
    return [] if predictor is None else list(predictor.parameters())


def _check_video_settings(config: Config) -> None:
    """What needs features that are there before training."""
    if config.model.standardize:
        raise InputError("model.standardize: needs features; with data.videos they change in training")
    if config.model.stem:
        raise InputError("model.stem: needs a raw signal (data.raw), here are videos")


def standardize_inputs(model: nn.Module, split: Split) -> None:
    """Tell the network what its inputs look like on the training subset; the numbers are stored with its weights."""
    mean, deviation = channel_statistics(split.samples)
    repeats = split.input_width // len(mean)  # a window holds its channels row by row
    for module in model.modules():
        if isinstance(module, Standardize):
            module.set(torch.from_numpy(mean).repeat(repeats), torch.from_numpy(deviation).repeat(repeats))


def _check_stem(config: Config, split: Split) -> None:
    """A stem of other strides would take the values of several rows for channels of one."""
    stem, framing = config.model.stem, split.samples[0].framing
    if stem and framing is None:
        raise InputError("model.stem: needs a raw signal (data.raw), here are features")
    if stem and framing is not None and framing.stride != math.prod(stem):
        raise InputError(
            f"model.stem: its strides make {math.prod(stem)} rows per position; data.stride must be the same, it is "
            f"{framing.stride}"
        )


def _prepare_run(config: Config, run: Path, resume: bool) -> int:
    """Make the run folder, or check that it can be resumed. Returns the step to go on from."""
    remove_drafts(run)
    checkpoints = list_checkpoints(run)
    if not resume:
        if checkpoints:
            raise InputError(f"{run}: holds a trained run already; add --resume to go on, or choose another --out")
        with replacing(run / "config.yaml") as file:
            file.write(dump_config(config))
        return 0
    if not checkpoints:
        raise InputError(f"{run}: nothing to resume, it holds no checkpoint")
    before = read_info(checkpoints[-1]).config.model_copy(update={"device": config.device})  # that may be another one
    difference = first_difference(before, config)
    if difference is not None:
        key, old, new = difference
        raise InputError(f"{run}: cannot resume with another configuration: {key} was {old!r}, now {new!r}")
    return read_info(checkpoints[-1]).step


def _metrics_log(run: Path, step: int) -> AbstractContextManager[MetricsLog | None]:
    """None in a process that writes nothing."""
    return closing(MetricsLog(run, from_step=step)) if processes.leads() else nullcontext()


def _dropout_seed(seed: int, step: int) -> int:
    return (seed * 1_000_003 + step) % 2**63
