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
    the folder itself (an empty name). seeds: of published tables. quick: further settings that make trainings small.
    folds: the test recordings of each fold, as patterns, where the data set was published with folds."""

    settings: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=lambda: {"data.root": ""})
    seeds: tuple[int, ...] = (0, 1, 2)
    quick: tuple[str, ...] = ()
    folds: tuple[str, ...] = ()


# All systems and seeds see the same sequences, and such that no setting was chosen on: choices are made with another
# `data.seed`, on `data.validation`. With 96 training sequences, as in the demo, every system overfits; with 48 test
# sequences intervals are ten points wide.
GENERATED = DataSet(
    ("data.seed=1", "data.sequences=480", "data.test_sequences=400", "training.steps=1500"),
    {},
    (0, 1, 2, 3, 4),
    ("data.sequences=4", "data.test_sequences=2", "data.length=320"),
)
DATA_SETS: dict[str, DataSet] = {
    "zoombench": GENERATED,
    "zoombench-context": GENERATED,
    "sbhar": DataSet(),
    "sbhar-windows": DataSet(),
    "tug": DataSet(),
    "rats": DataSet(files={"data.annotations": "coarse.json", "data.features": "pose.npz"}),
    # The folds of its scores, by person: a person is the first half of a recording's name.
    "salads": DataSet(
        files={"data.annotations": "annotations.json", "data.features": "scores.npz"},
        folds=(
            "[03-*,06-*,14-*,19-*,22-*]",
            "[07-*,11-*,16-*,20-*,25-*]",
            "[02-*,10-*,13-*,17-*,26-*]",
            "[01-*,05-*,09-*,18-*,27-*]",
            "[04-*,15-*,21-*,23-*,24-*]",
        ),
    ),
}


def data_set_named(name: str) -> DataSet:
    if name not in DATA_SETS:
        raise InputError(f"bench: no data set {name!r}; there are {', '.join(DATA_SETS)}")
    return DATA_SETS[name]


def default_seeds(name: str, quick: bool = False) -> tuple[int, ...]:
    """Those of published tables; to see that a table works, one."""
    return (0,) if quick else data_set_named(name).seeds


def quick_settings(name: str) -> tuple[str, ...]:
    """Trainings of seconds, which find nothing: of all that a table does, once."""
    return ("training.steps=3", "training.batch_size=2", "model.width=16", *data_set_named(name).quick)


def summary(name: str) -> str:
    """One line about a data set."""
    return recipe_summary(name)


def fold_settings(name: str, folds: int | None) -> dict[str, tuple[str, ...]]:
    """By the name of a training's folder below its seed's: what makes it the training of one fold."""
    if folds is None:
        return {"": ()}
    chosen = data_set_named(name)
    if not chosen.files:
        raise InputError(f"--folds: {name} has no subjects to leave out")
    if chosen.folds:
        if folds != len(chosen.folds):
            raise InputError(f"--folds: {name} was published with {len(chosen.folds)} folds, got {folds}")
        return {f"/fold-{k}": (f"data.test_recordings={names}",) for k, names in enumerate(chosen.folds)}
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
