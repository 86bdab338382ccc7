"""The data check: each kind of bad input alone, all at once, and nothing said about data that is fine."""

import io
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from temporalzoom.datasets.check import (
    DataProblems,
    Problem,
    check_data,
    check_rates,
    check_recording,
    load_and_check,
    problem_table,
    raise_on_problems,
    rate_problems,
)
from temporalzoom.datasets.statistics import covered_time, describe, overlapping_instances, statistics
from temporalzoom.errors import InputError
from temporalzoom.formats import Annotations, Recording, read_annotations
from temporalzoom.segments import Segments
from temporalzoom.signals.feature_files import write_features
from temporalzoom.signals.feature_store import open_features
from temporalzoom.timegrid import TimeGrid

GRID = TimeGrid(stride=4, window=16, fps=25)
LENGTH, WIDTH = 247, 6  # (246 * 4 + 16) / 25 = 40 s
GOOD = Recording("good", "train", 40.0, 25.0, Segments([1, 5], [2, 40], ["run", "jump"]))


def grid_for(recording: Recording) -> TimeGrid:
    return GRID


def annotate(*recordings: Recording) -> Annotations:
    return Annotations({recording.name: recording for recording in recordings}, ("jump", "run"))


def features(length: int = LENGTH, width: int = WIDTH) -> np.ndarray:
    return np.ones((length, width), np.float32)


def plain(table: Table) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_features(tmp_path / "good.npy", features())
    return tmp_path


def only_problem(folder: Path, bad: Recording, array: np.ndarray | None, **options: object) -> Problem:
    """The one problem of `bad`, checked beside good recordings."""
    for name in ("other", "third"):
        write_features(folder / f"{name}.npy", features())
    if array is not None:
        write_features(folder / f"{bad.name}.npy", array)
    good = [replace(GOOD, name=name) for name in ("good", "other", "third")]
    problems = check_data(annotate(good[0], bad, *good[1:]), open_features(folder), grid_for, **options)  # type: ignore[arg-type]
    assert [problem.video for problem in problems] == [bad.name], problems
    return problems[0]


BAD = replace(GOOD, name="bad")


def test_good_data_has_no_problems(folder: Path) -> None:
    write_features(folder / "quiet.npy", features())
    write_features(folder / "untimed.npy", features())
    quiet = replace(GOOD, name="quiet", segments=Segments.empty())
    untimed = replace(GOOD, name="untimed", duration=None, fps=None, subset=None)
    found, problems = load_and_check(
        annotate(GOOD, quiet, untimed), open_features(folder), grid_for, classes=("jump", "run"), input_width=WIDTH
    )
    assert problems == []
    assert list(found) == ["good", "quiet", "untimed"]
    np.testing.assert_array_equal(found["good"], features())
    assert raise_on_problems(problems, allow_missing=False) == set()


def test_missing_features(folder: Path) -> None:
    assert only_problem(folder, BAD, None).kind == "missing features"


def test_unreadable_file(folder: Path) -> None:
    (folder / "bad.npy").write_bytes(b"nonsense")
    problem = only_problem(folder, BAD, None)
    assert problem.kind == "unreadable" and "bad.npy" in problem.detail


def test_two_files_for_one_recording(folder: Path) -> None:
    (folder / "bad.pt").touch()
    problem = only_problem(folder, BAD, features())
    assert problem.kind == "unreadable" and "bad.npy, bad.pt" in problem.detail


@pytest.mark.parametrize(
    ("length", "hint"),
    [
        (124, "stride 8 or fps 12.7"),  # extracted with stride 8
        (62, "stride 16.13"),
        (493, "stride 2 or fps 49.6"),
        (235, "fps 23.8"),  # the video had 23.8 frames per second, 4.8 % fewer
    ],
)
def test_length(folder: Path, length: int, hint: str) -> None:
    problem = only_problem(folder, BAD, features(length))
    assert problem.kind == "length"
    assert hint in problem.detail
    for word in (f"{length} features", "stride 4", "window 16", "fps 25", "40.00 s"):
        assert word in problem.detail


