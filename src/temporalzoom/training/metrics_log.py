"""Where training numbers go: a plain `metrics.jsonl`, and TensorBoard when it is installed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalzoom.atomic import replacing
from temporalzoom.errors import InputError


class MetricsLog:
    """One JSON object per line. A resumed run drops the lines after its checkpoint and writes them again."""

    def __init__(self, run: Path, from_step: int = 0) -> None:
        self.path = run / "metrics.jsonl"
        kept = [line for line in read_metrics(self.path) if line["step"] <= from_step] if from_step else []
        with replacing(self.path) as file:
            file.write("".join(json.dumps(line) + "\n" for line in kept))
        self._file = open(self.path, "a", encoding="utf-8", buffering=1)
        self._board = _summary_writer(run / "tensorboard", from_step)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        try:
            self._file.write(json.dumps({"step": step, **values}) + "\n")
            if self._board is not None:
                for name, value in values.items():
                    self._board.add_scalar(name, value, step)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def close(self) -> None:
        with suppress(OSError):  # a full disk was said when a line did not fit
            self._file.close()
        if self._board is not None:
            with suppress(OSError):
                self._board.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`; a half-written last line (a killed run) is left out."""
    if not path.is_file():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            break
    return lines


def _summary_writer(folder: Path, from_step: int) -> Any | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # the extra `tensorboard` is not installed; metrics.jsonl holds the same
        return None
    return SummaryWriter(str(folder), purge_step=from_step + 1 if from_step else None)
