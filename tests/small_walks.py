"""Recordings as a user of sensors has them: tables with a time column, and a table of annotations."""

from pathlib import Path

import numpy as np


def write_walks(folder: Path, count: int = 6, rate: float = 25.0) -> None:
    """`signals/walk0.csv` and so on, and `annotations.csv`: a burst of movement is a wave, a slow drift a nod. Every
    subject has two recordings."""
    (folder / "signals").mkdir(parents=True)
    rows = ["recording,start,end,label,subject"]
    for number in range(count):
        random = np.random.default_rng(number)
        signal = random.normal(0, 0.1, (400, 3))
        for place in range(4):
            first, label = 20 + 90 * place, "wave" if (place + number) % 2 else "nod"
            length = 30 if label == "wave" else 45
            shape = np.sin(np.arange(length)) if label == "wave" else np.hanning(length)
            signal[first : first + length, 0 if label == "wave" else 1] += 2 * shape
            rows.append(f"walk{number},{first / rate:.2f},{(first + length) / rate:.2f},{label},p{number // 2}")
        lines = ["time,ax,ay,az", *(f"{i / rate:.3f},{x:.4f},{y:.4f},{z:.4f}" for i, (x, y, z) in enumerate(signal))]
        (folder / "signals" / f"walk{number}.csv").write_text("\n".join(lines))
    (folder / "annotations.csv").write_text("\n".join(rows))
