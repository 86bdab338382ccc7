"""What a sweep shows: one bar for all members and one per running member; tables of results and failures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from temporalzoom.console import plain_console
from temporalzoom.progress import clock_time


class SweepDisplay:
    """On a terminal bars that move; elsewhere one line per member that ended."""

    def __init__(self, total: int, skipped: int, console: Console | None = None) -> None:
        self.console = console or plain_console(stderr=True)
        self.total, self.done, self.failures, self.skipped = total, skipped, 0, skipped
        self._began = time.monotonic()
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),  # a name may hold square brackets
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._all = self._bars.add_task("members", total=total, completed=skipped, note="")
        self._running: dict[str, TaskID] = {}
        if skipped:
            self._say(f"{skipped} of {total} members are done already")

    def __enter__(self) -> SweepDisplay:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def started(self, name: str, steps: int) -> None:
        self._running[name] = self._bars.add_task(name, total=steps, note="")

    def waits(self, name: str, who: str) -> None:
        self._say(f"{name}: waits, {who} is training it")

    def step(self, name: str, step: int, note: str = "") -> None:
        self._bars.update(self._running[name], completed=step, note=note)

    def finished(self, name: str, result: Mapping[str, Any]) -> None:
        self.done += 1
        self._ended(name)
        if self._bars.disable:
            self._say(f"{name}: average mAP {100 * result['average']:.1f} ({self._count()})")

    def failed(self, name: str, reason: str) -> None:
        self.failures += 1
        self._ended(name)
        self._say(f"{name}: failed, {reason} ({self._count()})")

    def stopping(self, running: int) -> None:
        self._say(f"stopping; waiting for {running} members to save a checkpoint")

    def stopped(self, name: str) -> None:
        self._ended(name)

    def _ended(self, name: str) -> None:
        self._bars.remove_task(self._running.pop(name))
        note = f"{self.failures} failed" if self.failures else ""
        self._bars.update(self._all, completed=self.done + self.failures, note=note)

    def _count(self) -> str:
        text = f"{self.done} of {self.total} done" + (f", {self.failures} failed" if self.failures else "")
        ended = self.done + self.failures
        if ended == self.total:
            return text
        each = (time.monotonic() - self._began) / (ended - self.skipped)  # several run at a time: as they end
        return f"{text}, about {clock_time(each * (self.total - ended))} left"

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def results_table(done: Mapping[str, Mapping[str, Any]]) -> Table:
    """One row per member; cost is that of all its test recordings."""
    table = Table(title="Test subset: mAP (%) by tIoU, boundary error in frames", title_justify="left")
    table.box, table.pad_edge, table.padding = None, False, (0, 0, 0, 1)  # names need the space
    thresholds = next(iter(done.values()))["mAP"] if done else {}
    table.add_column("member", overflow="fold")
    for column in (*(f"@{threshold}" for threshold in thresholds), "avg", "error", "GFLOPs"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, result in done.items():
        table.add_row(
            Text(name),
            *(f"{100 * value:.1f}" for value in (*result["mAP"].values(), result["average"])),
            f"{result['boundary_error_frames']:.2f}",
            f"{result['flops'] / 1e9:.3g}",
        )
    return table


def failures_table(failed: Mapping[str, str]) -> Table:
    table = Table(title="Failed; the same command runs them again", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("member", overflow="fold")
    table.add_column("why, and the last line of its log.txt", overflow="fold")
    for name, reason in failed.items():
        table.add_row(Text(name), Text(reason))
    return table
