"""ZoomBench-video: the same pixels for the same seed, actions where the annotations say, and files that hold them."""

import json
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from temporalzoom.cli import main
from temporalzoom.config import load_config
from temporalzoom.datasets import zoombench_video
from temporalzoom.datasets.zoombench_render import render, render_blocks
from temporalzoom.datasets.zoombench_scenes import ACTIONS, EVENTS, LONGEST, SHORTEST, Clip, VideoBench, draw_clip
from temporalzoom.datasets.zoombench_video import video_annotations, write_video, write_zoombench_video
from temporalzoom.errors import InputError
from temporalzoom.formats import read_annotations
from temporalzoom.signals.decoding import probe, read_frames

SMALL = VideoBench(clips=4, seconds=6, size=32, seed=3)
# Nothing moves but what acts.
STILL = VideoBench(seconds=20, size=48, jitter=0, drift=0, at_boundaries=0, distractors=0, back_to_back=0)


@pytest.fixture(scope="module")
def still() -> list[tuple[Clip, np.ndarray]]:
    """Clips of `STILL` and their frames as numbers."""
    clips = [draw_clip(STILL, index) for index in range(8)]
    return [(clip, render(clip).astype(np.float32)) for clip in clips]


def change(frames: np.ndarray) -> np.ndarray:
    """(T - 1,): how much the picture changes from frame k to k + 1."""
    return np.abs(np.diff(frames, axis=0)).mean(axis=(1, 2, 3))


# The pictures


def test_the_same_seed_gives_the_same_pixels():
    frames = render(draw_clip(SMALL, 1))
    assert frames.shape == (150, 32, 32, 3) and frames.dtype == np.uint8
    assert np.array_equal(frames, render(draw_clip(SMALL, 1)))
    assert not np.array_equal(frames, render(draw_clip(SMALL, 2)))
    assert not np.array_equal(frames, render(draw_clip(replace(SMALL, seed=4), 1)))
    # Neither the number of clips nor the part that is asked for changes a frame.
    assert np.array_equal(frames[13:40], render(draw_clip(replace(SMALL, clips=9), 1), 13, 40))
    assert len(render(draw_clip(SMALL, 1), 5, 5)) == 0


def test_the_picture_changes_exactly_while_something_acts(still):
    """Without camera, drift and distractors, a detector that knows nothing but differences finds every boundary."""
    errors = []
    for clip, frames in still:
        moving = np.concatenate([[False], change(frames) > 0.005, [False]])
        starts, ends = np.flatnonzero(moving[1:] & ~moving[:-1]), np.flatnonzero(moving[:-1] & ~moving[1:])
        for instance in clip.instances:
            errors += [np.abs(starts - instance.start).min(), np.abs(ends - instance.end).min()]
        outside = np.ones(len(frames) - 1, bool)
        for instance in clip.instances:
            outside[instance.start : instance.end] = False
        assert not change(frames)[outside].any()
    assert len(errors) > 80 and np.mean(np.array(errors) <= 1) > 0.95


def test_an_action_shows_through_camera_and_drift():
    """With the shaking camera the frames differ at rest too; spinning differs clearly more around the shape."""
    ratios = []
    for index in range(8):
        clip = draw_clip(replace(STILL, jitter=0.004, drift=0.025), index)
        step = change(render(clip).astype(np.float32))
        resting = np.ones(len(step), bool)
        for i in clip.instances:
            resting[i.start : i.end] = False
        ratios += [step[i.start : i.end].mean() / step[resting].mean() for i in clip.instances if i.action == "spin"]
    assert len(ratios) > 5 and np.median(ratios) > 1.3


