"""How far a training is: step, smoothed loss terms, time left."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console

from temporalzoom.progress import Progress
from temporalzoom.terminal import Screen

LINE_SHARE = 0.1  # of the steps, at least between two lines where there is no terminal


class TrainingProgress:
    """A bar with smoothed loss terms; without a terminal about ten lines, and always one for the last step."""

    def __init__(
        self, name: str, step: int, total: int, console: Console | None = None, smoothing: float = 0.95
    ) -> None:
        self.smoothing, self.terms, self._note = smoothing, dict[str, float](), ""
        self._progress = Progress(
            console or Screen(stderr=True), name, total, "steps", completed=step, patience=0, line_share=LINE_SHARE
        )

    def __enter__(self) -> TrainingProgress:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)

    def update(self, step: int, terms: Mapping[str, float]) -> None:
        for name, value in terms.items():
            self.terms[name] = self.smoothing * self.terms.get(name, value) + (1 - self.smoothing) * value
        shown = (f"{name} {value:.3f}" for name, value in self.terms.items() if "variance" not in name)
        self._progress.update(step, " ".join((*shown, self._note) if self._note else shown))

    def note(self, text: str) -> None:
        """Shown beside the terms from the next step on."""
        self._note = text