def test_end_before_start(folder: Path) -> None:
    backward = Segments.unchecked([1, 7, 3], [2, 6, 4], ["run"] * 3)
    problem = only_problem(folder, replace(BAD, segments=backward), features())
    assert problem.kind == "end <= start" and "'run' from 7 to 6 s" in problem.detail


def test_end_equal_to_start(folder: Path) -> None:
    assert only_problem(folder, replace(BAD, segments=Segments([7], [7], ["run"])), features()).kind == "end <= start"


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (39, 41), (50, 60)])
@pytest.mark.parametrize("duration", [40.0, None])
def test_outside_the_video(folder: Path, start: float, end: float, duration: float | None) -> None:
    bad = replace(BAD, duration=duration, segments=Segments([start], [end], ["run"]))
    problem = only_problem(folder, bad, features())
    assert problem.kind == "outside the video" and "40 s long" in problem.detail


def test_rounded_times_are_not_outside(folder: Path) -> None:
    rounded = replace(GOOD, segments=Segments([-0.05], [40.15], ["run"]))
    assert check_data(annotate(rounded), open_features(folder), grid_for) == []


def test_unknown_label(folder: Path) -> None:
    bad = replace(BAD, segments=Segments([1, 2, 3], [2, 3, 4], ["walk", "run", "walk"]))
    problem = only_problem(folder, bad, features(), classes=("jump", "run"))
    assert problem.kind == "unknown label" and "'walk' (2 instances)" in problem.detail


def test_not_finite(folder: Path) -> None:
    array = features()
    array[[7, 7, 9], [0, 3, 1]] = (np.nan, np.inf, -np.inf)
    problem = only_problem(folder, BAD, array)
    assert problem.kind == "NaN or Inf"
    assert f"3 of {array.size} values" in problem.detail and "the first 7" in problem.detail


def test_empty_features(folder: Path) -> None:
    assert only_problem(folder, BAD, features(0)) == Problem("bad", "empty video", "no feature rows")


@pytest.mark.parametrize("duration", [0.0, -3.0])
def test_no_duration(folder: Path, duration: float) -> None:
    problem = only_problem(folder, replace(BAD, duration=duration), features())
    assert problem.kind == "empty video" and f"{duration:g} s" in problem.detail


def test_width_that_differs_from_the_others(folder: Path) -> None:
    problem = only_problem(folder, BAD, features(width=7))
    assert problem == Problem("bad", "width", "features are 7 wide, most recordings have 6")


def test_width_that_the_model_does_not_take(folder: Path) -> None:
    [problem] = check_data(annotate(GOOD), open_features(folder), grid_for, input_width=2048)
    assert problem == Problem("good", "width", "features are 6 wide, the model takes 2048")


def test_time_grid_that_cannot_be_made(folder: Path) -> None:
    [problem] = check_data(
        annotate(replace(GOOD, fps=0.0)), open_features(folder), lambda r: TimeGrid(4, 16, r.fps or 0)
    )
    assert problem.kind == "time grid" and "fps" in problem.detail


def test_missing_folder_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a folder of"):
        open_features(tmp_path / "absent")


@pytest.fixture
def everything_wrong(folder: Path) -> tuple[Annotations, Path]:
    broken = features(60, 9)
    broken[3] = np.nan
    write_features(folder / "much.npy", broken)
    write_features(folder / "other.npy", features())
    (folder / "noise.npy").write_bytes(b"noise")
    write_features(folder / "empty.npy", features(0))
    much = Segments.unchecked([5, -9, 0], [4, 1, 1], ["run", "run", "[bold]walk"])
    recordings = [
        GOOD,
        replace(GOOD, name="much", segments=much),
        replace(GOOD, name="gone", segments=Segments.unchecked([3], [2], ["run"])),
        replace(GOOD, name="noise"),
        replace(GOOD, name="other"),
        replace(GOOD, name="empty"),
    ]
    return annotate(*recordings), folder


