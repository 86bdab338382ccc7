"""Several processes that train one network, as `torchrun` starts them: who they are, what they tell each other.

A step is that of one process. All draw the same batch; each runs its own rows of it through the network and hands the
outputs to the others, so that every one of them has the loss of the whole batch, and the gradients of its own rows:
their sum is the gradient of that loss. Wherever a network looks at the whole batch (running statistics, quantiles), it
asks for the rows of the others here; wherever it draws noise, it draws that of the whole batch and takes its own rows.

Without `torchrun` there is one process, every function here is the identity, and `torch.distributed` is not touched.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from temporalzoom.errors import InputError

if TYPE_CHECKING:  # the command line shall not wait for torch
    import torch
    from torch import Tensor, nn

NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")  # that torchrun sets
FAILURES, ARRIVALS = "temporalzoom/failures", "temporalzoom/arrivals"  # counts in the store that all share
PATIENCE = 5.0  # seconds that a silent process waits for the one that speaks
GRACE = 5.0  # seconds within which a signal that comes again is the same one: torchrun passes on what all were sent


class ProcessLost(InputError):
    """Another process of the training is gone."""


@dataclass(frozen=True)
class Rows:
    """Which rows of the batch this process runs; total: of the batch; length: positions of each."""

    first: int
    last: int
    total: int
    length: int


_store: Any = None
_connected = False
_rows: Rows | None = None


def count() -> int:
    """How many processes train together, by the environment that torchrun makes; 1: this one alone."""
    return _number("WORLD_SIZE", 1) if all(name in os.environ for name in NAMES) else 1


def rank() -> int:
    """Which of them this is, from 0 on."""
    return _number("RANK", 0) if count() > 1 else 0


def leads() -> bool:
    """Whether this process is the one that writes files and shows progress."""
    return rank() == 0


def _number(name: str, least: int) -> int:
    text = os.environ[name]
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{name}: must be a whole number from {least} on, as torchrun sets it, got {text!r}")
    return int(text)


# One voice


@contextmanager
def one_voice() -> Iterator[None]:
    """Of the errors inside of the block, in all processes, the first goes on; where it is not the first, the process
    ends without a word: what stopped one of them stops all, and is said once."""
    global _store
    if count() == 1 or _store is not None:
        yield
        return
    _store = _shared_store()
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:
        _handle_signals(signal.SIG_IGN)  # nobody shall interrupt what is said now
        if not _is_first():
            _end_silently()
        raise _cause(error) from None
    finally:
        _store = None


def _shared_store() -> Any:
    import torch.distributed as dist

    if not dist.is_available():
        raise InputError("WORLD_SIZE: this build of PyTorch cannot train in several processes")
    return next(iter(dist.rendezvous("env://")))[0]


def _handle_signals(how: signal.Handlers) -> None:
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, how)


def _cause(error: BaseException) -> BaseException:
    """What ended the process: torchrun terminates all when one is lost, and its signal may strike while that is being
    noticed."""
    cause: BaseException | None = error
    while isinstance(error, KeyboardInterrupt) and cause is not None:
        if isinstance(cause, ProcessLost):
            return cause
        cause = cause.__context__
    return error


def _is_first() -> bool:
    """Whether this is the first failure of all."""
    try:
        return bool(_store.add(FAILURES, 1) == 1)
    except RuntimeError:  # without torchrun the store is with the first process, and goes with it
        return False


def only_one(message: str) -> None:
    """Nothing where there is one process. Of several, the first raises InputError, and the others end silently."""
    if count() > 1 and leads():
        raise InputError(message)
    if count() > 1:
        _end_silently()


def _end_silently() -> NoReturn:
    """torchrun ends all processes when one has ended, even that which still speaks: it is waited for."""
    _handle_signals(signal.SIG_DFL)
    with suppress(KeyboardInterrupt):
        time.sleep(PATIENCE)
    raise SystemExit(2) from None


@contextmanager
def connected(device: str) -> Iterator[None]:
    """Inside of the block the processes talk to each other. device: name of the one to train on; with `cuda`, each
    process of a machine has a card of its own."""
    global _connected
    if count() == 1 or _connected:
        yield
        return
    import torch
    import torch.distributed as dist

    from temporalzoom.device import choose_device

    kind = choose_device(device).type
    if kind not in ("cuda", "cpu"):
        raise InputError(f"device: several processes train on cuda or on cpu, not on {kind}: add --device cpu")
    if kind == "cuda":
        local, cards = _number("LOCAL_RANK", 0), torch.cuda.device_count()
        if local >= cards:
            raise InputError(f"device: process {local} of this machine has no GPU, there are {cards}: start {cards}")
        torch.cuda.set_device(local)
    _wait_for_all()
    cards_talk = "cpu:gloo,cuda:nccl" if dist.is_nccl_available() else "gloo"
    with _heard():
        # What is no tensor of the network goes by gloo, which notices at once that another process is gone.
        dist.init_process_group(cards_talk if kind == "cuda" else "gloo")
    _connected = True
    try:
        yield
        dist.destroy_process_group()
    finally:
        _connected = False


def _wait_for_all() -> None:
    """Until every process is here, or one has failed on its way. (Connecting would wait for it, deaf to signals.)"""
    if _store is None:
        return
    with _heard():
        _store.add(ARRIVALS, 1)
        while _store.add(ARRIVALS, 0) < count():
            if _store.add(FAILURES, 0):
                raise RuntimeError
            time.sleep(0.05)


@contextmanager
def _heard() -> Iterator[None]:
    """Whatever fails between processes is that one of them is gone."""
    try:
        yield
    except RuntimeError:
        raise ProcessLost(
            f"one of the {count()} processes of this training has ended; the same command with --resume goes on from "
            "the last checkpoint"
        ) from None


# What they tell each other


def decided_by_the_first(decide: Callable[[], int]) -> int:
    """What `decide` says in the process that leads; the others wait for it."""
    value = decide() if leads() else 0
    if not _connected:
        return value
    import torch
    import torch.distributed as dist

    told = torch.tensor(value)
    with _heard():
        dist.broadcast(told, 0)
    return int(told)


def any_of(mine: bool) -> bool:
    """Whether it is so in any process. All of them must ask."""
    if not _connected:
        return mine
    import torch
    import torch.distributed as dist

    flag = torch.tensor(float(mine))
    with _heard():
        dist.all_reduce(flag)
    return bool(flag > 0)


def add_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """The gradients of all processes, added up, in each of them. One that no process has stays None, as it would in one
    process: the optimizer leaves such a parameter alone."""
    if not _connected:
        return
    import torch
    import torch.distributed as dist

    trained = [p for p in parameters if p.requires_grad]
    if not trained:
        return
    has = torch.tensor([float(p.grad is not None) for p in trained], device=trained[0].device)
    parts = [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in trained]
    together = torch.cat([has, *parts])
    with _heard():
        dist.all_reduce(together)
    gradients = together[len(trained) :].split([p.numel() for p in trained])
    for parameter, gradient, users in zip(trained, gradients, together[: len(trained)].tolist(), strict=True):
        parameter.grad = gradient.view_as(parameter) if users else None


# Rows of a batch


def own_rows(total: int) -> slice:
    """Which rows of a batch are this process's: all where there is one, else as equal parts as whole rows can be."""
    size = count()
    if total < size:
        raise InputError(f"training.batch_size: {size} processes need at least {size} crops per batch, got {total}")
    return slice(total * rank() // size, total * (rank() + 1) // size) if _connected else slice(0, total)


@contextmanager
def running(rows: slice, total: int, length: int) -> Iterator[None]:
    """Inside of the block a network runs these rows of a batch of `total` rows with `length` positions each."""
    global _rows
    before, _rows = _rows, Rows(rows.start, rows.stop, total, length) if _connected else None
    try:
        yield
    finally:
        _rows = before


def whole_batch(own: Tensor) -> Tensor:
    """The rows of all processes, (B, ...), from the own ones, (b, ...), inside of `running`. Gradients pass through the
    own rows only."""
    if _rows is None:
        return own
    import torch
    import torch.distributed as dist

    size, sent = count(), own.detach()
    sent = sent.to(torch.uint8) if sent.dtype == torch.bool else sent
    bounds = [_rows.total * k // size for k in range(size + 1)]
    most = max(after - before for before, after in pairwise(bounds))
    padded = sent.new_zeros((most, *sent.shape[1:]))  # equal sizes, as the processes must send
    padded[: len(sent)] = sent
    received = [torch.empty_like(padded) for _ in range(size)]
    with _heard():
        dist.all_gather(received, padded)
    parts = [part[: bounds[k + 1] - bounds[k]].to(own.dtype) for k, part in enumerate(received)]
    parts[rank()] = own
    return torch.cat(parts)


def uniform(shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None, rows: bool = False) -> Tensor:
    """Random numbers from 0 to 1 of this shape: (b, ...), or (1, b * T, ...) for a batch packed into one row. Those
    that one process would have drawn for these rows, where the rows are whole. like: of whose device. rows: it is
    known that nothing is packed; rows may then have any length, as those of coarser levels."""
    import torch

    def draw(shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        return torch.rand(tuple(shape), dtype=dtype, device=like.device, generator=generator)

    return _drawn(shape, draw, like, rows)


def kept_values(values: Tensor, dropout: float, rows: bool = False) -> Tensor:
    """Dropout of single values, as `F.dropout` in training, by noise as of `uniform`."""
    import torch
    import torch.nn.functional as F

    if _rows is None or not dropout:
        return F.dropout(values, dropout)

    def draw(shape: Sequence[int], generator: torch.Generator | None) -> Tensor:
        kept = torch.empty(tuple(shape), dtype=values.dtype, device=values.device)
        return kept.bernoulli_(1 - dropout, generator=generator) / (1 - dropout)

    return values * _drawn(values.shape, draw, values, rows)


def _drawn(
    shape: Sequence[int], draw: Callable[[Sequence[int], torch.Generator | None], Tensor], like: Tensor, rows: bool
) -> Tensor:
    import torch

    if _rows is None:
        return draw(shape, None)
    own = _rows.last - _rows.first
    if shape[0] == own and (rows or shape[1] in (1, _rows.length)):
        return draw((_rows.total, *shape[1:]), None)[_rows.first : _rows.last]
    if shape[0] == 1 and shape[1] == own * _rows.length:
        whole = draw((1, _rows.total * _rows.length, *shape[2:]), None)
        return whole[:, _rows.first * _rows.length : _rows.last * _rows.length]
    # Rows of which only some positions are left: how many the others have is not known here. A number that all draw
    # alike keeps their generators together, and gives the same noise where a layer is computed again.
    seed = int(torch.randint(2**31, ())) * count() + rank()
    return draw(shape, torch.Generator(like.device).manual_seed(seed))
