"""How far something is: a bar with the time left on a terminal, elsewhere a plain line now and then.

    with Progress(console, "extracting", 800, "frames") as progress:
        for frame in frames:
            ...
            progress.advance()

    for recording in track(recordings, "reading", console): ...

What ends within two seconds shows nothing. Descriptions and notes are plain text, never markup.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from types import TracebackType
from typing import TypeVar

from rich.console import Console
from rich.errors import LiveError
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

PATIENCE = 2.0  # seconds before anything is shown
LINE_SECONDS = 10.0  # between two lines where there is no terminal
Item = TypeVar("Item")


class Progress:
    """A context manager that is given how much is done.

    total: None where that is unknown. completed: done already when it begins. patience: seconds before anything is
    shown. line_share: of the total, at least between two lines where there is no terminal. transient: the bar goes away
    at the end. clock: in seconds.
    """

    def __init__(
        self,
        console: Console,
        description: str,
        total: float | None = None,
        unit: str = "",
        *,
        completed: float = 0,
        patience: float = PATIENCE,
        line_share: float = 0.0,
        transient: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console, self.description, self.total, self.unit = console, description, total, unit
        self.completed, self.note = completed, ""
        self._first, self._patience, self._line_share, self._clock = completed, patience, line_share, clock
        self._began = self._line_at = clock()
        self._line_completed = completed
        self._lock = threading.Lock()
        self._shown = self._ended = False
        self._timer: threading.Timer | None = None
        self._bar: Bar | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            self._bar = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[amount]}", markup=False),
                TaskProgressColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
                transient=transient,
                get_time=clock,
            )
            self._task = self._bar.add_task(
                description, total=total, completed=int(completed), amount=self._amount(), note=""
            )

    def __enter__(self) -> Progress:
        self._began = self._line_at = self._clock()
        if self._bar is not None and self._patience <= 0:
            self._show()
        elif self._bar is not None:
            # A thread, because the first step may take long; rich draws in one of its own anyway.
            self._timer = threading.Timer(self._patience, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if kind is None:
            self.total = self.completed  # what was expected may have been an estimate
        with self._lock:
            self._ended = True
        if self._bar is not None:
            if self._shown:
                self._draw()
                self._bar.stop()
        elif kind is None and self.completed > self._first and self._clock() - self._began >= self._patience:
            self._print(f"took {clock_time(self._clock() - self._began)}")

    def advance(self, amount: float = 1, note: str | None = None) -> None:
        """`amount` more is done. note: shown from here on."""
        self.update(self.completed + amount, note)

    def update(self, completed: float, note: str | None = None) -> None:
        """`completed` is done in all. note: shown from here on."""
        self.completed = completed
        self.note = self.note if note is None else note
        if self._bar is not None:
            self._draw()
            return
        now, apart = self._clock(), self._line_share * (self.total or 0)
        is_last = self.total is not None and completed >= self.total  # which the end reports
        if now - self._line_at >= LINE_SECONDS and completed - self._line_completed >= apart and not is_last:
            self._line_at, self._line_completed = now, completed
            self._print(self._time_left(now))

    def _show(self) -> None:
        with self._lock:
            if self._bar is None or self._ended:
                return
            try:
                self._bar.start()
                self._shown = True
            except LiveError:  # another bar is on the screen already
                pass

    def _draw(self) -> None:
        assert self._bar is not None
        self._bar.update(self._task, total=self.total, completed=self.completed, amount=self._amount(), note=self.note)

    def _print(self, when: str) -> None:
        share = f"{min(int(100 * self.completed / self.total), 100)} %" if self.total else ""
        text = ", ".join(part for part in (self._amount(), share, when, self.note) if part)
        self.console.print(f"{self.description}: {text}", markup=False, highlight=False, soft_wrap=True)

    def _amount(self) -> str:
        total = "" if self.total is None else f"/{max(self.total, self.completed):.0f}"
        return f"{self.completed:.0f}{total} {self.unit}".strip()

    def _time_left(self, now: float) -> str:
        done = self.completed - self._first
        if self.total is None or done <= 0:
            return ""
        return f"{clock_time((now - self._began) / done * max(self.total - self.completed, 0))} left"


def track(
    items: Iterable[Item], description: str, console: Console | None, unit: str = "", total: float | None = None
) -> Iterator[Item]:
    """The items, while a `Progress` counts them. console: None shows nothing. total: where `len` does not say."""
    if console is None:
        yield from items
        return
    if total is None:
        total = length_hint(items) or None
    with Progress(console, description, total, unit, transient=True) as progress:
        for item in items:
            yield item
            progress.advance()


def clock_time(seconds: float) -> str:
    """`0:32`, `12:05`, `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