def test_everything_at_once(everything_wrong: tuple[Annotations, Path]) -> None:
    annotations, folder = everything_wrong
    found, problems = load_and_check(annotations, open_features(folder), grid_for, classes=annotations.classes)
    assert [(problem.video, problem.kind) for problem in problems] == [
        ("much", "length"),
        ("much", "NaN or Inf"),
        ("much", "end <= start"),
        ("much", "outside the video"),
        ("much", "unknown label"),
        ("much", "width"),
        ("gone", "missing features"),
        ("gone", "end <= start"),  # annotations are checked even so
        ("noise", "unreadable"),
        ("empty", "empty video"),
    ]
    assert set(found) == {"good", "much", "other", "empty"}
    with pytest.raises(DataProblems) as caught:
        raise_on_problems(problems, allow_missing=True)
    assert len(caught.value.problems) == 9
    message = str(caught.value)
    assert "\n" not in message
    assert "2 x end <= start" in message and "4 recordings" in message and "missing" not in message
    with pytest.raises(InputError, match="1 x missing features"):
        raise_on_problems(problems, allow_missing=False)


def test_only_missing_features_can_be_allowed() -> None:
    missing = [Problem("a", "missing features", ""), Problem("b", "missing features", "")]
    assert raise_on_problems(missing, allow_missing=True) == {"a", "b"}
    with pytest.raises(DataProblems):
        raise_on_problems(missing, allow_missing=False)


def test_the_table_counts_kinds_and_shows_names_literally(everything_wrong: tuple[Annotations, Path]) -> None:
    annotations, folder = everything_wrong
    problems = check_data(annotations, open_features(folder), grid_for, classes=annotations.classes)
    text = plain(problem_table(problems))
    assert "[bold]walk" in text and "2 x end <= start" in text and "1 x width" in text
    text = plain(problem_table(problems, limit=2))
    assert "8 more not shown" in text and "[bold]walk" not in text
    assert "no problems" in plain(problem_table([]))


