"""What the rules of `tzoom fit` choose on the data of a recipe: recipes of known data sets are that, and their changes.

A recipe says in its first part which data it is for, in its second what the rules choose on them, and in its third what
was found better by hand. The second part is written by `tzoom recipes NAME --rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from temporalzoom.config import Config, DataConfig, ZoomBenchData
from temporalzoom.config.unread import unread_keys
from temporalzoom.datasets.fingerprint import fingerprint
from temporalzoom.datasets.sources import load_data, open_source, row_grid_for
from temporalzoom.datasets.splits import subject
from temporalzoom.errors import InputError
from temporalzoom.formats import Recording
from temporalzoom.signals.channel_kinds import channel_kinds
from temporalzoom.signals.container import Signal
from temporalzoom.signals.feature_rows import FeatureRows
from temporalzoom.workflows.gather import UNNAMED_POSE
from temporalzoom.workflows.rules import Choice, choices_text, make_plan

Read = Callable[[str], NDArray[np.float32] | FeatureRows]


def rules_part(config: Config) -> str:
    """The second part of a recipe, as YAML with the reason beside every line."""
    return "\n".join(choices_text(chosen_by_rules(config))) + "\n"


def chosen_by_rules(config: Config) -> list[Choice]:
    """What the rules choose for one network on the training recordings of a configuration, as far as its data read it.

    What a source decides itself, such as that its files are raw signals, is no choice.
    """
    recordings, read, rates, framed = _training_data(config.data, config.seed)
    kinds = channel_kinds(Signal(np.asarray(read(recordings[0].name))))
    keypoints = UNNAMED_POSE if set(kinds) == {"pose"} else ""
    found = fingerprint(recordings, read, rates, kinds)
    groups = len({subject(recording) for recording in recordings})
    plan = make_plan(found, 1, groups, framed=framed, keypoints=keypoints)
    own = [*plan.choices, *(choice for choice in plan.variants[0] if choice.key != "seed")]
    unread = unread_keys(config)
    known = type(config.data).model_fields
    return [
        choice
        for choice in own
        if choice.key not in unread
        and (not choice.key.startswith("data.") or choice.key.removeprefix("data.") in known)
    ]


def _training_data(data: DataConfig, seed: int) -> tuple[list[Recording], Read, dict[str, float], bool]:
    """Recordings, how to read their rows, rows per second, and whether rows have a time grid of their own."""
    if isinstance(data, ZoomBenchData):
        split = load_data(data, seed, test=False).train
        assert split is not None
        samples = {sample.name: sample for sample in split.samples}
        recordings = [
            Recording(name, fps=sample.grid.fps, segments=sample.segments) for name, sample in samples.items()
        ]
        rates = {name: 1 / sample.grid.step_seconds for name, sample in samples.items()}
        return recordings, lambda name: samples[name].signal, rates, True
    plain = {"missing": "error", "keypoints": "", "derivatives": False}  # rows as they are in the files
    if data.raw:
        plain |= {"stride": 1, "window": 1}
    data = data.model_copy(update={key: value for key, value in plain.items() if key in type(data).model_fields})
    annotations, store = open_source(data)
    wanted, grid = data.train_subset.casefold(), row_grid_for(data)
    chosen = [r for r in annotations.recordings.values() if (r.subset or "").casefold() == wanted]
    rates = {recording.name: 1 / grid(recording).step_seconds for recording in chosen}

    def read(name: str) -> NDArray[np.float32] | FeatureRows:
        rows = store.read(name)
        if rows is None:
            raise InputError(f"{name}: is annotated, but its file is missing")
        return rows

    lengths = {recording.name: len(read(recording.name)) / rates[recording.name] for recording in chosen}
    inside = [replace(r, segments=r.segments.clip(lengths[r.name])) for r in chosen]
    return inside, read, rates, False