def test_every_action_is_what_its_name_says(still):
    """Seen from outside: where the picture differs from the empty scene, how large that is, and in which colour."""
    seen = set()
    for clip, frames in still:
        empty = render(replace(clip, shapes=()), 0, 1)[0].astype(np.float32)
        for instance in clip.instances:
            # The other shape, if any, is in the other half of the picture.
            half = slice(None) if len(clip.shapes) == 1 else slice(24 * instance.actor, 24 * (instance.actor + 1))
            part = frames[instance.start : instance.end + 1, half]
            shape = np.abs(part - empty[half]).max(axis=-1) > 24  # (n, H, W)
            area = shape.sum(axis=(1, 2))
            y, x = (np.array([np.flatnonzero(row).mean() for row in shape.any(axis=axis)]) for axis in (2, 1))
            travel = np.abs(np.diff(x)).sum() / (len(x) / float(STILL.rate))  # pixels per second
            seen.add(instance.action)
            if instance.action == "pulse":
                assert area.max() > 1.7 * area.min()
            elif instance.action == "move":
                assert np.ptp(x) > 10 and travel > 15
            elif instance.action == "bounce":
                assert np.ptp(y) > 3 and np.ptp(x) < 2 and np.median(y) < y[0]
            elif instance.action == "shake":
                assert 1.5 < np.ptp(x) < 7 and np.ptp(y) < 2 and travel > 15
            else:
                assert np.ptp(x) < 5 and np.ptp(y) < 5
            if instance.action == "blink_colour":
                colour = part[:, shape.all(axis=0)].mean(axis=1)  # (n, 3)
                shares = colour / colour.sum(axis=1, keepdims=True)
                assert np.ptp(shares, axis=0).max() > 0.15
            if instance.action not in ("move", "spin"):  # these two go on from where they are
                assert np.array_equal(part[0], part[-1])
    assert seen == set(ACTIONS)


# The plan


def test_the_plan_keeps_its_promises():
    bench = VideoBench(seconds=40, distractors=20)
    clips = [draw_clip(bench, index) for index in range(30)]
    pairs = [pair for clip in clips for pair in pairwise(clip.instances)]
    lengths = np.array([i.end - i.start for clip in clips for i in clip.instances]) / 25
    assert lengths.min() >= SHORTEST - 0.02 and lengths.max() <= LONGEST + 0.02
    assert all(a.end <= b.start for a, b in pairs) and clips[0].instances[0].start > 0
    touching = [(a, b) for a, b in pairs if a.end == b.start]
    assert 0.1 < len(touching) / len(pairs) < 0.3 and all(a.action != b.action for a, b in touching)
    assert all(b.start - a.end >= 0.4 * 25 for a, b in pairs if a.end < b.start)
    counts = np.unique([i.action for clip in clips for i in clip.instances], return_counts=True)[1]
    assert len(counts) == 6 and counts.max() < 1.3 * counts.min()
    with_event = 0
    boundaries = 0
    for clip in clips:
        at = np.array(sorted({frame for i in clip.instances for frame in (i.start, i.end)}))
        boundaries += len(at)
        for event in clip.events:
            distance = np.abs(at - event.at).min()
            assert distance == 0 if event.at_boundary else distance >= 0.5 * 25
            with_event += event.at_boundary
    assert 0.28 < with_event / boundaries < 0.42
    kinds = {(event.kind, event.at_boundary) for clip in clips for event in clip.events}
    assert kinds == {(kind, where) for kind in EVENTS for where in (True, False)}


def test_cuts_fades_and_flashes_look_like_themselves():
    clip = draw_clip(replace(SMALL, seconds=60, distractors=20), 0)
    frames = render(clip).astype(np.float32)
    step, light = change(frames), frames.mean(axis=(1, 2, 3))
    alone = [e for e in clip.events if 10 < e.at < 1480 and sum(abs(o.at - e.at) < 15 for o in clip.events) == 1]
    assert {event.kind for event in alone} == set(EVENTS)
    for event in alone:
        if event.kind == "cut":
            assert step[event.at - 1] > 3 * np.median(step)
        elif event.kind == "flash":
            assert light[event.at] > light[event.at - 1] + 40
        else:
            assert light[event.at] < 0.3 * light[event.at - 8]


# The files


