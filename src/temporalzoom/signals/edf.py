"""EDF and EDF+ files: signals with a rate each, and annotations in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from temporalzoom.errors import InputError
from temporalzoom.segments import Segments
from temporalzoom.signals.clock import CONTRADICTION
from temporalzoom.signals.container import Signal
from temporalzoom.signals.resampling import interpolated
from temporalzoom.signals.row_labels import NOTHING


def read_edf_signal(path: Path, fps: float | None = None) -> Signal:
    """All signals of a file, at the rate of the fastest; slower ones are interpolated.

    EDF+ annotations that last are the labels, those without a duration are noted and left out.
    """
    try:
        from edfio import read_edf
    except ImportError as error:
        raise InputError(f'{path}: reading it needs edfio: pip install "temporalzoom[edf]"') from error
    try:
        file = read_edf(path, header_encoding="latin-1")
        signals = [signal for signal in file.signals if signal.sampling_frequency > 0 and len(signal.digital)]
        rows = [np.asarray(signal.data, np.float32) for signal in signals]
        annotations, continuous = file.annotations, file.is_continuous
    except InputError:
        raise
    except Exception as error:  # a damaged file fails in a dozen ways
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path}: cannot be read, damaged or not an EDF file: {reason}") from error
    if not signals:
        raise InputError(f"{path}: holds no signals")
    if not continuous:
        raise InputError(f"{path}: an interrupted recording (EDF+D); write it as a continuous one, or split it")
    rates = [float(signal.sampling_frequency) for signal in signals]
    rate = max(rates)
    if fps is not None and abs(rate / fps - 1) > CONTRADICTION:
        raise InputError(f"{path}: its header says {rate:.6g} rows per second, not the {fps:g} asked for")
    length = max(round(len(row) / own * rate) for row, own in zip(rows, rates, strict=True))
    values = [
        row
        if own == rate and len(row) == length
        else interpolated(row[:, None], np.arange(length, dtype=np.float64) * (own / rate))[:, 0]
        for row, own in zip(rows, rates, strict=True)
    ]
    notes = [f"{rate:.6g} rows per second, as the header says."]
    slower = [signal.label for signal, own in zip(signals, rates, strict=True) if own != rate]
    if slower:
        notes.append(f"Slower signals are interpolated: {', '.join(slower)}.")
    names = _unique([signal.label for signal in signals])
    labels = _labels(annotations, length / rate, notes)
    return Signal(np.stack(values, axis=1), names, rate, labels=labels, notes=tuple(notes))


def _labels(annotations: Sequence[Any], duration: float, notes: list[str]) -> Segments | None:
    lasting = [a for a in annotations if a.duration and a.text.strip().casefold() not in NOTHING]
    moments = sum(not a.duration for a in annotations)
    if moments:
        notes.append(f"{moments} annotations without a duration are left out.")
    if not lasting:
        return None
    starts, ends = ([f(a) for a in lasting] for f in (lambda a: a.onset, lambda a: a.onset + a.duration))
    inside = Segments(starts, ends, [a.text.strip() for a in lasting]).crop(0, duration)
    notes.append(f"EDF+ annotations are the labels: {len(inside)} segments.")
    return inside


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Names that occur twice get their numbers."""
    return tuple(
        f"{name} {names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    )
