"""`tzoom data check`: what a data set holds and what is wrong with it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from temporalzoom.config import DataConfig
from temporalzoom.datasets.annotations import Annotations
from temporalzoom.datasets.check import Problem, problem_table
from temporalzoom.datasets.sources import check_folder, chosen_annotations, load_data
from temporalzoom.datasets.statistics import describe
from temporalzoom.datasets.zoombench_files import split_annotations


def report_data(data: DataConfig, seed: int = 0, console: Console | None = None) -> tuple[list[Table], list[Problem]]:
    """Tables for the terminal, the last one listing the problems if there are any."""
    if data.source == "zoombench":
        loaded = load_data(data, seed)
        assert loaded.train is not None and loaded.test is not None
        parts = [split_annotations(split, name) for split, name in ((loaded.train, "train"), (loaded.test, "test"))]
        annotations = Annotations(parts[0].recordings | parts[1].recordings, loaded.train.classes)
        return describe(annotations, {s.name: s.features for s in loaded.train.samples + loaded.test.samples}), []
    annotations, classes = chosen_annotations(data)
    features, problems = check_folder(data, annotations, classes, console)
    tables = describe(annotations, features)
    return [*tables, problem_table(problems)] if problems else tables, problems