def run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["tzoom", "data", "make-zoombench-video", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_files_hold_the_frames_and_what_is_finished_stays(tmp_path, monkeypatch, capsys):
    pytest.importorskip("av")
    out = tmp_path / "videos"
    small = ("--out", str(out), "--seconds", "6", "--size", "32", "--seed", "3", "--clips")
    assert run(monkeypatch, *small, "2") == 0
    assert "tzoom train" in capsys.readouterr().out
    annotations = read_annotations(out / "annotations.json")
    assert [r.subset for r in annotations.recordings.values()] == ["train", "test"] and annotations.classes == ACTIONS
    clip = draw_clip(replace(SMALL, clips=2), 1)
    recording = annotations.recordings["clip_0001"]
    assert recording.fps == 25 and recording.duration == 6
    assert [(round(s * 25, 6), round(e * 25, 6), label) for s, e, label, _ in recording.segments] == [
        (i.start, i.end, i.action) for i in clip.instances
    ]
    path = out / "clip_0001.mp4"
    info = probe(path)
    assert (info.width, info.height, info.frames) == (32, 32, 150) and info.fps == 25 and info.duration == 6
    decoded = list(read_frames(path))
    assert np.allclose([frame.seconds for frame in decoded], np.arange(150) / 25, atol=1e-6)
    difference = np.abs(np.stack([frame.image for frame in decoded]).astype(float) - render(clip))
    # Colour is stored at half resolution. One frame off would differ by as much as neighbours do, at cuts by far more.
    assert difference.mean() < 6 and difference.mean(axis=(1, 2, 3)).max() < 12

    config = load_config(out / "config.yaml")
    assert config.data.features == tmp_path / "features" and config.data.stride == 4 and config.data.window == 8
    assert (out / "config.yaml").read_text().startswith(f"# tzoom train {out / 'config.yaml'} --out ")

    written = {name: (out / f"{name}.mp4").stat().st_mtime_ns for name in ("clip_0000", "clip_0001")}
    (out / "clip_0000.mp4").unlink()
    assert run(monkeypatch, *small, "4") == 0  # one is missing, one is there, two are new
    assert (out / "clip_0001.mp4").stat().st_mtime_ns == written["clip_0001"] and (out / "clip_0000.mp4").is_file()
    assert len(list(out.glob("*.mp4"))) == 4 and not list(out.glob(".*"))
    before = path.read_bytes()
    assert run(monkeypatch, *small, "2", "--fps", "12.5") == 0  # another rate: other clips
    assert path.read_bytes() != before and probe(path).frames == 75


def test_the_same_frames_give_the_same_file(tmp_path):
    bench = VideoBench(clips=2, seconds=12.0, size=96)
    blocks = list(render_blocks(draw_clip(bench, 0), 0, bench.frames))
    files = set()
    for _ in range(8):
        write_video(tmp_path / "clip.mp4", blocks, bench, "libx264")
        files.add((tmp_path / "clip.mp4").read_bytes())
    assert len(files) == 1


def test_a_stopped_run_leaves_no_half_clip(tmp_path, monkeypatch):
    pytest.importorskip("av")

    def stopped(clip: Clip, first: int, last: int):
        yield render(clip, first, first + 20)
        raise KeyboardInterrupt

    write_zoombench_video(tmp_path, replace(SMALL, clips=2))
    bench = replace(SMALL, seed=9)  # the clips of before are those of another seed
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(zoombench_video, "render_blocks", stopped)
        write_zoombench_video(tmp_path, bench)
    assert json.loads((tmp_path / "settings.json").read_text())["finished"] == []
    assert not (tmp_path / "annotations.json").exists()
    assert sorted(p.name for p in tmp_path.glob("*.mp4")) == ["clip_0000.mp4", "clip_0001.mp4"]
    assert not list(tmp_path.glob(".*"))
    write_zoombench_video(tmp_path, bench)
    first = next(read_frames(tmp_path / "clip_0000.mp4")).image.astype(float)
    own, other = (render(draw_clip(b, 0), 0, 1)[0] for b in (bench, SMALL))
    assert np.abs(first - own).mean() < 0.5 * np.abs(first - other).mean()


def test_the_last_quarter_is_the_test():
    for clips, test in ((2, 1), (3, 1), (8, 2), (24, 6)):
        recordings = list(video_annotations(replace(SMALL, clips=clips)).recordings.values())
        assert [r.subset for r in recordings] == ["train"] * (clips - test) + ["test"] * test
        assert all(len(r.segments) for r in recordings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--clips", "1"], "clips: must be between 2"),
        (["--size", "16"], "size: must be between 32"),
        (["--size", "97"], "size: must be even"),
        (["--seconds", "nan"], "seconds: must be between 6"),
        (["--fps", "5"], "fps: must be between 10"),
    ],
)
def test_bad_settings_end_with_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    assert run(monkeypatch, "--out", str(tmp_path / "videos"), *arguments) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "videos").exists()


def test_a_file_is_no_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "videos").write_text("mine")
    assert run(monkeypatch, "--out", str(tmp_path / "videos")) == 2
    assert "is a file" in capsys.readouterr().err and (tmp_path / "videos").read_text() == "mine"


def test_annotations_of_others_stay(tmp_path):
    (tmp_path / "annotations.json").write_text("mine")
    with pytest.raises(InputError, match="choose another folder"):
        write_zoombench_video(tmp_path, SMALL)
    assert (tmp_path / "annotations.json").read_text() == "mine"


def test_without_pyav_the_command_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(InputError, match=r"pip install .temporalzoom\[video\]"):
        write_zoombench_video(tmp_path / "videos", SMALL)
    assert not (tmp_path / "videos").exists()
