"""What the channels of a signal measure: from their names, and where these say nothing from their values."""

from __future__ import annotations

import re

import numpy as np

from temporalzoom.signals.container import Floats, Signal
from temporalzoom.signals.poses import keypoint_pattern

KINDS = ("acceleration", "rotation", "orientation", "pose", "score", "feature", "other")
# The first pattern that a name contains decides. Letters alone (`ax`, `gz`) are whole names.
BY_NAME = (
    ("acceleration", r"acc(el|eleration|elerometer)?(?![a-z]{3})|accel|(?:^|_)(?:a|la)[ _.]?[xyz]$|gravity|linacc"),
    ("rotation", r"gyr|rot(ation)?_?rate|angular_?vel|angvel|omega|(?:^|_)[gw][ _.]?[xyz]$|rotation"),
    ("orientation", r"mag(net|$|[ _.]|[xyz]$)|quat|euler|roll|pitch|yaw|orient|heading|(?:^|_)[mq][ _.]?[wxyz]$"),
    ("pose", r"likelihood|keypoint|landmark|joint|bodypart"),
    ("score", r"score|prob|logit|softmax|posterior"),
    ("feature", r"feat|embed|^f\d+$|^(?:dim|pc|latent)[ _]?\d+$"),
)  # fmt: skip
MANY = 100  # channels from which on they are features
GRAVITY = (9.81, 1.0)  # in m/s^2 and in g
NEAR = 0.07


def channel_kinds(signal: Signal) -> tuple[str, ...]:
    """One of KINDS for each channel of (N, C).

    Poses are known by `keypoints`, others by their names. Without a name that says something, values decide: rows of
    shares that add up to one are scores, a hundred channels or more are features, three channels whose length is mostly
    that of gravity are acceleration, three around zero beside them rotation, and
    triples of two larger numbers and a share (x, y, likelihood) poses.
    """
    count = signal.values.shape[1]
    if signal.keypoints or keypoint_pattern(signal.channels):
        return ("pose",) * count
    kinds = [_by_name(name) for name in signal.channels] or [None] * count
    if any(kinds):
        return tuple(kind or "other" for kind in kinds)
    known = signal.values[np.isfinite(signal.values).all(axis=1)]
    if len(known) and _are_scores(known):
        return ("score",) * count
    if count >= MANY:
        return ("feature",) * count
    if count % 3 == 0 and count > 3 and _are_keypoints(signal.values):
        return ("pose",) * count
    return _inertial(known) if len(known) and count % 3 == 0 else ("other",) * count


def _by_name(name: str) -> str | None:
    plain = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().strip()
    return next((kind for kind, pattern in BY_NAME if re.search(pattern, plain)), None)


def _are_scores(known: Floats) -> bool:
    sums = known.sum(axis=1, dtype=np.float64)
    inside = known.min() >= -1e-6 and known.max() <= 1 + 1e-6
    return bool(known.shape[1] > 1 and inside and (np.abs(sums - 1) <= 0.02).mean() >= 0.99)


def _are_keypoints(values: Floats) -> bool:
    """Whether every third channel of (N, C) is between 0 and 1, and those before it are not."""
    finite = np.isfinite(values)
    lowest = np.where(finite, values, np.inf).min(axis=0).reshape(-1, 3)
    highest = np.where(finite, values, -np.inf).max(axis=0).reshape(-1, 3)
    shares = (lowest[:, 2] >= 0) & (highest[:, 2] <= 1)
    return bool(shares.all() and (highest[:, :2] > 2).all())


def _inertial(known: Floats) -> tuple[str, ...]:
    """Three axes at a time, of rows (N, C) without gaps."""
    triples = known.astype(np.float64).reshape(len(known), -1, 3)
    lengths = np.linalg.norm(triples, axis=2)
    usual = np.median(lengths, axis=0)
    constant = np.ptp(lengths, axis=0) < 1e-3 * np.maximum(usual, 1e-12)  # a direction, not a measurement
    gravity = np.min([np.abs(usual / size - 1) for size in GRAVITY], axis=0) <= NEAR
    # A gyroscope turns as much one way as the other: its middle is small beside its spread.
    middle, spread = np.abs(np.median(triples, axis=0)), triples.std(axis=0)
    centred = (middle <= 0.5 * spread).all(axis=1) & (spread > 0).all(axis=1)
    resting = (np.abs(lengths / np.maximum(usual, 1e-12) - 1) <= 0.2).mean(axis=0) >= 0.5
    accelerations = gravity & resting & ~constant
    kinds = ["other"] * (3 * len(usual))
    for place in range(len(usual)):
        kind = "other"
        if accelerations[place]:
            kind = "acceleration"
        elif constant[place] and abs(usual[place] - 1) < NEAR:
            kind = "orientation"
        elif accelerations.any() and centred[place]:
            kind = "rotation"
        kinds[3 * place : 3 * place + 3] = [kind] * 3
    return tuple(kinds)
