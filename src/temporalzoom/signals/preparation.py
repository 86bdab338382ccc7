"""How a raw array becomes what a network takes: gaps filled, poses made comparable, windows cut, lengths made equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter1d

from temporalzoom.errors import InputError
from temporalzoom.signals.feature_rows import FeatureRows, in_pieces
from temporalzoom.timegrid import TimeGrid

Floats = NDArray[np.float32]
DERIVATIVE_SCALE = 1.0  # rows, of the Gaussian that smooths before differences are taken
AXES = frozenset("xyz")  # the letters of a keypoint's pattern that are coordinates


def fill_missing(signal: Floats) -> Floats:
    """(N, C) with NaN -> (N, 2C) without: each channel interpolated in time, then a channel that is 1 where it was NaN.

    Before the first and after the last known value the nearest one is repeated; a channel that is never known is zero.
    Infinite values are no missing values, and stay.
    """
    missing = np.isnan(signal)
    filled = signal.copy()
    rows = np.arange(len(signal))
    for channel in np.flatnonzero(missing.any(axis=0)):
        gap = missing[:, channel]
        known = rows[~gap]
        filled[gap, channel] = np.interp(rows[gap], known, signal[known, channel]) if len(known) else 0.0
    return np.concatenate([filled, missing.astype(np.float32)], axis=1)


def with_derivatives(signal: Floats, flagged: bool = False) -> Floats:
    """(N, C) -> (N, 2C): every channel, then how fast it changes, per row.

    The position of a hand moves by metres between recordings and by millimetres between rows: beside the one, a network
    does not see the other. A little smoothing, because differences amplify noise. flagged: signal is (N, 2C), values
    and then 1 where they were missing, and becomes (N, 3C), flags last.
    """
    width = signal.shape[1] // (2 if flagged else 1)
    values = signal[:, :width]
    smooth = gaussian_filter1d(values, DERIVATIVE_SCALE, axis=0, mode="nearest")
    steps = np.gradient(smooth, axis=0) if len(values) > 1 else np.zeros_like(values)
    return np.concatenate([values, steps, signal[:, width:]], axis=1, dtype=np.float32)


def pose_geometry(signal: Floats, pattern: str, flagged: bool = False) -> Floats:
    """(N, K * P) -> (N, M): the distances between all pairs of K keypoints, their speeds, their further values.

    A network that sees coordinates memorizes where in its few recordings things happened; distances and speeds
    are the same wherever they happen and whichever way the bodies point. Both as square roots, which keeps the many
    small ones apart.

    pattern: what the P values of a keypoint are, a letter each: x, y, z are coordinates, anything else is kept as it
    is, such as the tracker's confidence in `xyc`. flagged: signal is (N, 2 * K * P), values and then 1 where they were
    missing; M then ends with a flag per keypoint.
    """
    width = signal.shape[1] // (2 if flagged else 1)
    count, rest = divmod(width, len(pattern))
    if rest:
        raise InputError(f"data.keypoints: {pattern} is {len(pattern)} values per keypoint; {width} channels are not")
    values = signal[:, :width].reshape(len(signal), count, len(pattern))
    axes = [place for place, letter in enumerate(pattern) if letter in AXES]
    others = [place for place, letter in enumerate(pattern) if letter not in AXES]
    points = values[:, :, axes]
    first, second = np.triu_indices(count, 1)
    distances = np.linalg.norm(points[:, first] - points[:, second], axis=-1)
    steps = np.gradient(points, axis=0) if len(points) > 1 else np.zeros_like(points)
    parts = [np.sqrt(distances), np.sqrt(np.linalg.norm(steps, axis=-1)), values[:, :, others].reshape(len(signal), -1)]
    if flagged:
        flags = signal[:, width:].reshape(len(signal), count, len(pattern))
        parts.append(flags[:, :, axes].max(axis=-1))
    return np.concatenate(parts, axis=1, dtype=np.float32)


def keypoint_count(width: int, pattern: str, flagged: bool) -> int:
    """How many keypoints there were, from the width of what `pose_geometry` made of them."""
    per_point = 1 + sum(letter not in AXES for letter in pattern) + flagged
    count = 1
    while count * (count - 1) // 2 + count * per_point < width:
        count += 1
    return count


@dataclass(frozen=True)
class Framing:
    """Windows of `window` rows, one every `stride` rows, each flattened to one feature vector (row by row)."""

    window: int
    stride: int

    def __post_init__(self) -> None:
        if self.window < 1 or self.stride < 1:
            raise ValueError(f"window and stride must be at least one row, got {self.window} and {self.stride}")

    def count(self, rows: int) -> int:
        """How many windows fit into a signal of this many rows; a shorter signal is padded to one."""
        return 0 if rows == 0 else max(rows - self.window, 0) // self.stride + 1

    def rows(self, count: int) -> int:
        """How many rows `count` windows cover."""
        return (count - 1) * self.stride + self.window if count else 0

    def cut(self, signal: NDArray[Any] | FeatureRows, first: int = 0, count: int | None = None) -> Floats:
        """Windows from `first` on, `count` of them or as many as there are. signal: (N, C) -> (count, window * C).

        A signal shorter than one window repeats its last row.
        """
        last = self.count(len(signal)) if count is None else min(first + count, self.count(len(signal)))
        if last <= first:
            return np.empty((0, self.window * signal.shape[1]), np.float32)
        rows = signal[first * self.stride : first * self.stride + self.rows(last - first)]
        if len(rows) < self.window:
            rows = np.pad(rows, ((0, self.window - len(rows)), (0, 0)), mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(rows, self.window, axis=0)[:: self.stride]
        return windows.transpose(0, 2, 1).copy().reshape(len(windows), -1)  # the view is read-only


class FramedRows(FeatureRows):
    """The windows (T, window * C) of a raw signal (N, C), cut when they are looked at: they overlap, so that all of
    them together are several times as large."""

    def __init__(self, framing: Framing, signal: NDArray[Any] | FeatureRows) -> None:
        super().__init__((framing.count(len(signal)), framing.window * signal.shape[1]))
        self.framing, self.signal = framing, signal

    def _read(self, first: int, last: int) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes Inf, which is refused
            return np.asarray(self.framing.cut(self.signal, first, last - first), np.float32)


def resized_grid(grid: TimeGrid, length: int, resized: int) -> TimeGrid:
    """The grid on which `resized` positions without overlap cover the same time as `length` positions of `grid`."""
    if length < 1 or resized < 1:
        raise ValueError(f"both lengths must be at least one position, got {length} and {resized}")
    stride = ((length - 1) * grid.stride + grid.window) / resized
    return TimeGrid(stride, stride, grid.fps)


def resize_features(features: Floats, grid: TimeGrid, resized: int) -> tuple[Floats, TimeGrid]:
    """(T, D) -> (resized, D) and its grid. Each new position holds the linear interpolation at its own time; before the
    first and after the last old position the nearest one is repeated.

    For windows that do not overlap (window = stride) this is the field's `interpolate(align_corners=False)`; for others
    that would be off by up to half the difference, because it takes the first feature for the time 0.
    """
    new = resized_grid(grid, len(features), resized)
    wanted = np.clip(grid.to_grid(new.to_seconds(np.arange(resized))), 0, len(features) - 1)
    low = np.minimum(wanted.astype(np.intp), max(len(features) - 2, 0))
    high = np.minimum(low + 1, len(features) - 1)
    share = (wanted - low)[:, None]
    return (features[low] * (1 - share) + features[high] * share).astype(np.float32), new


def row_count(signal: ArrayLike | FeatureRows) -> int:
    return len(signal if isinstance(signal, FeatureRows) else np.asarray(signal))


def has_numbers(signal: object) -> bool:
    """Whether float32 can be made of it piece by piece."""
    return isinstance(signal, FeatureRows) or (isinstance(signal, np.ndarray) and signal.dtype.kind in "fiu")


def count_not_finite(features: NDArray[Any] | FeatureRows) -> int:
    """How many values of (T, F) are NaN or infinite in float32."""
    return sum(int((~np.isfinite(piece)).sum()) for piece in in_pieces(features))


@dataclass(frozen=True)
class Preparation:
    """How training prepared its recordings, so that others are prepared alike.

    framing: how windows are cut from raw rows, None where files hold features; fills_gaps: missing values are
    interpolated and flagged; keypoints: of raw poses, what the values of a keypoint are (see `pose_geometry`); resize:
    features of a recording are interpolated to this many positions, None: they stay as many as they are; channel_names:
    of the channels of a recording, in their order, () where files have no names; derivatives: see `with_derivatives`.
    """

    framing: Framing | None = None
    fills_gaps: bool = False
    keypoints: str = ""
    resize: int | None = None
    channel_names: tuple[str, ...] = ()
    derivatives: bool = False

    def channels(self, input_width: int) -> int:
        """How many channels a recording has, from how many the network takes."""
        width = input_width // (1 if self.framing is None else self.framing.window)
        if self.keypoints:
            return len(self.keypoints) * keypoint_count(width, self.keypoints, self.fills_gaps)
        return width // (1 + self.fills_gaps + self.derivatives)

    @property
    def keeps_rows(self) -> bool:
        """Whether features, or the rows that windows are cut from, are taken as they are."""
        return not (self.fills_gaps or self.derivatives or self.keypoints or self.resize)

    def apply(
        self, signal: ArrayLike | FeatureRows, grid: TimeGrid, input_width: int
    ) -> tuple[Floats | FeatureRows, TimeGrid]:
        """What a recording holds -> features (T, F) as training saw them, and their grid.

        Args:
            signal: (N, C) rows of a raw signal for a model that was trained on those, else (T, C) features. Where they
                are in a file and nothing is to be done to them but to cut windows, they stay there.
            grid: of the features before they are resized.
            input_width: F, what the network takes.
        """
        stays = self.keeps_rows and isinstance(signal, FeatureRows | np.ndarray)
        array: Any = self._checked(signal, self.channels(input_width), as_it_is=stays)
        if self.fills_gaps:
            array = fill_missing(array)
        self._check_finite(array)
        if self.derivatives:
            array = with_derivatives(array, self.fills_gaps)
        if self.keypoints:
            array = pose_geometry(array, self.keypoints, self.fills_gaps)
        if self.framing is not None:
            array = FramedRows(self.framing, array)
        return (array, grid) if self.resize is None else resize_features(array, grid, self.resize)

    def _checked(self, signal: ArrayLike | FeatureRows, channels: int, as_it_is: bool) -> Any:
        """Of the right shape; in float32, unless it stays as it is."""
        try:
            array: Any = signal if as_it_is and has_numbers(signal) else np.asarray(signal, np.float32)
        except (TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"a recording must be a file or an array of numbers ({reason})") from None
        if array.ndim != 2 or not len(array):
            wanted = "features must be an array of at least one position, (T, F)"
            if self.framing is not None:
                wanted = "a raw signal must be an array of at least one row, (N, C)"
            raise InputError(f"{wanted}; got shape {array.shape}")
        if array.shape[1] != channels:
            what = "features have" if self.framing is None else "the raw signal has"
            raise InputError(f"{what} {array.shape[1]} channels, the model was trained with {channels}")
        return array

    def _check_finite(self, array: Floats | FeatureRows) -> None:
        bad = count_not_finite(array)
        if bad:
            what = "features hold" if self.framing is None else "the raw signal holds"
            raise InputError(f"{what} {bad} values that are NaN or infinite")
