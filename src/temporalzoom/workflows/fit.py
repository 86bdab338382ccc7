"""`tzoom fit`: recordings and annotations in, a model that configured itself out, and a page that shows how good it is.

Read from top to bottom: gather the files, take their fingerprint, let the rules choose, train the members on all folds
but one each, score every recording by a member that has not seen it, fuse the members into one run. If asked for, they
teach one more network: `student.py`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from temporalzoom.atomic import replacing
from temporalzoom.config import Config, PerClass, load_config, parse_value
from temporalzoom.config.per_class import DEFAULT
from temporalzoom.console import plain_console
from temporalzoom.datasets.fingerprint import Fingerprint, fingerprint, in_words
from temporalzoom.datasets.folds import deal_folds
from temporalzoom.datasets.gathered import ANNOTATIONS, SIGNALS, TEST, Gathered
from temporalzoom.datasets.splits import subject
from temporalzoom.errors import InputError
from temporalzoom.formats import Recording, read_predictions, write_annotations
from temporalzoom.inference.members import TIOU
from temporalzoom.locks import alone_in
from temporalzoom.metrics import boundary_errors, evaluate_detections
from temporalzoom.metrics.operating_point import best_score, best_thresholds, threshold_curve
from temporalzoom.progress import clock_time
from temporalzoom.runs.members import Members, read_members, write_members
from temporalzoom.segments import Segments
from temporalzoom.workflows.evaluate import Evaluation
from temporalzoom.workflows.fit_time import TRAINING_SHARE, affordable, seconds_per_step
from temporalzoom.workflows.gather import GatherOptions, gather
from temporalzoom.workflows.report import next_steps, write_report
from temporalzoom.workflows.rules import FEW_GROUPS, LARGEST_STRIDE, Plan, make_plan, plan_text
from temporalzoom.workflows.student import train_student
from temporalzoom.workflows.sweep import PREDICTIONS, Member, run_sweep, usable_cores

TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
DATA, MEMBERS, PLAN, REPORT, DECIDED = "data", "members", "plan.yaml", "report.html", "decided.json"
VALIDATION = "validation"  # the subset of a member's own annotations that it is not trained on
DEFAULT_SECONDS = 15 * 60.0
# Thresholds are chosen on scores of single members. Fused ones are means, and lower where a member misses something.
FUSED = 0.9
THRESHOLD = "inference.threshold"
STUDENT_LINE = "# student: as member 0, trained on all recordings, taught by the annotations and all members\n"
CROSS_VALIDATED = (
    "Every recording was scored by one network that was not trained on it, nor on others of its subject; the run fuses "
    "several. When to stop training was chosen on the same recordings, which flatters a little."
)

TRAINED_AGAIN = "The networks for use were then trained once more on all of these recordings."


@dataclass(frozen=True)
class Fitted:
    """What `fit` made.

    Attributes:
        run: the folder; `Localizer.load(run)` takes it.
        held_out: how good it is on recordings that were held out, each scored by a member that has not seen it.
        thresholds: by class, of the best F1 there; where the user's settings have one, that.
        student: the folder of the one network that learned from all members; None where none was asked for.
    """

    run: Path
    held_out: Evaluation
    thresholds: dict[str, float]
    student: Path | None = None


@dataclass(frozen=True)
class Prepared:
    """Everything that is decided before training. configs: of the members, by their names; whole: whether the networks
    for use are trained once more, on all recordings; student: whether they will teach one; threshold: the user's own,
    None: those of the best F1."""

    fingerprint: Fingerprint
    plan: Plan
    text: str
    configs: dict[str, Config]
    seconds: float  # that the trainings are expected to take
    whole: bool = False
    student: bool = False
    threshold: PerClass | None = None

    def chosen(self) -> list[str]:
        """What was chosen and why, a line each."""
        lines = [f"{choice.key}: {choice.value} ({choice.reason})" for choice in self.plan.choices]
        names = ", ".join(config.model.name for config in self.configs.values())
        count = (
            f"{len(self.configs)} networks are trained ({names})" if len(self.configs) > 1 else f"{names} is trained"
        )
        if self.whole:
            count += ", then once more on all recordings"
        if self.student:
            count += f", then {'their' if len(self.configs) > 1 else 'its'} student ({self.configs['0'].model.name})"
        return [*lines, f"{count}, in about {clock_time(self.seconds)}"]


def fit(
    recordings: str | Path,
    annotations: str | Path | None,
    out: str | Path,
    *,
    options: GatherOptions | None = None,
    members: int | None = None,
    seconds: float | None = None,
    overrides: Sequence[str] = (),
    student: bool = False,
    console: Console | None = None,
) -> Fitted:
    """A model for these recordings, in one call. Ctrl-C saves; the same call goes on.

    Args:
        recordings: a folder of videos or of signals (.csv .parquet .npy .npz .h5 .edf), or an .npz archive.
        annotations: a file of any known format; None: the signals have a label per row.
        out: the folder of the run.
        options: what the files do not say themselves.
        members: how many networks, 1 to 5; None: as many as fit into the time.
        seconds: that training may take; None: no limit, but a quarter of an hour decides about the number of members.
        overrides: settings for all members, `section.key=value`.
        student: also train one network on all recordings that learns from the members too, in `out/student`; in a run
            that is finished, only that.
        console: for what was found, what was chosen and how far it is; default: standard error.

    Example:
        >>> import temporalzoom
        >>> fitted = temporalzoom.fit("recordings", "annotations.csv", "runs/mine")  # doctest: +SKIP
        >>> localizer = temporalzoom.Localizer.load(fitted.run)  # doctest: +SKIP
    """
    console, run = console or plain_console(stderr=True), Path(out)
    where = None if annotations is None else Path(annotations)
    with alone_in(run):
        gathered = gather(Path(recordings), where, run / DATA, options, console)
        prepared = prepare(
            gathered, members=members, seconds=seconds, overrides=overrides, decided=run / DECIDED, student=student
        )
        for line in (*gathered.notes, *in_words(prepared.fingerprint), *prepared.chosen()):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        train_members(prepared, run, console)
        fitted = finish(gathered, prepared, run)
        title = f"{run.name}: how good is it?"
        notes = [CROSS_VALIDATED if len(fitted.held_out.truth) > 1 else "", TRAINED_AGAIN if prepared.whole else ""]
        write_report(
            run / REPORT, fitted.held_out, thresholds=fitted.thresholds, title=title, notes=[n for n in notes if n],
            next_steps=next_steps(run), subjects=fitted.held_out.subjects, console=console,
        )  # fmt: skip
        return teach(gathered, prepared, fitted, console) if student else fitted


def prepare(
    gathered: Gathered,
    *,
    members: int | None = None,
    seconds: float | None = None,
    overrides: Sequence[str] = (),
    decided: Path | None = None,
    student: bool = False,
) -> Prepared:
    """Fingerprint, rules and the configuration of each member.

    Args:
        gathered: the data.
        members: how many networks; None: as many as fit into the time.
        seconds: that training may take; None: a quarter of an hour decides about the number of members, not about
            their steps.
        overrides: settings for all members, `section.key=value`.
        decided: a file that remembers how many members and steps the time allowed, so that a run that was stopped goes
            on as it was, whatever else the machine does now.
        student: whether the members are to teach one, which takes its time too. Not remembered: one that is asked for
            later leaves the members as they are.
    """
    recordings = gathered.learned()
    if not any(len(recording.segments) for recording in recordings):
        raise InputError("no annotated instance to learn from")
    found = fingerprint(recordings, gathered.read, gathered.rates(), gathered.kinds)
    groups = len({subject(recording) for recording in recordings})
    if groups < 2:
        raise InputError(f"{recordings[0].name}: one recording cannot be both trained on and validated on")
    folder = Path(os.path.abspath(gathered.folder))
    data = {"data.annotations": str(folder / ANNOTATIONS), "data.features": str(folder / SIGNALS)}
    given = {key: parse_value(text) for key, _, text in (override.partition("=") for override in overrides)}
    stride = given.get("data.stride")
    if stride is not None and not gathered.framed and not (isinstance(stride, int) and 1 <= stride <= LARGEST_STRIDE):
        raise InputError(f"data.stride: must be a number of rows from 1 to {LARGEST_STRIDE}, got {stride!r}")

    def planned(count: int, steps: int | None = None) -> tuple[Plan, dict[str, Config]]:
        plan = make_plan(found, count, groups, steps, gathered.framed, gathered.keypoints, stride)
        configs = {}
        for number in range(count):
            fold = str(_fold_file(gathered, number % plan.folds))
            own = data | plan.settings(number) | {"data.annotations": fold, "data.test_subset": VALIDATION}
            changes = [f"{key}={_text(value)}" for key, value in own.items()]
            configs[f"{number}"] = load_config(None, [*changes, *overrides])
        for key, value in given.items():
            plan = plan.replaced(key, value)
        return plan, configs

    plan, configs = planned(members or 1)
    _write_folds(gathered, deal_folds(recordings, plan.folds), plan.folds)
    asked = {"members": members, "seconds": seconds, "overrides": list(overrides), "data": gathered.digest()}
    known = _read_decision(decided, asked)
    if known is None:
        # The first two kinds of members are timed: what others cost lies between them.
        each = float(np.mean([seconds_per_step(config) for config in list(planned(2)[1].values())[: members or 2]]))
        steps_planned = configs["0"].training.steps
        found_time = affordable(
            each, steps_planned, members, seconds, DEFAULT_SECONDS, usable_cores(), int(student),
            whole=plan.folds <= FEW_GROUPS,
        )  # fmt: skip
        known = {"asked": asked, **asdict(found_time), "seconds_per_step": each}
        if decided is not None:
            with replacing(decided) as file:
                json.dump(known, file, indent=1)
    count, steps, whole, each = (known[key] for key in ("members", "steps", "whole", "seconds_per_step"))
    plan, configs = planned(count, steps)
    words = in_words(found)
    rounds = math.ceil(count / usable_cores()) * (1 + whole) + student
    expected = each * max(config.training.steps for config in configs.values()) * rounds / TRAINING_SHARE
    text = plan_text(plan, [*gathered.notes, *words], data) + (STUDENT_LINE if student else "")
    return Prepared(found, plan, text, configs, expected, whole, student, given.get(THRESHOLD))


def train_members(prepared: Prepared, run: Path, console: Console | None = None) -> None:
    """Train them, as many at a time as there are cores. Ctrl-C saves; the same call goes on."""
    with replacing(run / PLAN) as file:
        file.write(prepared.text)
    _train(prepared.configs, run, True, console)
    if prepared.whole:
        _train(final_configs(prepared, run), run, False, console)


def _train(configs: Mapping[str, Config], run: Path, validate: bool, console: Console | None) -> None:
    members = [Member(name, config) for name, config in configs.items()]
    result = run_sweep(members, run / MEMBERS, thresholds=TIOUS, validate=validate, console=console)
    if result.failed:
        name, reason = next(iter(result.failed.items()))
        raise InputError(f"member {name} of {run / MEMBERS} failed: {reason}")


def final_configs(prepared: Prepared, run: Path) -> dict[str, Config]:
    """Of networks that are trained on all recordings. Their steps are as planned: where half of the little there is was
    held out, the best step was that of a network that had soon learned everything."""
    found = {}
    for name, config in prepared.configs.items():
        whole = config.data.model_copy(
            update={"annotations": run.absolute() / DATA / ANNOTATIONS, "test_subset": config.data.train_subset}
        )
        found[f"all-{name}"] = config.model_copy(update={"data": whole})
    return found


def finish(gathered: Gathered, prepared: Prepared, run: Path) -> Fitted:
    """Score what was held out, choose thresholds, and make one run of the members."""
    truth, predictions = held_out(gathered, prepared, run)
    thresholds = {label: each.score for label, each in best_thresholds(truth, predictions).items()}
    # A class that is in no recording that was held out, and was found in none: as the others.
    thresholds = {DEFAULT: best_score(threshold_curve(truth, predictions))} | thresholds
    validated = tuple(f"{MEMBERS}/{name}" for name in prepared.configs)
    folders = tuple(f"{MEMBERS}/{name}" for name in final_configs(prepared, run)) if prepared.whole else validated
    fused = {label: score * (FUSED if len(folders) > 1 else 1.0) for label, score in thresholds.items()}
    thresholds, fused = (_as_given(prepared.threshold, found) for found in (thresholds, fused))
    write_members(run, Members(folders, fused, TIOU, validated))
    recordings = gathered.annotations.recordings
    subjects = {name: subject(recordings[name]) for name in truth if "subject" in recordings[name].extra}
    rates = {name: recordings[name].fps or 1.0 for name in truth}
    detection = evaluate_detections(truth, predictions, TIOUS)
    boundaries = boundary_errors(truth, predictions, rates)
    return Fitted(run, Evaluation(truth, predictions, detection, boundaries, subjects=subjects), thresholds)


def _as_given(given: PerClass | None, found: dict[str, float]) -> dict[str, float]:
    """Thresholds by class, where the user says nothing else; a class that was not met is DEFAULT."""
    if given is None:
        return found
    if not isinstance(given, Mapping):
        return dict.fromkeys(found, float(given))
    rest = {} if DEFAULT not in given else dict.fromkeys(found, float(given[DEFAULT]))
    return found | rest | {label: float(score) for label, score in given.items()}


def teach(gathered: Gathered, prepared: Prepared, fitted: Fitted, console: Console | None = None) -> Fitted:
    """Train the student of a run whose members are trained: the first one's settings, on all recordings.

    Nothing is held out from it, so its thresholds are those that were best for single members on what they had not
    seen.
    """
    run, members = fitted.run, read_members(fitted.run)
    assert members is not None
    config = next(iter(final_configs(prepared, run).values()))
    if any(recording.subset == TEST for recording in gathered.annotations.recordings.values()):
        config = config.model_copy(update={"data": config.data.model_copy(update={"test_subset": TEST})})
    return replace(fitted, student=train_student(run, config, members, fitted.thresholds, TIOUS, console))


def held_out(gathered: Gathered, prepared: Prepared, run: Path) -> tuple[dict[str, Segments], dict[str, Segments]]:
    """Truth and predictions of the recordings that a member has not seen; of two such members, those of the first."""
    fold_of = deal_folds(gathered.learned(), prepared.plan.folds)
    predictions: dict[str, Segments] = {}
    for number, name in enumerate(prepared.configs):
        found = read_predictions(run / MEMBERS / name / PREDICTIONS)
        mine = [recording for recording, fold in fold_of.items() if fold == number % prepared.plan.folds]
        for recording in mine:
            predictions.setdefault(recording, found.get(recording, Segments.empty()))
    truth = {name: gathered.annotations.recordings[name].segments for name in predictions}
    return truth, predictions


def _read_decision(file: Path | None, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was decided before, if the same was asked for. Networks that were trained on other data are not taken for
    those of these."""
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file is not None else {}
        before, _ = found["asked"]["data"], found["whole"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if file is not None and before != asked["data"] and (file.parent / MEMBERS).exists():
        raise InputError(
            f"{file.parent}: was trained on other recordings or annotations than these; give another --out, "
            f"or delete {file.parent / MEMBERS} to train anew"
        )
    return found if found["asked"] == asked else None


def _fold_file(gathered: Gathered, fold: int) -> Path:
    return gathered.folder / f"fold-{fold}.json"


def _write_folds(gathered: Gathered, fold_of: Mapping[str, int], folds: int) -> None:
    """An annotation file for each fold, in which its recordings are the validation subset."""
    for fold in range(folds):

        def subset(recording: Recording, fold: int = fold) -> str:
            if recording.subset == TEST:
                return TEST
            return VALIDATION if fold_of[recording.name] == fold else "train"

        recordings = {n: replace(r, subset=subset(r)) for n, r in gathered.annotations.recordings.items()}
        write_annotations(_fold_file(gathered, fold), replace(gathered.annotations, recordings=recordings))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list | tuple) else str(value)
