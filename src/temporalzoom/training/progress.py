"""The progress bar of training: step, loss terms, time left."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class TrainingProgress:
    """Shows smoothed loss terms; silent when the console is not a terminal, except for a line now and then."""

    def __init__(
        self, name: str, step: int, total: int, console: Console | None = None, smoothing: float = 0.95
    ) -> None:
        self.console = console or Console(stderr=True)
        self.total, self.name, self.smoothing = total, name, smoothing
        self.terms: dict[str, float] = {}
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[terms]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task(name, total=total, completed=step, terms="")

    def __enter__(self) -> TrainingProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, step: int, terms: Mapping[str, float]) -> None:
        for name, value in terms.items():
            self.terms[name] = self.smoothing * self.terms.get(name, value) + (1 - self.smoothing) * value
        text = " ".join(f"{name} {value:.3f}" for name, value in self.terms.items() if "variance" not in name)
        self._bar.update(self._task, completed=step, terms=text)
        if self._bar.disable and (step % max(self.total // 5, 1) == 0 or step == self.total):
            self.console.print(f"{self.name}: step {step}/{self.total} {text}", highlight=False)
