"""Where training numbers go: a plain `metrics.jsonl`, and TensorBoard when it is installed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class MetricsLog:
    """One JSON object per line. A resumed run drops the lines after its checkpoint and writes them again."""

    def __init__(self, run: Path, from_step: int = 0) -> None:
        self.path = run / "metrics.jsonl"
        kept = [line for line in read_metrics(self.path) if line["step"] <= from_step] if from_step else []
        draft = self.path.with_suffix(".tmp")
        draft.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        os.replace(draft, self.path)
        self._file = open(self.path, "a", encoding="utf-8", buffering=1)
        self._board = _summary_writer(run / "tensorboard", from_step)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
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
