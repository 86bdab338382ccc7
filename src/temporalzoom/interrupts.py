"""Ctrl-C and termination: the one handler of everything that has work to save or processes to end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_received: list[int] = []  # of these, in this process


def exit_code() -> int:
    """Of a process that a signal ended: 143 after a termination, else 130, as after Ctrl-C."""
    return 128 + int(signal.SIGTERM) if signal.SIGTERM in _received[-1:] else 130


@contextmanager
def stop_on_termination() -> Iterator[None]:
    """Inside of the block a termination signal is a KeyboardInterrupt, as Ctrl-C is, so that what is open is closed."""

    def stop(number: int, frame: object) -> None:
        _received.append(number)
        raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def interruptible(*, at_once: bool = False, grace: float = 0.0) -> Iterator[threading.Event]:
    """Ctrl-C or a termination signal sets the event, for a loop that looks at it and ends in order; a second one raises
    KeyboardInterrupt where it strikes. at_once: so does the first one, for work that has nothing to save. grace:
    seconds within which a second one is taken for the first, which came twice.

    A process that was started with SIGINT ignored (in the background of a script) handles it inside of the block all
    the same. Earlier handlers are put back. Only the main thread can handle signals; elsewhere the event stays unset.
    """
    event, since = threading.Event(), list[float]()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return

    def stop(number: int, frame: object) -> None:
        _received.append(number)
        again = event.is_set() and time.monotonic() - since[0] >= grace
        if not event.is_set():
            since.append(time.monotonic())
        event.set()
        if again or at_once:
            raise KeyboardInterrupt

    previous = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield event
    finally:
        for number, handler in previous.items():
            # None: a handler that was not installed from Python, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
