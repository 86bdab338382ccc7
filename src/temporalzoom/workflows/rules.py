"""The rules of `tzoom fit`: from the fingerprint of a data set to settings, each with its reason.

A rule is here because it held on data that it was not made on (`docs/fit.md` shows the tables). All of them count in
positions: what matters to a network is how many positions an instance has, not how many seconds or rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from temporalzoom.datasets.fingerprint import Fingerprint, shortest_class, span
from temporalzoom.segments import Segments

# A usual instance of the class that is shortest has this many positions: enough for its boundaries, and cheap.
POSITIONS_PER_SHORT = 4.5
# Within a class instances differ too: nine of ten instances of the data have at least this many.
LEAST_POSITIONS = 3.5
# Rows per position that convolutions can read one after the other, and their strides.
LARGEST_STRIDE = 4096
LARGEST_VIDEO_STRIDE = 16
STEMS: dict[int, tuple[int, ...]] = {
    1: (), 2: (2,), 3: (3,), 4: (4,), 5: (5,), 6: (2, 3), 8: (2, 4), 9: (3, 3), 10: (2, 5), 12: (3, 4), 15: (3, 5),
    16: (4, 4), 20: (4, 5), 25: (5, 5), 30: (2, 3, 5), 36: (3, 3, 4), 48: (3, 4, 4), 64: (4, 4, 4),
    96: (4, 4, 6), 128: (4, 4, 8), 192: (4, 6, 8), 256: (4, 4, 4, 4), 384: (4, 4, 4, 6), 512: (4, 4, 4, 8),
    768: (4, 4, 6, 8), 1024: (4, 4, 4, 4, 4), 1536: (4, 4, 4, 4, 6), 2048: (4, 4, 4, 4, 8), 3072: (4, 4, 4, 6, 8),
    4096: (4, 4, 4, 4, 4, 4),
}  # fmt: skip
# Features of a backbone: with fewer positions than this in all recordings a network of the usual width overfits.
MANY_CHANNELS, FEW_POSITIONS = 100, 20_000
FINEST = 4  # positions: how far the ends of an instance are from its middle at the finest level of a pyramid
POSITIONS_PER_STEP = 1536
ROWS_PER_STEP = 2**20  # of a signal with very many rows per position: what fits into memory
EPOCHS = 60  # passes over the positions of the training data
STEPS = (500, 1500)
FOLDS = 5
FINER, COARSER = 0.65, 1.5  # strides of other members, relative to that of the first
# With so few subjects a member that leaves one out has seen too little: networks for use are trained on all of them.
FEW_GROUPS = 3
PLAIN_VIEWS = (1, 4)  # members that see no derivatives where others do
# Rows of features and of class scores stand for themselves; others are read by learned convolutions.
READY = ("feature", "score")
INERTIAL = ("acceleration", "rotation")
GIVEN = "given by the user"


@dataclass(frozen=True)
class Choice:
    """A setting, its value, and why."""

    key: str
    value: Any
    reason: str


@dataclass(frozen=True)
class Plan:
    """What `fit` has decided. choices: settings of all members; variants: of each member, what it has of its own."""

    choices: tuple[Choice, ...]
    variants: tuple[tuple[Choice, ...], ...]
    folds: int

    def settings(self, member: int) -> dict[str, Any]:
        """Dotted keys and values for one member."""
        return {choice.key: choice.value for choice in (*self.choices, *self.variants[member])}

    def replaced(self, key: str, value: Any, reason: str = GIVEN) -> Plan:
        """With a setting that is the same for all members."""
        given = Choice(key, value, reason)
        known = [choice.key for choice in self.choices]
        choices = [given if choice.key == key else choice for choice in self.choices]
        choices += [] if key in known else [given]
        variants = tuple(tuple(choice for choice in own if choice.key != key) for own in self.variants)
        return Plan(tuple(choices), variants, self.folds)


def make_plan(
    found: Fingerprint,
    members: int = 3,
    groups: int | None = None,
    steps: int | None = None,
    framed: bool = False,
    keypoints: str = "",
    stride: int | None = None,
) -> Plan:
    """The rules, one after the other.

    Args:
        found: the fingerprint of the recordings to learn from.
        members: how many networks.
        groups: how many subjects (or recordings) can be dealt to folds; None: as many as there are.
        steps: of each training, where the time for it is limited.
        framed: rows are features with a time grid of their own, such as those of videos.
        keypoints: of poses, what the values of a keypoint are, such as `xyc`.
        stride: rows per position of all members, where the user has chosen it.
    """
    given = stride is not None
    stride, choices = (1, []) if framed else _time(found, stride)
    positions = found.rate / stride
    choices += [] if framed else _input(found, stride, keypoints)
    choices += _size(found, positions, stride)
    choices += _training(found, positions, steps)
    choices += _augmentation(found)
    choices += _few_features(found, positions)
    groups = groups or found.subjects or found.recordings
    folds = max(2, min(FOLDS, groups))
    derivatives = moves_slowly(found) and not keypoints and not framed
    return Plan(tuple(choices), _variants(found, stride, members, framed or given, derivatives), folds)


def video_stride(fps: float, segments: Sequence[Segments]) -> int:
    """Frames from one feature of a video to the next."""
    tenth = float(np.percentile(np.concatenate([each.durations for each in segments]), 10))
    seconds = min(shortest_class(segments) / POSITIONS_PER_SHORT, tenth / LEAST_POSITIONS)
    return int(min(max(round(fps * seconds), 1), LARGEST_VIDEO_STRIDE))


def stride_for(found: Fingerprint, factor: float = 1.0) -> int:
    """Rows per position."""
    if is_ready(found):
        return 1
    wanted = found.rate * position_seconds(found) * factor
    wanted = min(max(wanted, 1.0), LARGEST_STRIDE)
    return min(STEMS, key=lambda stride: abs(math.log(stride / wanted)))


def stem_for(stride: int) -> tuple[int, ...]:
    """Strides of convolutions whose product is `stride`: small ones, and what has no small factors as it is."""
    if stride in STEMS:
        return STEMS[stride]
    factor = next((factor for factor in (5, 4, 3, 2) if stride % factor == 0), stride)
    return tuple(sorted((*stem_for(stride // factor), factor)))


def position_seconds(found: Fingerprint) -> float:
    """How long a position should be."""
    return min(found.shortest / POSITIONS_PER_SHORT, found.duration(10) / LEAST_POSITIONS)


def moves_slowly(found: Fingerprint) -> bool:
    """Whether channels are positions, angles or unknown: neither accelerations and rotations, which are derivatives
    already, nor features."""
    fast = sum(count for kind, count in found.kinds.items() if kind in (*READY, *INERTIAL))
    return fast < found.channels / 2


def is_ready(found: Fingerprint) -> bool:
    """Whether rows are features already, which need no convolutions over neighbours to become such."""
    ready = sum(count for kind, count in found.kinds.items() if kind in READY)
    return ready > found.channels / 2


def _time(found: Fingerprint, given: int | None) -> tuple[int, list[Choice]]:
    if given is not None:
        return given, [Choice("data.stride", given, GIVEN)]
    stride = stride_for(found)
    period, short = stride / found.rate, found.shortest
    tenth = found.duration(10)
    if is_ready(found):
        reason = "rows are features already: a position each"
    else:
        usual = f"the shortest class ({span(short)}) has {short / period:.0f} of them"
        reason = f"a position every {span(period)}: {usual}, nine of ten instances at least {tenth / period:.1f}"
    return stride, [Choice("data.stride", stride, reason)]


def _input(found: Fingerprint, stride: int, keypoints: str) -> list[Choice]:
    choices = [
        Choice("data.raw", True, "files hold one row per sample"),
        Choice("data.window", stride, "windows do not overlap: convolutions look beyond them"),
        Choice("model.stem", list(stem_for(stride)), "strides of learned convolutions over the rows of a position"),
    ]
    if found.missing:
        choices.append(Choice("data.missing", "interpolate", f"{found.missing:.1%} of the values are missing"))
    if keypoints:
        reason = "keypoints: distances and speeds are the same wherever something happens"
        choices.append(Choice("data.keypoints", keypoints, reason))
    return choices


def _size(found: Fingerprint, positions: float, stride: int) -> list[Choice]:
    longest, usual = found.duration(100) * positions, found.duration(95) * positions
    levels = min(max(1 + math.ceil(math.log2(max(longest, 2 * FINEST) / FINEST)), 3), 9)
    recording = math.ceil(found.length(100) * positions)
    length = int(min(max(2 * usual, 192), 1024, max(recording, 32)))
    length = 32 * math.ceil(length / 32)
    batch = min(max(round(POSITIONS_PER_STEP / length), 2), 16)
    fits = max(ROWS_PER_STEP // (length * stride), 1)
    why = f"about {POSITIONS_PER_STEP} positions in a step"
    if fits < batch:
        batch, why = fits, f"more rows of {stride} to a position would not fit into memory"
    return [
        Choice(
            "model.levels", levels, f"each level doubles the reach: the longest instance has {longest:.0f} positions"
        ),
        Choice("training.length", length, f"a crop shows whole instances: 19 of 20 have at most {usual:.0f} positions"),
        Choice("training.batch_size", batch, why),
    ]


def _training(found: Fingerprint, positions: float, steps: int | None) -> list[Choice]:
    if steps is not None:
        return [Choice("training.steps", steps, "what fits into the time given")]
    passes = EPOCHS * found.seconds * positions / POSITIONS_PER_STEP
    count = 50 * round(min(max(passes, STEPS[0]), STEPS[1]) / 50)
    return [Choice("training.steps", count, f"{EPOCHS} passes over the data, at least {STEPS[0]}, at most {STEPS[1]}")]


def _few_features(found: Fingerprint, positions: float) -> list[Choice]:
    if found.channels < MANY_CHANNELS or not is_ready(found) or found.seconds * positions > FEW_POSITIONS:
        return []
    return [
        Choice("model.width", 64, f"{found.channels} features and few recordings: a small network overfits later"),
        Choice("training.learning_rate", 3e-3, "as small networks take it"),
        Choice("augment.warp", 0.2, "actions may be slower and faster than in the few that were seen"),
    ]


def _augmentation(found: Fingerprint) -> list[Choice]:
    choices = []
    inertial = sum(count for kind, count in found.kinds.items() if kind in INERTIAL)
    if inertial and inertial == found.channels and found.channels % 3 == 0:
        choices.append(Choice("augment.rotate", 15.0, "three-axis sensors sit a little differently each time"))
    if found.channels < 3:
        choices.append(Choice("augment.drop", 0.0, "too few channels to do without one"))
    return choices


def _variants(
    found: Fingerprint, stride: int, members: int, fixed: bool, derivatives: bool
) -> tuple[tuple[Choice, ...], ...]:
    """What makes members different: they are to err in different places. fixed: all have the same stride."""
    other = [
        Choice("model.name", "uniform-6", "attention at every position, where tzn has convolutions"),
        Choice("bdr.enabled", False, "ends from boxes alone, where tzn has zero crossings too"),
    ]

    def seen_at(factor: float) -> list[Choice]:
        rows = stride if fixed else stride_for(found, factor)
        if rows == stride:
            return []
        return [
            Choice("data.stride", rows, "time is seen at another scale"),
            Choice("data.window", rows, "as the stride"),
            Choice("model.stem", list(STEMS[rows]), "as the stride"),
        ]

    kinds = [[], [*other, *seen_at(COARSER)], seen_at(FINER), [*other], seen_at(COARSER)]
    if derivatives:
        # Two of three see both, the third the signal alone: together they are better than three of a kind.
        change = Choice("data.derivatives", True, "positions and angles: how they change is seen beside where they are")
        kinds = [own if place in PLAIN_VIEWS else [*own, change] for place, own in enumerate(kinds)]
    return tuple((Choice("seed", member, "another start"), *kinds[member % len(kinds)]) for member in range(members))


def plan_text(plan: Plan, words: list[str], paths: dict[str, Any] | None = None) -> str:
    """The plan as YAML that `tzoom train` reads, the reason beside every line; members' own settings as comments."""
    lines = [f"# {word}" for word in words]
    lines += choices_text([*(Choice(key, value, "") for key, value in (paths or {}).items()), *plan.choices])
    for number, own in enumerate(plan.variants):
        lines.append(f"# member {number}: trained without fold {number % plan.folds} of {plan.folds}")
        lines += [f"#   {choice.key}: {_scalar(choice.value)}  # {choice.reason}" for choice in own]
    return "\n".join(lines) + "\n"


def choices_text(choices: Sequence[Choice]) -> list[str]:
    """Lines of YAML, the reason beside every setting that has one."""
    tree: dict[str, list[tuple[str, str]]] = {}
    for choice in choices:
        section, _, key = choice.key.rpartition(".")
        tree.setdefault(section, []).append((f"{key}: {_scalar(choice.value)}", choice.reason))
    lines = []
    for section, entries in tree.items():
        lines.append(f"{section}:")
        width = max((len(entry) for entry, reason in entries if reason), default=0)
        lines += [f"  {entry:{width}}  # {reason}" if reason else f"  {entry}" for entry, reason in entries]
    return lines


def _scalar(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("\n").removesuffix("\n...")
