"""The data sets that tables are made on: a packaged recipe each, and where a folder's files go in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from temporalzoom.config import Config, load_config, recipe_summary
from temporalzoom.errors import InputError


@dataclass(frozen=True)
class DataSet:
    """settings: over the recipe of the same name. files: the settings that name a file of the data set's folder, or
    the folder itself (an empty name)."""

    settings: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=lambda: {"data.root": ""})


DATA_SETS: dict[str, DataSet] = {
    # All systems and seeds see the same sequences, and such that no setting was chosen on.
    "zoombench": DataSet(("data.seed=1",), {}),
    "sbhar": DataSet(),
    "sbhar-windows": DataSet(),
    "tug": DataSet(),
    "rats": DataSet(files={"data.annotations": "coarse.json", "data.features": "pose.npz"}),
}


def data_set_named(name: str) -> DataSet:
    if name not in DATA_SETS:
        raise InputError(f"bench: no data set {name!r}; there are {', '.join(DATA_SETS)}")
    return DATA_SETS[name]


def summary(name: str) -> str:
    """One line about a data set."""
    return recipe_summary(name)


def fold_settings(name: str, folds: int | None) -> dict[str, tuple[str, ...]]:
    """By the name of a training's folder below its seed's: what makes it the training of one fold."""
    if folds is None:
        return {"": ()}
    if not data_set_named(name).files:
        raise InputError(f"--folds: {name} has no subjects to leave out")
    return {f"/fold-{k}": (f"data.folds={folds}", f"data.fold={k}") for k in range(folds)}


def training_config(name: str, root: Path | None, seed: int, *settings: Sequence[str]) -> Config:
    """The configuration of one training on a data set.

    root: its folder; None: where the recipe says. settings: groups of `key=value` over the recipe, later ones first.
    """
    chosen = data_set_named(name)
    if root is not None and not chosen.files:
        raise InputError(f"--root: {name} has no folder, its sequences are made by the program")
    where = [] if root is None else [f"{key}={root / file}" for key, file in chosen.files.items()]
    given = [setting for group in settings for setting in group]
    return load_config(name, [*chosen.settings, *where, f"seed={seed}", *given])
