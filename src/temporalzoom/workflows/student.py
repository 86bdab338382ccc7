"""The student of `tzoom fit --student`: one network that learns from the annotations and from all members, for those
who need speed.

The members judge every recording that is learned from, fused; that and the annotations become soft labels, on which the
student is trained as any network. Its folder is an ordinary run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from temporalzoom.config import Config
from temporalzoom.config.per_class import DEFAULT, SHOWN, layered
from temporalzoom.datasets.sources import load_data
from temporalzoom.errors import InputError
from temporalzoom.formats import write_segments
from temporalzoom.inference.localizer import Localizer
from temporalzoom.inference.members import fuse_members
from temporalzoom.runs.members import Members
from temporalzoom.segments import Segments
from temporalzoom.workflows.evaluate import localize_split
from temporalzoom.workflows.sweep import PREDICTIONS, Member, run_sweep
from temporalzoom.workflows.teaching import soften

STUDENT = "student"  # the name, and the folder


def train_student(
    run: Path,
    config: Config,
    members: Members,
    thresholds: Mapping[str, float],
    tious: Sequence[float],
    console: Console | None = None,
) -> Path:
    """Teach it, in `run/student`; returns that folder. Ctrl-C saves; the same call goes on, or finds it done.

    Args:
        run: with the members, which are trained.
        config: of the same network without a teacher, on all recordings.
        members: the teachers.
        thresholds: lowest score that is shown, by class.
        tious: that it is scored at.
        console: for progress.
    """
    file = soft_label_file(run, config, members)
    if not file.is_file():
        if console is not None:
            console.print("the members judge the recordings, for the student", highlight=False, soft_wrap=True)
        try:
            write_segments(file, soften(*judge(run, config, members, console)))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("stopped before the student was trained; the same command goes on") from None
    taught = student_config(config, file, thresholds)
    result = run_sweep([Member(STUDENT, taught)], run, thresholds=tious, console=console)
    if result.failed:
        raise InputError(f"the student in {run / STUDENT} failed: {result.failed[STUDENT]}")
    return run / STUDENT


def soft_label_file(run: Path, config: Config, members: Members) -> Path:
    """Where the soft labels of these members, for these annotations, are. Others are in another file, so that a student
    which had other teachers is noticed by its configuration."""
    assert config.data.annotations is not None
    digest = hashlib.sha256(config.data.annotations.read_bytes())
    for folder in members.paths(run):
        digest.update(folder.name.encode())
        digest.update((folder / PREDICTIONS).read_bytes())
    return config.data.annotations.with_name(f"soft-labels-{digest.hexdigest()[:12]}.json")


def judge(
    run: Path, config: Config, members: Members, console: Console | None = None
) -> tuple[dict[str, Segments], dict[str, Segments]]:
    """The annotations of the recordings that are learned from, and what all members, fused, find in them."""
    truth: dict[str, Segments] = {}
    found: dict[str, list[Segments]] = {}
    for folder in members.paths(run):
        localizer = Localizer.load(folder, device=config.device)
        own = localizer.description.config
        everything = {"annotations": config.data.annotations, "test_subset": own.data.train_subset}
        split = load_data(own.data.model_copy(update=everything), own.seed, train=False).test
        if split is None:
            raise InputError(f"{folder}: no recording of {own.data.train_subset!r} to learn from")
        truth |= split.truth()
        for name, segments in localize_split(localizer, split, console).items():
            found.setdefault(name, []).append(segments)
    return truth, {name: fuse_members(parts, members.tiou) for name, parts in found.items()}


def student_config(config: Config, soft_labels: Path, thresholds: Mapping[str, float]) -> Config:
    """Its thresholds are part of its settings; those that the user gave hold."""
    found, given = {DEFAULT: SHOWN} | dict(thresholds), config.inference.threshold
    shown = found if given == SHOWN else layered(found, given)
    return config.model_copy(
        update={
            "data": config.data.model_copy(update={"soft_labels": soft_labels}),
            "inference": config.inference.model_copy(update={"threshold": shown}),
        }
    )
