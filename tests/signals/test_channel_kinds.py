"""What channels measure, from names and from values; on real sensors, poses and scores."""

import numpy as np
import pytest

from temporalzoom.signals.channel_kinds import KINDS, channel_kinds
from temporalzoom.signals.container import Signal
from temporalzoom.signals.signal_files import find_recordings, read_signal

ROWS = np.random.default_rng(0).normal(size=(50, 200)).astype(np.float32)


def of_names(*names: str) -> tuple[str, ...]:
    return channel_kinds(Signal(ROWS[:, : len(names)], names))


def of_values(values) -> tuple[str, ...]:
    return channel_kinds(Signal(np.asarray(values, np.float32)))


NAMES = {
    "acceleration": ["acc_x", "accelerometerZ", "ax", "userAcceleration.y"],
    "rotation": ["gyro_x", "gyrZ", "gz", "rotationRate.x", "angular_velocity_y"],
    "orientation": ["mag_x", "magX", "quat_w", "roll", "attitude.yaw"],
    "pose": ["nose_likelihood"],
    "score": ["softmax_3", "prob walk"],
    "feature": ["f12", "feature_7"],
    "other": ["temperature", "accuracy", "heart rate", "magnitude"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_by_name(kind: str):
    for name in NAMES[kind]:
        assert of_names(name, "humidity") == (kind, "other"), name


def test_poses_by_keypoints():
    assert channel_kinds(Signal(ROWS[:, :6], keypoints="xyc")) == ("pose",) * 6
    assert of_names("head.x", "head.y", "thorax.x", "thorax.y", "leg.x", "leg.y") == ("pose",) * 6


def test_by_values():
    shares = np.random.default_rng(1).dirichlet(np.ones(5), size=80)
    assert of_values(shares) == ("score",) * 5
    assert of_values(ROWS) == ("feature",) * 200
    assert of_values(ROWS[:, :3]) == ("other",) * 3
    assert of_values(ROWS[:, :4]) == ("other",) * 4
    resting = np.random.default_rng(2).normal([0.1, 9.6, 1.9], 0.3, size=(500, 3))
    turning = np.random.default_rng(3).normal(0, 0.4, size=(500, 3))
    for unit in (1.0, 1 / 9.81):
        assert of_values(np.hstack([resting * unit, turning])) == ("acceleration",) * 3 + ("rotation",) * 3
    directions = turning / np.linalg.norm(turning, axis=1, keepdims=True)
    assert of_values(directions) == ("orientation",) * 3
    assert of_values(np.full((3, 3), np.nan)) == ("other",) * 3


INERTIAL, POSES = ("acceleration",) * 3 + ("rotation",) * 3, ("pose",) * 30


def check(signals: list[Signal], expected: tuple[str, ...]) -> None:
    kinds = [channel_kinds(signal) for signal in signals]
    assert kinds and np.mean([kind == expected for kind in kinds]) > 0.95, kinds


def test_phones_at_the_back(shared_data):
    check([read_signal(member) for member in find_recordings(shared_data / "tug" / "phone.npz").values()], INERTIAL)


def test_phones_at_the_waist(shared_data):
    files = sorted((shared_data / "sbhar" / "RawData").glob("acc_*.txt"))[::6]
    rows = [
        [np.loadtxt(file.with_name(file.name.replace("acc", sensor))) for sensor in ("acc", "gyro")] for file in files
    ]
    check([Signal(np.hstack(both).astype(np.float32)) for both in rows], INERTIAL)


def test_tracked_rats_without_names(shared_data):
    check([read_signal(member) for member in find_recordings(shared_data / "rats" / "pose.npz").values()][::10], POSES)


def test_tracked_hands_with_names(shared_data):
    check([read_signal(path) for path in find_recordings(shared_data / "gesture_phase").values()], POSES[:18])