@given(
    frames=st.integers(1, 20_000),
    stride=st.integers(1, 32),
    window=st.integers(0, 64),
    fps=st.sampled_from([1.0, 15.0, 23.976, 25.0, 29.97, 30.0, 60.0]),
)
def test_common_padding_conventions_pass(frames: int, stride: int, window: int, fps: float) -> None:
    grid = TimeGrid(stride, window, fps)
    recording = Recording("v", duration=frames / fps)
    conventions = {
        "windows that fit": max(1, (frames - window) // stride + 1),
        "last window padded": max(1, math.ceil((frames - window) / stride) + 1),
        "one per stride": max(1, frames // stride),
        "one per stride, rounded up": math.ceil(frames / stride),
        "half a window padded at both ends": frames // stride + 1,
    }
    for convention, length in conventions.items():
        assert check_recording(recording, np.ones((length, 2), np.float32), grid) == [], (convention, length)


@given(
    seconds=st.floats(200, 4000),
    stride=st.sampled_from([2, 4, 8, 16]),
    wrong=st.sampled_from([0.5, 0.8, 24 / 25, 25 / 24, 25 / 30, 30 / 25, 2.0]),
)
def test_a_wrong_stride_or_rate_is_found_in_long_recordings(seconds: float, stride: int, wrong: float) -> None:
    grid = TimeGrid(stride, 16, 30)
    length = round(((seconds * grid.fps - grid.window) / grid.stride + 1) * wrong)
    [problem] = check_recording(Recording("v", duration=seconds), np.ones((length, 2), np.float32), grid)
    assert problem.kind == "length"
    fitting = float(problem.detail.split(": stride ")[1].split(" ")[0])
    assert fitting == pytest.approx(stride / wrong, rel=0.02)


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=8)


@given(SPANS)
def test_covered_time_and_overlaps_against_counting(spans: list[tuple[int, int]]) -> None:
    segments = Segments([s for s, _ in spans], [s + d for s, d in spans], ["a"] * len(spans))
    seconds = [set(range(s, s + d)) for s, d in spans]
    assert covered_time(segments) == len(set().union(*seconds))
    meeting = sum(any(a & b for j, b in enumerate(seconds) if j != i) for i, a in enumerate(seconds))
    assert overlapping_instances(segments) == meeting


def test_statistics_and_description() -> None:
    annotations = annotate(
        Recording("a", "train", 10.0, None, Segments([0, 1, 8], [4, 3, 10], ["run", "jump", "run"])),
        Recording("b", "train", 10.0, None),
        Recording("c", "test", None, None, Segments([0], [1], ["[x]run"])),
    )
    annotations = replace(annotations, classes=("jump", "run", "[x]run"))
    train, jump, run, test, other = statistics(annotations)
    assert (train.recordings, train.instances, train.time_share, train.overlapping) == (2, 3, 0.3, 2)
    assert train.background_share == 0.7
    assert (jump.label, jump.recordings, jump.instances, jump.overlapping) == ("jump", 1, 1, 0)
    assert run.durations == pytest.approx((2.2, 3.0, 3.8)) and run.time_share == 0.3
    assert (test.subset, other.label) == ("test", "[x]run") and math.isnan(test.time_share)
    text = "".join(plain(table) for table in describe(annotations, {"a": features(), "b": features(5)}))
    for words in ("background 70.0%", "features of 2 of 2 recordings, width 6", "features of 0 of 1", "[x]run"):
        assert words in text


def test_thumos14_durations(shared_data: Path) -> None:
    """The field's own file holds 30 instances after the end of their video: the check must find these and no others."""
    annotations = read_annotations(shared_data / "thumos14" / "thumos14.json")
    problems = [p for r in annotations.recordings.values() for p in check_recording(r, None, None)]
    assert {problem.kind for problem in problems} == {"outside the video"}
    assert len(problems) == 30 and len({problem.video for problem in problems}) == 5


def test_real_sensor_data(shared_data: Path, tmp_path: Path) -> None:
    annotations = read_annotations(shared_data / "tug" / "phone.json")
    with np.load(shared_data / "tug" / "phone.npz") as archive:
        for name in archive.files:
            write_features(tmp_path / f"{name}.npy", archive[name])
    right = check_data(
        annotations, open_features(tmp_path), lambda r: TimeGrid(1, 1, r.fps or 0), classes=annotations.classes
    )
    assert right == []
    wrong = check_data(annotations, open_features(tmp_path), lambda r: TimeGrid(2, 1, r.fps or 0))
    assert {p.video for p in wrong if p.kind == "length"} == set(annotations.recordings)
    assert len(describe(annotations)) == 1


def test_rates_that_differ_are_a_problem():
    recordings = {f"v{i}": Recording(f"v{i}", "train", None, 30.0, Segments.empty()) for i in range(4)}
    recordings["slow"] = Recording("slow", "train", None, 25.0, Segments.empty())
    recordings["drift"] = Recording("drift", "train", None, 30.3, Segments.empty())
    found = check_rates(Annotations(recordings, ()), lambda r: TimeGrid(4, 8, r.fps or 1.0))
    assert [(problem.video, problem.kind) for problem in found] == [("slow", "other rate")]
    assert "lasts 0.16 s, in most recordings 0.1333 s" in found[0].detail


def test_a_forgotten_raw_is_named():
    recording = Recording("walk", "train", 60.0, 50.0, Segments.empty())
    rows = np.zeros((3000, 6), np.float32)
    [problem] = check_recording(recording, rows, TimeGrid(25, 50, 50.0))
    assert problem.kind == "length" and "data.raw" in problem.detail
    assert not check_recording(recording, rows, TimeGrid(1, 1, 50.0))
    [problem] = check_recording(recording, rows[:500], TimeGrid(25, 50, 50.0))
    assert "data.raw" not in problem.detail


def test_values_that_no_network_can_take_are_problems(tmp_path):
    features = np.ones((4, 2), np.float32)
    features[1, 1] = -1e30
    found = check_recording(Recording("a"), features, None)
    assert [(problem.video, problem.kind) for problem in found] == [("a", "too large")] and "1e+30" in found[0].detail


def test_rates_of_videos_are_compared_too():
    found = rate_problems({"a": 4 / 25, "b": 4 / 25, "c": 4 / 30})
    assert [(problem.video, problem.kind) for problem in found] == [("c", "other rate")]
